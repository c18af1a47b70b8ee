"""The summary: facts and orders, in the language of the instruction, and readable by the model itself."""

import pytest

from memlab.offline.chat_model import respond


def user(text):
    return {"role": "user", "content": text}


TALK = [
    user("我叫张三"),
    {"role": "assistant", "content": "你好，张三！"},
    user("我喜欢喝茶"),
    {"role": "assistant", "content": "✅ 荤菜：番茄炒蛋×1，素菜：清炒菜心×1"},
]


def test_facts_and_orders():
    reply = respond({"messages": [*TALK, user("请总结以上对话")]}).text
    assert "名字: 张三" in reply
    assert "喜欢: 喝茶" in reply
    assert "番茄炒蛋×1" in reply


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "Summarise the following conversation:\nuser: I'm Anna\nassistant: Hi Anna\nuser: I like tea",
            ["name: Anna", "likes: tea"],
        ),
        ("Кратко перескажи разговор:\nпользователь: Меня зовут Анна\nассистент: Привет", ["имя: Анна"]),
        ("Summarize this chat.\nuser: The sky is blue.", ["no facts"]),
    ],
)
def test_transcripts(text, parts):
    reply = respond({"messages": [user(text)]}).text
    assert all(part in reply for part in parts)


def test_a_system_message_may_ask_for_it():
    reply = respond({"messages": [{"role": "system", "content": "Summarise the conversation in short."}, *TALK]}).text
    assert "张三" in reply


def test_the_model_reads_its_own_summary():
    summary = respond({"messages": [*TALK, user("Summarise our conversation")]}).text
    for role in ("assistant", "system"):
        assert "张三" in respond({"messages": [{"role": role, "content": summary}, user("我叫什么名字")]}).text
