"""On CI a skipped test fails the run, unless allowed_skips.txt names it."""

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

_unexpected: list[str] = []


def _note_skip(report: Any) -> None:
    if not (os.environ.get("CI") and report.skipped) or hasattr(report, "wasxfail"):
        return
    lines = Path(__file__).with_name("allowed_skips.txt").read_text(encoding="utf-8").splitlines()
    allowed = [line.partition("#")[0].strip() for line in lines]
    if not any(fnmatch(report.nodeid, pattern) for pattern in allowed):
        _unexpected.append(f"{report.nodeid}: {report.longrepr[-1] if report.longrepr else ''}")


pytest_runtest_logreport = pytest_collectreport = _note_skip


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in _unexpected:
        terminalreporter.write_line(f"skipped on CI, but not in tests/allowed_skips.txt: {line}", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unexpected and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
