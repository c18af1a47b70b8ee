"""Ordering a meal through two tools, within what can be seen."""

import json

import pytest

from memlab.offline.chat_model import respond
from memlab.offline.chat_model.choice import choose
from memlab.offline.chat_model.dishes import Dish, describe, read_menu

MENU = ["辣椒炒肉", "剁椒鱼头", "番茄炒蛋", "清蒸鲈鱼", "酸辣土豆丝", "清炒菜心", "西芹百合"]
SPICY = {"辣椒炒肉", "剁椒鱼头", "酸辣土豆丝"}
MEAT = set(MENU[:4])
ENGLISH = [
    "Stir-fried pork with chilli",
    "Steamed sea bass",
    "Hot and sour shredded potatoes",
    "Celery with lily bulbs",
]
NOTHING = {"type": "object", "properties": {}}
ITEMS = {
    "type": "object",
    "properties": {"orderItems": {"type": "object", "additionalProperties": {"type": "integer"}}},
    "required": ["orderItems"],
}
BLOCK = "## Memories\nConsider the following memories when answering user questions:\n"


def function(name, description, parameters):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [function("GetMenu", "提取外卖菜单", NOTHING), function("PlaceOrder", "外卖下单", ITEMS)]


def user(text):
    return {"role": "user", "content": text}


def play(*messages, menu=MENU, tools=TOOLS, results=None, **more):
    """Run the tool loop; (dishes ordered, last reply, names called)."""
    history, ordered, called = list(messages), {}, []
    for step in range(6):
        turn = respond({"messages": history, "tools": tools, **more})
        if not turn.tool_calls:
            return ordered, turn.text, called
        calls = [
            {
                "id": f"{step}-{i}",
                "type": "function",
                "function": {"name": c.name, "arguments": json.dumps(c.arguments)},
            }
            for i, c in enumerate(turn.tool_calls)
        ]
        history.append({"role": "assistant", "content": None, "tool_calls": calls})
        for i, call in enumerate(turn.tool_calls):
            called.append(call.name)
            ordered = call.arguments.get("orderItems", ordered)
            result = (results or {}).get(
                call.name, json.dumps(menu if call.name == "GetMenu" else call.arguments, ensure_ascii=False)
            )
            history.append({"role": "tool", "tool_call_id": f"{step}-{i}", "content": result})
    raise AssertionError("the tool loop never ended")


def test_the_first_order_of_alice():
    ordered, reply, called = play(user("帮我点一份外卖，一荤一素，我不能吃辣"))
    assert called == ["GetMenu", "PlaceOrder"]
    assert len(ordered) == 2
    assert len(MEAT & set(ordered)) == 1
    assert not SPICY & set(ordered)
    assert reply.startswith("✅")
    assert "荤菜：番茄炒蛋×1，素菜：清炒菜心×1" in reply


@pytest.mark.parametrize(
    ("text", "word"),
    [("Order me a take-away, nothing spicy please", "Meat dish: "), ("Закажи мне еду, без острого", "Мясное: ")],
)
def test_twins(text, word):
    ordered, reply, _ = play(user(text))
    assert not SPICY & set(ordered)
    assert word in reply


def test_an_english_menu():
    ordered, _, _ = play(user("Order me some food. I can't eat spicy food."), menu=ENGLISH)
    assert set(ordered) == {"Steamed sea bass", "Celery with lily bulbs"}


def test_only_constraints_in_view_count():
    free, _, _ = play(user("帮我点一份外卖"))
    assert SPICY & set(free)
    bound, _, _ = play(user("帮我点一份外卖"), user(BLOCK + "帮我点一份外卖，一荤一素，我不能吃辣"))
    assert not SPICY & set(bound)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("我对鱼过敏", {"剁椒鱼头", "清蒸鲈鱼"}),
        ("我不喜欢吃番茄", {"番茄炒蛋"}),
        ("我吃素", MEAT),
        ("I'm vegetarian", MEAT),
    ],
)
def test_allergies_dislikes_and_diets(text, gone):
    for seed in range(8):
        ordered, _, _ = play(user(text), user("帮我点一份外卖"), seed=seed)
        assert ordered
        assert not gone & set(ordered)


def test_a_kind_that_must_be_left_out_is_named():
    ordered, reply, _ = play(user("帮我点一份外卖，我对鱼过敏，也不能吃辣，不喜欢番茄"))
    assert set(ordered) == {"清炒菜心"}
    assert "荤菜" in reply


def test_nothing_feasible_is_said():
    ordered, reply, called = play(user("帮我点一份外卖，我不能吃辣"), menu=["辣椒炒肉", "酸辣土豆丝"])
    assert (ordered, called) == ({}, ["GetMenu"])
    assert "没有符合" in reply


VARY = "选择菜品时要综合考虑用户口味、多样性，并尽可能与上次订单不同。"


def test_told_to_vary_it_avoids_every_order_it_can_see():
    seen = [{"番茄炒蛋", "清炒菜心"}, {"清蒸鲈鱼", "西芹百合"}, {"番茄炒蛋", "西芹百合"}]
    lines = "\n".join(f"✅ 荤菜：{sorted(s & MEAT)[0]}×1，素菜：{sorted(s - MEAT)[0]}×1" for s in seen)
    ordered, _, _ = play({"role": "system", "content": VARY}, user("帮我点一份外卖，我不能吃辣"), user(BLOCK + lines))
    assert set(ordered) == {"清蒸鲈鱼", "清炒菜心"}


def test_variety_may_be_asked_for_by_a_message_after_the_request():
    block = BLOCK + "我不能吃辣\n✅ 荤菜：番茄炒蛋×1，素菜：清炒菜心×1"
    ordered, _, _ = play(user("帮我点一份外卖"), user(block), user(VARY))
    assert set(ordered) == {"清蒸鲈鱼", "西芹百合"}
    repeated, _, _ = play(user("帮我点一份外卖"), user(block))
    assert set(repeated) == {"番茄炒蛋", "清炒菜心"}


def test_seed_breaks_ties_and_is_reproducible():
    picks = {tuple(play(user("帮我点一份外卖，我不能吃辣"), seed=seed)[0]) for seed in range(20)}
    assert len(picks) == 4
    assert play(user("帮我点一份外卖"), seed=3) == play(user("帮我点一份外卖"), seed=3)


def test_failures_are_told():
    _, reply, _ = play(user("帮我点一份外卖"), results={"GetMenu": "Error: kitchen closed"})
    assert "kitchen closed" in reply
    _, reply, _ = play(user("Order me lunch"), results={"PlaceOrder": '{"error": "no courier"}'})
    assert "no courier" in reply
    assert "✅" not in reply


def test_without_tools_it_says_so():
    assert "工具" in respond({"messages": [user("帮我点一份外卖")]}).text


def test_a_list_schema_for_the_items():
    item = {"type": "object", "properties": {"dish": {"type": "string"}, "quantity": {"type": "integer"}}}
    items = {
        "type": "object",
        "properties": {"orderItems": {"type": "array", "items": item}},
        "required": ["orderItems"],
    }
    ordered, reply, _ = play(user("帮我点一份外卖，不要辣"), tools=[TOOLS[0], function("PlaceOrder", "", items)])
    assert ordered == [{"dish": "番茄炒蛋", "quantity": 1}, {"dish": "清炒菜心", "quantity": 1}]
    assert "番茄炒蛋×1" in reply


def test_preferences_and_last_orders_are_looked_up_first_when_tools_allow():
    search = function(
        "Search", "Search chat history", {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    )
    log = function("GetLastOrders", "The last orders of this user", NOTHING)
    results = {"Search": "我不能吃辣", "GetLastOrders": "番茄炒蛋×1, 清炒菜心×1"}
    ordered, _, called = play(
        {"role": "system", "content": VARY}, user("帮我点一份外卖"), tools=[*TOOLS, search, log], results=results
    )
    assert called == ["Search", "GetLastOrders", "GetMenu", "PlaceOrder"]
    assert set(ordered) == {"清蒸鲈鱼", "西芹百合"}


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("GetLastOrders", "列出这位用户最近的订单，最新的在前"),
        ("recent_orders", "Lists this user's recent orders"),
        ("log", "Показывает последние заказы"),
    ],
)
def test_a_tool_that_lists_orders_may_want_a_question(name, description):
    question = {"type": "object", "properties": {"userQuestion": {"type": "string"}}, "required": ["userQuestion"]}
    log = function(name, description, question)
    results = {name: "## 最近的订单\n番茄炒蛋×1, 清炒菜心×1"}
    system = {"role": "system", "content": VARY}
    ordered, _, called = play(system, user("帮我点一份外卖，不要辣"), tools=[*TOOLS, log], results=results)
    assert called == [name, "GetMenu", "PlaceOrder"]
    assert set(ordered) == {"清蒸鲈鱼", "西芹百合"}


@pytest.mark.parametrize("parameter", [None, "userQuestion", "order_id", "email", "reason", "confirm"])
@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("CancelLastOrder", "Cancels the last order"),
        ("DeleteOrderHistory", "删除历史订单"),
        ("refund_previous_order", ""),
        ("ReorderLastOrder", "Orders the last order again"),
        ("ClearHistory", "Clears the chat history"),
        ("SendEmail", "Mails the order history to an address"),
        ("history", "Удаляет историю заказов"),
        ("order_history", "Стирает историю заказов"),
        ("last_order_tool", "This tool cancels the last order"),
        ("history_tool", "Permanently deletes earlier messages"),
        ("ResetOrderHistory", ""),
        ("MarkOrderHistoryRead", ""),
        ("ArchiveOrderHistory", "Search the order history"),
        ("PayLastOrder", ""),
        ("RateLastOrder", ""),
        ("PurgeHistory", ""),
        ("StoreMemory", "Stores a memory"),
        ("remember", "Remembers a fact"),
        ("ShareHistory", ""),
    ],
)
def test_a_tool_that_changes_something_is_not_called_for_looking_something_up(name, description, parameter):
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    other = function(name, description, schema if parameter else NOTHING)
    _, _, called = play({"role": "system", "content": VARY}, user("帮我点一份外卖"), tools=[*TOOLS, other])
    assert called == ["GetMenu", "PlaceOrder"]


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("Search", "Allows searching for related previous chat history to help answer the user question."),
        ("SearchSavedNotes", "搜索已保存的笔记"),
        ("search_emails", "Поиск по письмам"),
        ("Search", "Saved memories: search"),
        ("search_memory", "Deleted items are not searched"),
        ("memory_search", ""),
        ("chat_history", "Earlier chats"),
        ("recall", "What was said before"),
    ],
)
@pytest.mark.parametrize("parameter", ["userQuestion", "query", "q", "text", "question"])
def test_a_search_tool_is_called_whatever_it_searches(name, description, parameter):
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    tools = [*TOOLS, function(name, description, schema)]
    _, _, called = play(user("帮我点一份外卖"), tools=tools, results={name: "我不能吃辣"})
    assert called == [name, "GetMenu", "PlaceOrder"]


def test_a_log_is_not_given_the_request_as_an_id():
    schema = {"type": "object", "properties": {"user_id": {"type": "string"}}, "required": ["user_id"]}
    log = function("GetLastOrders", "Lists the user's last orders", schema)
    _, _, called = play({"role": "system", "content": VARY}, user("帮我点一份外卖"), tools=[*TOOLS, log])
    assert called == ["GetMenu", "PlaceOrder"]


def test_menu_forms():
    objects = read_menu(
        '[{"name": "Soup", "kind": "veg", "spicy": true}, {"name": "Stew", "kind": "meat", "spicy": false}]'
    )
    assert objects == [Dish("Soup", "veg", True, ""), Dish("Stew", "meat", False, "")]
    assert [dish.name for dish in read_menu("- Soup\n- Stew")] == ["Soup", "Stew"]
    assert [dish.name for dish in read_menu('{"dishes": ["Soup"]}')] == ["Soup"]


def test_an_unknown_dish_is_guessed_from_its_words():
    assert describe("麻辣牛肉").spicy
    assert describe("麻辣牛肉").kind == "meat"
    assert describe("Grilled chicken") == Dish("Grilled chicken", "meat", False, "")
    assert describe("Острый суп").spicy
    assert describe("Green salad") == Dish("Green salad", "veg", False, "")


def test_choice_rule():
    menu = [Dish("m1", "meat", False), Dish("m2", "meat", False), Dish("v1", "veg", False), Dish("v2", "veg", False)]

    def names(**more):
        return [
            dish.name for dish in choose(menu, ("meat", "veg"), lambda d: True, **{"liked": lambda d: False, **more})
        ]

    assert names() == ["m1", "v1"]
    assert names(liked=lambda d: d.name == "v2") == ["m1", "v2"]
    assert names(orders=[frozenset({"m1", "v1"})]) == ["m1", "v1"]
    assert names(orders=[frozenset({"m1", "v1"})], vary=True) == ["m2", "v2"]
    every = [frozenset({m, v}) for m in ("m1", "m2") for v in ("v1", "v2")]
    assert names(orders=every, vary=True) == ["m2", "v2"]
    assert choose(menu, ("meat",), lambda d: False, lambda d: False) == ()
