"""The phrase files: what a class types, in three languages.

`phrases_*` and `phrases_more_*` were written along with the rules; `heldout1_*` was written by others and never
seen by the rules until they were scored on it.
"""

import importlib.util
from pathlib import Path

import pytest

from memlab.offline.chat_model import respond
from memlab.offline.chat_model.conversation import read

_spec = importlib.util.spec_from_file_location("phrases", Path(__file__).with_name("phrases.py"))
phrases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(phrases)

DATA = Path(__file__).parents[2] / "data"
LANGUAGES = ("zh", "en", "ru")
FILES = [f"{name}_{lang}.jsonl" for name in ("phrases", "heldout1", "phrases_more") for lang in LANGUAGES]
CASES = [case for name in FILES for case in phrases.load(DATA / name)]
SMALL_TALK = [case for case in CASES if case.get("kind") == "small_talk"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_phrase(case):
    ok, reply = phrases.run_case(case)
    assert ok, reply


KNOWN = {
    "en": ["My name is Anna", "I'm 16", "I live in Oslo", "I like tea", "I'm allergic to nuts", "My favourite colour is green", "I work as a nurse"],  # noqa: E501
    "ru": ["Меня зовут Анна", "Мне 16", "Я живу в Осло", "Я люблю чай", "У меня аллергия на орехи", "Мой любимый цвет — зелёный", "Я работаю врачом"],  # noqa: E501
    "zh": ["我叫张三", "我今年16岁", "我住在上海", "我喜欢喝茶", "我对花生过敏", "我最喜欢的颜色是绿色", "我是护士"],
}  # fmt: skip


def after(*texts):
    """The facts in view after a talk in which the model answers each text."""
    messages = []
    for text in texts:
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": respond({"messages": messages}).text})
    return [(fact.kind, fact.value) for fact in read({"messages": messages}).facts.facts]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_small_talk_changes_no_known_fact(lang):
    for fact in KNOWN[lang]:
        before = after(fact)
        assert before
        changed = {c["turns"][0] for c in SMALL_TALK if c["lang"] == lang and after(fact, *c["turns"]) != before}
        assert not changed, fact


def test_there_are_enough_phrases_in_each_language():
    assert all(sum(case["lang"] == lang for case in CASES) >= 180 for lang in LANGUAGES)
    assert all(sum(case["lang"] == lang for case in SMALL_TALK) >= 60 for lang in LANGUAGES)


def test_the_judge_can_fail():
    wrong = {"id": "x", "lang": "en", "turns": ["My name is Anna"], "ask": "What's my name?", "expect_any": ["Bob"]}
    assert not phrases.run_case(wrong)[0]
    assert not phrases.run_case({**wrong, "expect_any": ["Anna"], "reject": ["anna"]})[0]
    assert not phrases.judge({"lang": "en", "unknown": True}, "Your name is Bob.")
