"""The examples in the endpoint's docstrings."""

import doctest
import importlib

import pytest

MODULES = ["api_errors", "chat_stream", "dispatch", "encoders"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"memlab.offline.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
