"""The regular users: their data, their rules, and how the classroom model reads what they say."""

import json
import re
from itertools import permutations

import pytest

from memlab.errors import InvalidInputError
from memlab.experiments.regulars import load_chats, load_regulars
from memlab.experiments.takeout import LANGUAGES, open_kitchen, scenario
from memlab.offline.chat_model import respond, wording
from memlab.offline.chat_model.dishes import read_menu
from memlab.offline.chat_model.facts import extract
from memlab.offline.chat_model.order_forms import dishes_in
from memlab.offline.chat_model.tastes import forbids, mentions

DATA = scenario("regulars")
PHRASES = DATA["phrases"]
USERS = load_regulars()
in_each_language = pytest.mark.parametrize("language", LANGUAGES)
for_each_user = pytest.mark.parametrize("user", USERS, ids=lambda user: user.id)


def large_menu(language):
    return open_kitchen(language, "large").dishes


def menu_result(language):
    """What the menu tool of the large menu gives to the model."""
    return json.dumps([dish.shown for dish in large_menu(language)], ensure_ascii=False)


def meal_of_model(language, request, *context, **more):
    """The dishes that the classroom model orders from the large menu."""
    call = {"id": "1", "type": "function", "function": {"name": "GetMenu", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": request},
        *({"role": "user", "content": text} for text in context),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": menu_result(language)},
    ]
    tools = [tool.to_wire() for tool in open_kitchen(language, "large").tools()]
    (order,) = respond({"messages": messages, "tools": tools, **more}).tool_calls
    assert order.name == "PlaceOrder"
    return [next(d for d in large_menu(language) if d.name == name) for name in order.arguments["orderItems"]]


def reports(language):
    """The model's words after an order, for every dish, as a memory shows them."""
    call = {"id": "1", "type": "function"}
    for dish in large_menu(language):
        arguments = json.dumps({"orderItems": {dish.name: 1}}, ensure_ascii=False)
        placed = {**call, "function": {"name": "PlaceOrder", "arguments": arguments}}
        request = scenario("takeout")["languages"][language]["request"]
        messages = [
            {"role": "user", "content": request},
            {"role": "assistant", "content": None, "tool_calls": [placed]},
            {"role": "tool", "tool_call_id": "1", "content": arguments},
        ]
        tools = [tool.to_wire() for tool in open_kitchen(language, "large").tools()]
        report = respond({"messages": messages, "tools": tools}).text
        assert f"{dish.name}×1" in report
        yield f"assistant: {report}"


# --- the data ---


def test_twenty_dishes_the_small_menu_among_them():
    dishes = {dish["id"]: dish for dish in DATA["dishes"]}
    assert len(dishes) == len(DATA["dishes"]) == 20
    for dish in scenario("takeout")["dishes"]:
        assert dish.items() <= dishes[dish["id"]].items()
    kinds = [(dish["kind"], dish["spicy"]) for dish in DATA["dishes"]]
    assert [kinds.count(("meat", True)), kinds.count(("meat", False))] == [5, 6]
    assert [kinds.count(("veg", True)), kinds.count(("veg", False))] == [3, 6]


def test_every_ingredient_is_known_and_used_and_chilli_is_spicy():
    used = {name for dish in DATA["dishes"] for name in dish["ingredients"]}
    assert used == set(DATA["ingredients"])
    assert all(dish["spicy"] == ("chilli" in dish["ingredients"]) for dish in DATA["dishes"])


@in_each_language
def test_names_are_filled_and_no_name_holds_another(language):
    names = [dish[language] for dish in DATA["dishes"]]
    assert not [(one, other) for one, other in permutations(names, 2) if one.lower() in other.lower()]
    words = [entry[language] for entry in DATA["ingredients"].values()]
    assert len(set(words)) == len(words)
    assert all(text.strip() == text != "" for text in [*names, *words])


def test_twenty_users_alice_first():
    assert len({user.id for user in USERS}) == 20
    assert (USERS[0].id, USERS[0].wanted, USERS[0].constraints) == ("Alice", ("meat", "veg"), ("no_chilli",))
    assert all(user.constraints and set(user.wanted) <= {"meat", "veg"} for user in USERS)
    assert all((user.wanted == ("veg", "veg")) == ("vegetarian" in user.constraints) for user in USERS)


def test_every_phrase_is_said_by_somebody():
    assert set(PHRASES["constraints"]) == {constraint for user in USERS for constraint in user.constraints}
    assert set(PHRASES["tastes"]) == {user.taste for user in USERS} - {None}
    assert set(PHRASES["wanted"]) == {"+".join(user.wanted) for user in USERS}


@pytest.mark.parametrize("count", [0, 21, -1])
def test_there_are_one_to_twenty_users(count):
    with pytest.raises(InvalidInputError, match="1 to 20"):
        load_regulars(count)


def test_fewer_users_are_the_first_ones():
    assert load_regulars(3) == USERS[:3]


def test_an_unknown_language_is_an_error():
    for ask in (USERS[0].first_request, USERS[0].constraint_texts, load_chats):
        with pytest.raises(InvalidInputError, match="zh, en, ru"):
            ask("fr")


# --- the rules ---


def test_alice_has_two_by_two_meals_on_the_small_menu():
    meals = USERS[0].feasible_sets(open_kitchen().dishes)
    meat, veg = ("egg_tomato", "sea_bass"), ("choy_sum", "celery_lily")
    assert meals == [frozenset({one, other}) for one in meat for other in veg]


@for_each_user
def test_there_is_a_choice_and_something_to_like(user):
    dishes = {dish.id: dish for dish in large_menu("zh")}
    meals = user.feasible_sets(list(dishes.values()))
    assert len(set(meals)) == len(meals) >= 6
    for meal in meals:
        assert sorted(dishes[name].kind for name in meal) == sorted(user.wanted)
        assert all(user.allows(dishes[name]) for name in meal)
    assert user.taste is None or any(user.allows(dish) and user.likes(dish) for dish in dishes.values())


@for_each_user
def test_some_meal_would_break_a_constraint(user):
    assert not all(user.allows(dish) for dish in large_menu("zh"))


@in_each_language
def test_the_first_request(language):
    assert USERS[0].first_request(language).startswith(scenario("takeout")["languages"][language]["first_request"])
    requests = [user.first_request(language) for user in USERS]
    assert len(set(requests)) == 20
    for user, request in zip(USERS, requests, strict=True):
        assert len(user.constraint_texts(language)) == len(user.constraints)
        assert all(text in request for text in user.constraint_texts(language))


def test_the_first_request_in_full():
    assert USERS[0].first_request("zh") == "帮我点一份外卖，一荤一素，我不能吃辣，我喜欢吃鱼"
    assert USERS[2].first_request("en") == "Order me a take-away, two vegetable dishes. I am a vegetarian. I like tofu."


# --- the classroom model agrees with the rules ---


@in_each_language
@for_each_user
def test_the_model_reads_constraints_and_tastes(user, language):
    facts = extract(user.first_request(language))
    for dish, seen in zip(large_menu(language), read_menu(menu_result(language)), strict=True):
        assert (seen.name, seen.kind, seen.spicy) == (dish.name, dish.kind, dish.spicy)
        assert any(forbids(fact, seen) for fact in facts) is not user.allows(dish), dish.name
        assert any(fact.kind == "like" and mentions(fact, seen) for fact in facts) is user.likes(dish), dish.name


@in_each_language
@for_each_user
def test_the_model_orders_what_the_user_may_eat_and_likes(user, language):
    later = scenario("takeout")["languages"][language]["request"]
    memory = f"## Memories\n{user.first_request(language)}"
    meals = [meal_of_model(language, user.first_request(language))]
    meals += [meal_of_model(language, later, memory, seed=seed) for seed in range(3)]
    for meal in meals:
        assert {dish.id for dish in meal} in user.feasible_sets(large_menu(language))
        assert user.taste is None or any(user.likes(dish) for dish in meal)


@pytest.mark.parametrize(
    ("language", "question"), [("zh", "我喜欢什么？"), ("en", "What do I like?"), ("ru", "Что я люблю?")]
)
def test_the_report_of_an_order_says_nothing_about_the_user(language, question):
    messages = [{"role": "user", "content": "## Memories\n" + line} for line in reports(language)]
    assert respond({"messages": [{"role": "user", "content": question}, *messages]}).text.startswith(
        wording.UNKNOWN[language]["like"]
    )


# --- small talk ---


def test_the_chats_are_many_and_parallel():
    chats = [load_chats(language) for language in LANGUAGES]
    assert len({len(exchanges) for exchanges in chats}) == 1
    assert len(chats[0]) >= 160
    for exchanges in chats:
        texts = [text for exchange in exchanges for text in exchange]
        assert len(set(texts)) == len(texts)
        assert all(text.strip() == text != "" for text in texts)
    for exchanges, letters in zip(chats, ("[\u4e00-\u9fff]", "[a-z]", "[а-я]"), strict=True):
        assert all(len(re.findall(letters, text, re.I)) > len(text) / 2 for pair in exchanges for text in pair)


@pytest.mark.parametrize("language", ["en", "ru"])
def test_questions_are_short(language):
    assert all(5 <= len(question.split()) <= 15 for question, _ in load_chats(language))


@in_each_language
def test_no_chat_is_an_order_or_an_instruction_or_says_anything_about_the_user(language):
    names = [dish.name for dish in large_menu(language)]
    tools = [tool.to_wire() for tool in open_kitchen(language, "large").tools()]
    for question, reply in load_chats(language):
        assert not respond({"messages": [{"role": "user", "content": question}], "tools": tools}).tool_calls
        for text in (question, reply):
            assert not wording.asks_order(text)
            assert not wording.asks_variety(text)
            assert not dishes_in(text, names)
            assert not re.search(r"[×✕]|\d", text)
        assert extract(question) == extract(question, "any") == ()
        assert extract(reply, "assistant") == extract(reply, "any") == ()
