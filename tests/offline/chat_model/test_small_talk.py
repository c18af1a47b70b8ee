"""Greetings, identity, jokes, and what isn't understood."""

import pytest

from memlab.offline.chat_model import respond
from memlab.offline.chat_model.small_talk import JOKES


def reply(*texts, **more):
    roles = ["user", "assistant"]
    return respond({"messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)], **more}).text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("你好", "你好"), ("Hello!", "Hello"), ("Привет", "Привет"), ("谢谢", "不客气"), ("thanks a lot", "welcome"), ("Спасибо!", "Пожалуйста"),  # noqa: E501
        ("再见", "再见"), ("bye", "Goodbye"), ("Пока", "До свидания"), ("你是谁", "不是大语言模型"), ("Who are you?", "not an LLM"), ("Ты кто?", "а не LLM"),  # noqa: E501
    ],
)  # fmt: skip
def test_courtesy(text, part):
    assert part in reply(text)


@pytest.mark.parametrize(("text", "lang"), [("讲个笑话", "zh"), ("Tell me a joke", "en"), ("Расскажи анекдот", "ru")])
def test_seed_chooses_the_joke(text, lang):
    assert {reply(text, seed=seed) for seed in range(3)} == set(JOKES[lang])
    assert reply(text) == reply(text)


def test_another_joke_is_one_it_cannot_see():
    first = reply("Tell me a joke")
    assert reply("Tell me a joke", first, "tell me another") in set(JOKES["en"]) - {first}
    assert reply("tell me another") not in JOKES["en"]


@pytest.mark.parametrize(
    ("text", "part"),
    [("the green moon sang", "did not understand"), ("月亮唱歌", "没有听懂"), ("зелёная луна пела", "не понимаю")],
)
def test_what_is_not_understood_is_admitted(text, part):
    assert part in reply(text)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "Be brief."}],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": None}],
    ],
)
def test_no_question(messages):
    assert respond({"messages": messages}).text
