"""Questions about facts, and the honest don't-know."""

import pytest

from memlab.offline.chat_model import respond


def ask(*texts):
    messages = []
    for text in texts:
        messages.append({"role": "user", "content": text})
        reply = respond({"messages": messages})
        messages.append({"role": "assistant", "content": reply.text})
    return reply.text


@pytest.mark.parametrize(
    ("turns", "reply"),
    [
        (("我对花生过敏", "我对什么过敏？"), "你对花生过敏。"),
        (("I live in Leeds", "Where do I live?"), "You live in Leeds."),
        (("Я люблю чай", "Что я люблю?"), "Вы любите чай."),
        (("I like tea", "Do I like tea?"), "Yes, you like tea."),
        (("I don't like tea", "Do I like tea?"), "No, you don't like tea."),
        (("我不能吃辣", "我能吃辣吗"), "不，你不能吃辣。"),
        (("I like tea", "I like jazz", "What do I like?"), "You like tea and jazz."),
        (("I love my dog", "What do I love?"), "You like your dog."),
    ],
)
def test_answers(turns, reply):
    assert ask(*turns) == reply


@pytest.mark.parametrize(
    "question",
    [
        "Do I like coriander?",
        "What's my dog's name?",
        "What is my job?",
        "How old am I?",
        "What did I order last time?",
        "Why is my cat sad?",
    ],
)
def test_unknown_is_said(question):
    assert "don't know" in ask("I'm Anna and I live in Rome", question)
    assert "Anna" not in ask("I'm Anna and I live in Rome", question)


def test_two_questions_at_once():
    assert (
        ask("I'm Anna and I live in Rome", "What's my name and where do I live?")
        == "Your name is Anna. You live in Rome."
    )


def test_a_narrow_question_is_not_answered_by_another_sort_of_fact():
    assert "don't know" in ask("I like football", "What do I like to drink?")
    assert "不知道" in ask("我喜欢打篮球", "我喜欢吃什么")


def test_a_question_no_table_knows_may_quote_the_sentence_that_answers_it():
    assert "bakery" in ask("My sister works at a bakery", "Where does my sister work?")


def test_an_acknowledgement_restates_the_fact():
    assert ask("我叫张三") == "你好，张三！我记住了。"
    assert ask("I like tea and I live in Rome") == "Noted: you like tea. You live in Rome."
    assert "не любите" in ask("Я не люблю лук")


def test_what_it_was_told_to_remember_is_kept_in_the_users_words():
    turns = ("Remember that I parked on level 3", "Where did I park?")
    assert "parked on level 3" in ask(turns[0])
    assert "level 3" in ask(*turns)
    assert "level 3" not in ask(turns[0], "Where did I sleep?")


def test_everything():
    reply = ask("I'm Anna. I live in Rome.", "What do you know about me?")
    assert "Anna" in reply
    assert "Rome" in reply


@pytest.mark.parametrize(
    ("line", "question", "reply"),
    [
        ("- lives: in Gdansk", "Where do I live?", "You live in Gdansk."),
        ("- lives: Gdansk", "Where do I live?", "You live in Gdansk."),
        ("- works: at a bank", "Where do I work?", "You work at a bank."),
        ("- живет: в Гданьске", "Где я живу?", "Вы живёте в Гданьске."),
        ("- 住在：上海", "我住在哪里", "你住在上海。"),
    ],
)
def test_a_summary_line_is_said_back_with_one_preposition(line, question, reply):
    messages = [{"role": "assistant", "content": line}, {"role": "user", "content": question}]
    assert respond({"messages": messages}).text == reply


def test_the_users_spelling_is_kept():
    assert ask("what's my favourite colour?").startswith("I don't know your favourite colour")
    assert ask("my fav color is teal", "what's my favourite colour?") == "Your fav color is teal."


def test_an_acknowledgement_tells_what_is_left_of_a_message():
    assert ask("I live in York, no wait, I live in Leeds") == "Noted: you live in Leeds."
    assert "没多久" not in ask("我现在住在上海，刚搬来没多久")
