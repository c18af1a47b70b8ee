"""A notebook in real JupyterLab, on a free port of this machine, for a real browser."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@contextmanager
def jupyterlab(root: Path, cell: str) -> Iterator[str]:
    """The address of a notebook with one cell, in a JupyterLab of its own whose files are in `root`."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    notebook.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(notebook, root / "lesson.ipynb")
    quiet = root / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}', encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    log = root / "jupyter.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            lab_command(root, port), cwd=root, env=lab_environment(root, token), stdout=output, stderr=output
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}/api/status?token={token}", process, log)
        yield f"http://127.0.0.1:{port}/lab/tree/lesson.ipynb?token={token}"
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()


def lab_command(root: Path, port: int) -> list[str]:
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": root,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        # No look for updates, no extension registry.
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.extension_manager": "readonly",
    }
    return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]


def lab_environment(root: Path, token: str) -> dict[str, str]:
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    return os.environ | {name: str(root / name.lower()) for name in own} | {"JUPYTER_TOKEN": token}


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, f"JupyterLab stopped: {log.read_text(encoding='utf-8')[-2000:]}"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab was not up after {seconds} s: {log.read_text(encoding='utf-8')[-2000:]}")


@contextmanager
def run_all(address: str, width: int, height: int) -> Iterator[Any]:
    """A page of a browser, with the notebook open and all of its cells run."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(30_000)
        sync_api.expect.set_options(timeout=30_000)
        page.goto(address)
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()  # the indicator is "idle" before a kernel is there
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        yield page
        browser.close()


def keep_screenshot(page: Any, name: str) -> None:
    """Where MEMLAB_SCREENSHOTS names a folder, put a picture of the page there."""
    if folder := os.environ.get("MEMLAB_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / name))
