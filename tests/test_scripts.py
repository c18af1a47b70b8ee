"""The scripts of the clone say what to install where the packages of the tests are missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        (["notebooks/build.py"], "jupytext"),
        (["notebooks/build.py"], "nbclient"),
        (["tests/benchmarks/run.py"], "threadpoolctl"),
        (["tests/benchmarks/run.py"], "pytest"),
        (["tests/benchmarks/run.py", "--only", "turn"], "agent_framework"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path, script, missing):
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name={missing!r})", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, *script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    (said,) = run.stderr.splitlines()
    assert run.returncode == 1
    assert said.startswith(f"{missing} is not installed; run: ")
    assert said.endswith('-m pip install -c constraints.txt -e ".[tests]"')
