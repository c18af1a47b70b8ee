"""notebooks/build.py on small notebooks: what it stores, and every kind of mismatch it must catch."""

import contextlib
import importlib.util
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from memlab.assets import notebooks_path

SOURCE = """\
# %% [markdown]
# # A small lesson

# %%
import os
score = 0.12345
print("score", score, os.environ.get("MEMLAB_MODE"), os.environ.get("OPENAI_API_KEY"))

# %%
from memlab.show import plot_vectors_2d
plot_vectors_2d([[1, 0], [1, 1]], ["猫", "кот"])

# %%
import ipywidgets
ipywidgets.IntSlider()

# %% tags=["volatile"]
import time
print(time.perf_counter_ns())
"""


@dataclass
class Result:
    returncode: int
    stdout: str


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook_build", notebooks_path() / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()


def build(folder: Path, *arguments: str) -> Result:
    """The command line, in this process: importing Jupyter's packages takes seconds each time."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.setenv("OPENAI_API_KEY", "sk-example-0123456789")
        patch.setenv("MEMLAB_MODE", "live")
        code = script.main(["--folder", str(folder), *arguments])
    return Result(code, printed.getvalue())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    (folder / "01_small.py").write_text(SOURCE, encoding="utf-8")
    result = build(folder)
    assert result.returncode == 0, result.stdout
    return folder


@pytest.fixture
def lesson(built: Path, tmp_path: Path) -> Path:
    """A copy of the built folder, to spoil."""
    return Path(shutil.copytree(built, tmp_path / "lesson"))


def stored(folder: Path) -> dict:
    return json.loads((folder / "01_small.ipynb").read_text(encoding="utf-8"))


def change_stored(folder: Path, old: str, new: str) -> None:
    path = folder / "01_small.ipynb"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_built_notebook_is_offline_keyless_and_without_widget_state(built: Path) -> None:
    notebook = stored(built)
    assert notebook["cells"][1]["outputs"][0]["text"] == ["score 0.12345 offline None\n"]
    assert notebook["cells"][2]["outputs"][0]["metadata"]["image/png"]["alt"].startswith("Arrows from the origin")
    assert notebook["cells"][3]["outputs"] == []
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert not any("execution" in cell["metadata"] for cell in notebook["cells"])


def test_an_unchanged_notebook_passes_and_a_rebuild_gives_the_same_cells(lesson: Path) -> None:
    change_stored(lesson, "score 0.12345 ", "score   0.12399 ")  # spacing, and the fourth decimal
    checked = build(lesson, "--check")
    assert checked.returncode == 0, checked.stdout
    before = stored(lesson)
    assert build(lesson).returncode == 0
    after = stored(lesson)
    assert [cell["id"] for cell in after["cells"]] == [cell["id"] for cell in before["cells"]]
    assert after["cells"][2] == before["cells"][2]


def test_stale_outputs_sources_and_pictures_are_caught(lesson: Path) -> None:
    spoilt = stored(lesson)
    del spoilt["cells"][2]["outputs"][0]["data"]["image/png"]
    spoilt["cells"][1]["outputs"][0]["text"] = ["score 0.126 offline None\n"]
    (lesson / "01_small.ipynb").write_text(json.dumps(spoilt), encoding="utf-8")
    (lesson / "02_other.py").write_text("# %%\nprint(1)\n", encoding="utf-8")
    shutil.copy(lesson / "01_small.ipynb", lesson / "02_other.ipynb")
    (lesson / "03_new.py").write_text("# %%\nprint(1)\n", encoding="utf-8")
    result = build(lesson, "--check")
    assert result.returncode == 1
    assert "-score 0.126" in result.stdout.replace("    ", "")
    assert "cell 3: other kinds of output" in result.stdout
    assert "cell 1: the source differs from the .py file" in result.stdout
    assert "03_new.ipynb is missing" in result.stdout


def test_failures_network_attempts_and_leaks_are_caught_and_not_stored(tmp_path: Path) -> None:
    quiet = "import contextlib, socket, subprocess, sys\nwith contextlib.suppress(OSError):\n    "
    child = 'import socket; socket.create_connection((\\"192.0.2.1\\", 443), timeout=1)'
    cases = {
        "01_fails": ("raise RuntimeError('broken lesson')", "broken lesson"),
        "02_name": (
            quiet + "socket.create_connection(('example.com', 443), timeout=1)",
            "socket.getaddrinfo example.com",
        ),
        "03_child": (
            quiet + f'subprocess.run([sys.executable, "-c", "{child}"])',
            "the network: socket.getaddrinfo 192.0.2.1",
        ),
        "04_key": ("print('sk-' + 'a1' * 12)", "something like a key"),
        "05_path": ("import memlab\nprint(memlab.__file__)", "a path of this machine"),
        "06_host": ("print('https://example.com/v1')", "the host example.com"),
    }
    for name, (code, _) in cases.items():
        (tmp_path / f"{name}.py").write_text(f"# %%\n{code}\n", encoding="utf-8")
    result = build(tmp_path)
    assert result.returncode == 1
    for name, (_, expected) in cases.items():
        section = result.stdout.split(name, 1)[1].split("\n0", 1)[0]
        assert "FAILED" in section
        assert expected in section
    assert "a1a1a1" not in result.stdout
    assert not list(tmp_path.glob("*.ipynb"))


def test_loopback_stays_open_and_live_sees_the_environment(tmp_path: Path) -> None:
    (tmp_path / "01_loop.py").write_text(
        "# %%\nimport os, socket\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(('localhost', server.getsockname()[1]), timeout=5).close()\n"
        "assert ('OPENAI_API_KEY' in os.environ) == (os.environ.get('MEMLAB_MODE') != 'offline')\n",
        encoding="utf-8",
    )
    assert build(tmp_path).returncode == 0
    (tmp_path / "01_loop.ipynb").unlink()
    assert build(tmp_path, "--live", "01").returncode == 0
    assert not list(tmp_path.glob("*.ipynb"))


def test_rendering_gives_a_page_with_alt_texts(built: Path, tmp_path: Path) -> None:
    assert build(built, "--render", "01", str(tmp_path)).returncode == 0
    page = (tmp_path / "01_small.html").read_text(encoding="utf-8")
    assert 'alt="Arrows from the origin: 猫, кот.' in page


def test_a_name_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no notebook matches 99"):
        build(tmp_path, "99")


@pytest.mark.parametrize(
    ("stored_text", "fresh_text", "same"),
    [
        ("cosine 0.7071 of 12 texts", "cosine  0.7079 of 12 texts", True),
        ("cosine 0.707", "cosine 0.709", False),
        ("cost 1,234 tokens", "cost 1,235 tokens", False),
        ("classroom-8k", "classroom-32k", False),
        ("a b", "a c", False),
        ("我叫张三 0.50", "我叫张三 0.5", True),
    ],
)
def test_texts_agree_when_their_numbers_do_to_three_decimals(stored_text: str, fresh_text: str, same: bool) -> None:
    assert script._check.same_text(stored_text, fresh_text) is same


def test_a_picture_may_change_by_a_few_per_cent_in_size() -> None:
    assert script._check.same_size((1000, 560), (1020, 560))
    assert not script._check.same_size((1000, 560), (1100, 560))
    assert not script._check.same_size((1000, 560), None)
