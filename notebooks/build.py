"""Turn the lessons (NN_name.py, jupytext percent format) into executed notebooks, and check those.

    python notebooks/build.py                  execute all, offline, and store NN_name.ipynb with outputs
    python notebooks/build.py 02 03            only these
    python notebooks/build.py --check          execute again and compare with what is stored; writes nothing
    python notebooks/build.py --live           execute with your environment (key, URL, network); writes nothing
    python notebooks/build.py --render 03 out  out/03_name.html, to look at

Unless live, a kernel gets no key, MEMLAB_MODE=offline and a closed network (only this machine answers).
Exit code 1 when a cell fails, outputs differ, or an output holds a path, something like a key, or a host.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import os
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

try:
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
except ModuleNotFoundError as missing:
    sys.exit(f'{missing.name} is not installed; run: {sys.executable} -m pip install -c constraints.txt -e ".[tests]"')

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _check

CELL_TIMEOUT = 600  # seconds
_DROPPED = re.compile(rf"{_check.SECRET_NAME.pattern}|_PROXY$|^OPENAI|^MEMLAB|^AZURE|^MODEL$", re.IGNORECASE)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")  # the colours of a traceback
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read_source(path: Path) -> Any:
    """The notebook of a .py source: no outputs, cell ids that depend on the text alone."""
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] += 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    return notebook


def closed_environment(scratch: Path) -> dict[str, str]:
    """The caller's environment without keys, proxies and settings, with the network closed."""
    kept = {name: value for name, value in os.environ.items() if not _DROPPED.search(name)}
    python_path = [str(HERE / "_closed_network"), kept.get("PYTHONPATH", "")]
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        "PYTHONHASHSEED": "0",
        "IPYTHONDIR": str(scratch / "ipython"),  # a personal IPython set-up must not show in the outputs
        "MEMLAB_MODE": "offline",
        "MEMLAB_NETWORK_ATTEMPTS": str(scratch / "attempts"),
    }


def execute(path: Path, live: bool = False) -> Any:
    """Run a source in a fresh kernel, in its folder. Raises what nbclient raises, and OSError for a network attempt."""
    notebook = read_source(path)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        client.execute(env=dict(os.environ) if live else closed_environment(scratch))
        attempts = scratch / "attempts"
        if attempts.exists():
            tried = ", ".join(dict.fromkeys(attempts.read_text(encoding="utf-8").split("\n"))).strip(", ")
            raise OSError(f"the notebook tried to use the network: {tried}")
    _check.strip(notebook.cells)
    notebook.metadata = nbformat.from_dict(_METADATA)
    return notebook


def process(path: Path, mode: str) -> list[str]:
    """Build, check or run live one source; the problems found."""
    try:
        notebook = execute(path, live=mode == "live")
    except (CellExecutionError, CellTimeoutError, DeadKernelError, OSError) as error:
        return [f"{type(error).__name__}: {_ANSI.sub('', str(error))}"]
    if mode == "live":
        return []
    problems = _check.leaks(notebook.cells)
    stored = path.with_suffix(".ipynb")
    if mode == "build" and not problems:
        write(notebook, stored)
    elif mode == "check" and not stored.exists():
        problems.append(f"{stored.name} is missing; build it")
    elif mode == "check":
        before = nbformat.read(stored, as_version=4).cells
        problems += _check.leaks(before) + _check.differences(before, notebook.cells)
    return problems


def write(notebook: Any, path: Path) -> None:
    part = path.with_suffix(".part")
    part.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")
    os.replace(part, path)


def render(path: Path, folder: Path) -> Path:
    """The stored notebook as one HTML page."""
    from nbconvert import HTMLExporter

    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    for alt in _check.alt_texts(notebook.cells):  # the exporter's page ignores the alt texts of pictures
        page = page.replace('alt="No description has been provided for this image"', f'alt="{html.escape(alt)}"', 1)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{path.stem}.html"
    target.write_text(page, encoding="utf-8")
    return target


def find_sources(folder: Path, names: list[str]) -> list[Path]:
    """The lessons whose name starts with one of `names` ("03", "03_vectors"), all of them without names."""
    every = sorted(folder.glob("[0-9][0-9]_*.py"))
    chosen = [path for path in every if not names or any(path.stem.startswith(Path(n).stem) for n in names)]
    if not chosen:
        raise SystemExit(f"no notebook matches {' '.join(names) or 'NN_name.py'}; there are: {[p.stem for p in every]}")
    return chosen


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="numbers or names of lessons; all without")
    parser.add_argument("--check", dest="mode", action="store_const", const="check", default="build")
    parser.add_argument("--live", dest="mode", action="store_const", const="live")
    parser.add_argument("--render", nargs=2, metavar=("NAME", "OUT_DIR"))
    parser.add_argument("--folder", type=Path, default=HERE, help="where the lessons are")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    if given.render:
        print(render(find_sources(folder, given.render[:1])[0], Path(given.render[1])))
        return 0
    import matplotlib.font_manager  # noqa: F401  builds the font cache here, not in the outputs of a notebook

    failed = 0
    for path in find_sources(folder, given.names):
        start = time.perf_counter()
        problems = process(path, given.mode)
        failed += bool(problems)
        print(f"{path.stem:32} {time.perf_counter() - start:6.1f} s  {'FAILED' if problems else 'ok'}", flush=True)
        for problem in problems:
            print(f"  {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
