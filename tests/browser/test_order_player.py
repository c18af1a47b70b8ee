"""The order player in real JupyterLab: the keyboard, the play button, and the prompts that unfold."""

import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

# Skips, with its reason, where there is no browser.
from tests.browser.test_widget import CHROMIUM, FLAGS, lab_command, lab_environment, sync_api, wait_until_up

CELL = """\
from memlab.experiments.orders.runs import replay_run
from memlab.experiments.orders.strategies import STRATEGIES
from memlab.show import order_player

runs = {name: replay_run("B", strategy=STRATEGIES[name]) for name in ("vector, top 3", "order log + tastes")}
player = order_player(runs)
player
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a notebook in a JupyterLab of its own, on a free port of this machine."""
    root = tmp_path_factory.mktemp("lab")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(notebook, root / "player.ipynb")
    quiet = root / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}', encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token, log = secrets.token_hex(16), root / "jupyter.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            lab_command(root, port), cwd=root, env=lab_environment(root, token), stdout=output, stderr=output
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}/api/status?token={token}", process, log)
        yield f"http://127.0.0.1:{port}/lab/tree/player.ipynb?token={token}"
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()


def test_the_player_follows_the_keyboard_plays_on_and_unfolds_the_prompts(lab: str) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1700, "height": 1500})
        page.set_default_timeout(30_000)
        sync_api.expect.set_options(timeout=30_000)
        page.goto(lab)
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

        expect, caption = sync_api.expect, page.locator("p[aria-live=polite]")
        picture = page.locator("img.widget-image")
        expect(caption).to_contain_text("“vector, top 3”, visit 1 of 5: Alice asks")
        before = picture.get_attribute("src")
        page.locator(".widget-hslider", has_text="Visit").locator(".noUi-handle").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(caption).to_contain_text("visit 3 of 5")
        expect(picture).not_to_have_attribute("src", before or "")
        assert picture.evaluate("image => image.naturalWidth") > 1000

        page.locator(".widget-play button").first.click()
        expect(caption).to_contain_text("visit 5 of 5")

        prompts = page.locator(".jupyter-widget-Accordion-child, .jupyter-widgets.widget-accordion > *")
        expect(prompts.first).to_contain_text("The prompt of visit 5 under “vector, top 3”")
        assert page.get_by_text("system (instructions)").first.is_hidden()
        page.get_by_text("The prompt of visit 5 under “vector, top 3”").click()
        expect(page.get_by_text("system (instructions)").first).to_be_visible()
        if folder := os.environ.get("MEMLAB_SCREENSHOTS"):
            page.screenshot(path=str(Path(folder) / "order_player.png"))
        browser.close()
