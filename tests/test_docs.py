"""The examples in the docstrings are true."""

import doctest
import importlib

import pytest

from tests.test_imports import MODULES


@pytest.mark.parametrize("name", [name for name, path in MODULES.items() if ">>>" in path.read_text(encoding="utf-8")])
def test_the_examples_of_a_module_hold(name, monkeypatch, tmp_path):
    monkeypatch.setattr("memlab.settings._current", None)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMLAB_MODE", raising=False)
    module = importlib.import_module(name)
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
