"""The phrase files: what a class types, in three languages."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("phrases", Path(__file__).with_name("phrases.py"))
phrases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(phrases)

DATA = Path(__file__).parents[2] / "data"
CASES = [case for lang in ("zh", "en", "ru") for case in phrases.load(DATA / f"phrases_{lang}.jsonl")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_phrase(case):
    ok, reply = phrases.run_case(case)
    assert ok, reply


def test_there_are_enough_phrases_in_each_language():
    assert all(sum(case["lang"] == lang for case in CASES) >= 60 for lang in ("zh", "en", "ru"))


def test_the_judge_can_fail():
    wrong = {"id": "x", "lang": "en", "turns": ["My name is Anna"], "ask": "What's my name?", "expect_any": ["Bob"]}
    assert not phrases.run_case(wrong)[0]
    assert not phrases.run_case({**wrong, "expect_any": ["Anna"], "reject": ["anna"]})[0]
    assert not phrases.judge({"lang": "en", "unknown": True}, "Your name is Bob.")
