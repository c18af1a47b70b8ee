"""The similarity explorer in real JupyterLab, driven by a real browser with the keyboard."""

from collections.abc import Iterator

import pytest

# Skips, with its reason, where there is no browser.
from tests.support_browser import jupyterlab, keep_screenshot, run_all, sync_api

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
    """The address of the notebook."""
    with jupyterlab(tmp_path_factory.mktemp("lab"), CELL) as address:
        yield address


def test_the_explorer_follows_the_keyboard(lab: str) -> None:
    with run_all(lab, 1400, 1000) as page:
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
        keep_screenshot(page, "similarity_explorer.png")
