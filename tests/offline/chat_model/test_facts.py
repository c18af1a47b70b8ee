"""The facts skill: what is kept, and above all what isn't."""

import pytest

from memlab.offline.chat_model.book import FactBook
from memlab.offline.chat_model.facts import extract


def facts(text, speaker="user"):
    return {(fact.kind, fact.value) for fact in extract(text, speaker) if not fact.denied}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "我叫张三，来自北京，喜欢喝茶，对花生过敏",
            {("name", "张三"), ("from", "北京"), ("like", "喝茶"), ("allergy", "花生")},
        ),
        ("我叫張三，我喜歡喝茶", {("name", "張三"), ("like", "喝茶")}),
        ("I'm Anna and I live in Paris.", {("name", "Anna"), ("lives", "in Paris")}),
        ("I’m Anna, I don’t like tea", {("name", "Anna"), ("dislike", "tea")}),
        ("Меня зовут Фёдор, живу в Орле, люблю мёд", {("name", "Фёдор"), ("lives", "в Орле"), ("like", "мёд")}),
        ("我有一只猫，叫豆豆", {("attr", "豆豆")}),
        ("I have a dog, his name is Rex", {("attr", "Rex")}),
        ("I can't eat spicy food", {("avoid", "spicy food")}),
        ("I like coffee, not tea", {("like", "coffee")}),
    ],
)
def test_facts_are_read(text, expected):
    assert facts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "我不叫张三", "他说：“我叫王五”", "他说我叫王五", "假如我叫李白", "我叫什么？", "你叫小智吗", "我叫了外卖", "我希望我叫李白", "他叫王五",  # noqa: E501
        "I'm not called Bob", "If I were called Bob, fine", 'She said "my name is Eve"', "Is my name Bob?", "I am tired", "I'm a bit busy",  # noqa: E501
        "Call me a taxi", "Translate: my name is Bob", "I wish my name was Bob", "His name is Bob", "I used to be called Bob",  # noqa: E501
        "Меня зовут не Анна", "Он сказал: «Меня зовут Иван»", "Если бы меня звали Пётр", "Я устал", "Его зовут Олег", "Меня зовут Игорь?", "Меня зовут гулять",  # noqa: E501
    ],
)  # fmt: skip
def test_no_name_is_invented(text):
    assert "name" not in {kind for kind, _ in facts(text)}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("我妈对海鲜过敏", {"allergy"}), ("我哥哥喜欢足球", {"like"}), ("我朋友住在上海", {"lives"}),
        ("My sister lives in Rome", {"lives"}), ("My mum likes jazz", {"like"}), ("My dad is allergic to nuts", {"allergy"}),  # noqa: E501
        ("Мой друг живёт в Сочи", {"lives"}), ("Моя мама любит розы", {"like"}), ("У моего брата аллергия на мёд", {"allergy"}),  # noqa: E501
    ],
)  # fmt: skip
def test_other_peoples_facts_are_not_the_users(text, kinds):
    assert not kinds & {kind for kind, _ in facts(text)}


def test_other_peoples_names_become_attributes():
    (fact,) = extract("My brother is called Tom")
    assert (fact.kind, fact.key, fact.value) == ("attr", "brother name", "Tom")


def test_latest_wins_and_denials_take_away():
    book = FactBook([*extract("My name is Bob"), *extract("Actually my name is Rob")])
    assert [fact.value for fact in book.of("name")] == ["Rob"]
    book = FactBook([*extract("我叫张三"), *extract("我不叫张三")])
    assert book.of("name") == []
    book = FactBook([*extract("I like tea"), *extract("I don't like tea any more")])
    assert book.of("like") == []
    assert [fact.value for fact in book.of("dislike")] == ["tea"]


def test_a_correction_without_a_verb_needs_the_fact_before_it():
    book = FactBook([*extract("My name is Bob"), *extract("It's Rob, not Bob")])
    assert [fact.value for fact in book.of("name")] == ["Rob"]
    assert FactBook(extract("не Саша, а Паша")).facts == []


def test_speakers():
    assert facts("You like tea.", "assistant") == {("like", "tea")}
    assert facts("You like tea.") == set()
    assert facts("I like tea.", "assistant") == set()
    assert facts("The user likes tea.", "system") == {("like", "tea")}
    assert facts("- name: Anna\n- likes: tea\n- likes: jazz", "assistant") == {
        ("name", "Anna"),
        ("like", "tea"),
        ("like", "jazz"),
    }
    assert facts("- 名字：张三", "assistant") == {("name", "张三")}
    assert facts("- имя: Анна", "assistant") == {("name", "Анна")}
