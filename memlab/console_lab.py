"""`memlab lab`: JupyterLab on the lessons of a clone, or on copies of those in the wheel."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from memlab import assets
from memlab.console import check_port
from memlab.errors import ConfigurationError


def add_options(lab: argparse.ArgumentParser) -> None:
    """The options of the command."""
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    lab.add_argument("--port", type=int, help="where to listen; by default a free port from 8888")


def run(given: argparse.Namespace) -> int:
    """Run the command until JupyterLab ends; its exit code.

    Raises InvalidInputError for a port that can't be, ConfigurationError when there is no lesson to open.
    """
    if given.port is not None:
        check_port(given.port)
    folder = _learners_copy(assets.notebooks_path(), Path.cwd() / "memlab-notebooks")
    lessons = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not lessons:
        raise ConfigurationError(f"there is no lesson in {folder}; in a clone, run: python notebooks/build.py")
    print(f"Opening {len(lessons)} lessons in {folder}. Ctrl-C stops JupyterLab.", flush=True)
    command = _lab_command(folder, lessons[0].name, given)
    if os.name == "posix":
        os.execv(sys.executable, command)  # JupyterLab takes this process's place, and its signals
    child = subprocess.Popen(command)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # JupyterLab got it too, and decides
            continue


def _lab_command(folder: Path, first: str, given: argparse.Namespace) -> list[str]:
    """JupyterLab with this Python, without news, update checks and the list of extensions: they ask the network."""
    command = [sys.executable, "-m", "jupyterlab", str(folder), f"--LabApp.default_url=/lab/tree/{first}"]
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += ["--LabApp.extension_manager=readonly"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # in a container there is often no one else
    command += ["--no-browser"] if given.no_browser else []
    return command + ([f"--port={given.port}"] if given.port is not None else [])


def _learners_copy(source: Path, target: Path) -> Path:
    """A clone's own notebooks; from a wheel, copies in `target`. A file that is there already stays as it is."""
    if not source.is_relative_to(Path(assets.__file__).resolve().parent):
        return source
    target.mkdir(exist_ok=True)
    kept = 0
    for lesson in source.glob("[0-9][0-9]_*.ipynb"):
        if (target / lesson.name).exists():
            kept += 1
        else:
            shutil.copyfile(lesson, target / lesson.name)
    if kept:
        print(f"{kept} notebooks were in {target.name} already and stay as they are")
    return target
