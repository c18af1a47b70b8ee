"""The similarity explorer in real JupyterLab, driven by a real browser with the keyboard."""

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
from pathlib import Path

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

# Cosines with the question: 0.9, 0.5, 0.1; with any other question reversed.
CELL = """\
import numpy as np
from memlab.show import similarity_explorer

class Embedder:
    model = "two-d"
    def embed(self, texts, role="document"):
        if role == "query":
            return np.array([[1, 0] if texts[0] == "first?" else [0, 1]], dtype=np.float32)
        return np.array([[c, (1 - c * c) ** 0.5] for c in (0.9, 0.5, 0.1)], dtype=np.float32)

explorer = similarity_explorer(Embedder(), ["我叫张三", "Меня зовут Анна", "weather"], "first?")
explorer
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a notebook in a JupyterLab of its own, on a free port of this machine."""
    root = tmp_path_factory.mktemp("lab")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(notebook, root / "explorer.ipynb")
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
        yield f"http://127.0.0.1:{port}/lab/tree/explorer.ipynb?token={token}"
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


def test_the_explorer_follows_the_keyboard(lab: str) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(30_000)
        sync_api.expect.set_options(timeout=30_000)
        page.goto(lab)
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()  # the indicator is "idle" before a kernel is there
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

        caption, picture = page.locator("p[aria-live=polite]"), page.locator("img.widget-image")
        expect = sync_api.expect
        expect(caption).to_contain_text("Kept 2 of 3 texts, best first: 我叫张三 (0.90); Меня зовут Анна (0.50).")
        before = picture.get_attribute("src")

        page.locator(".widget-hslider", has_text="Threshold").locator(".noUi-handle").focus()
        for _ in range(5):  # 0.30 -> 0.55
            page.keyboard.press("ArrowRight")
        expect(caption).to_contain_text("Kept 1 of 3 texts, best first: 我叫张三 (0.90).")
        expect(picture).not_to_have_attribute("src", before or "")
        assert picture.evaluate("image => image.naturalWidth") > 500

        question = page.locator(".widget-text input")
        question.fill("second?")
        question.press("Enter")
        expect(caption).to_contain_text("Question: second? Kept 2 of 3 texts, best first: weather (0.99);")
        if folder := os.environ.get("MEMLAB_SCREENSHOTS"):
            page.screenshot(path=str(Path(folder) / "similarity_explorer.png"))
        browser.close()
