"""The skill that orders a meal with two tools: read the menu, place the order, report it."""

from __future__ import annotations

import re
from typing import Any

from memlab.offline.chat_model import search_tool, wording
from memlab.offline.chat_model.choice import choose
from memlab.offline.chat_model.conversation import Conversation, Exchange, Tool
from memlab.offline.chat_model.dishes import Dish, read_menu
from memlab.offline.chat_model.order_forms import order_arguments, ordered_dishes, orders_in_view
from memlab.offline.chat_model.tastes import MOST_PORTIONS, constraint, forbids, mentions, wanted_kinds, wishes
from memlab.offline.chat_model.text import fold
from memlab.offline.chat_model.turn import Call, Turn

_MENU = re.compile(r"menu|菜单|меню", re.I)
_PLACE = re.compile(r"place.?order|order|下单|订餐|点餐|заказ", re.I)
_LOG = re.compile(
    r"(?:last|recent|past|previous|history).{0,20}order|order.{0,10}(?:log|history)|最近.{0,6}订单|历史订单|上.{0,3}订单|последн.{0,12}заказ|истори.{0,6}заказ",
    re.I,
)
SAY: dict[str, dict[str, str]] = {
    "zh": {"done": "✅ 已为你下单。{d}。搭配得很好，清爽又营养，祝你用餐愉快！", "meat": "荤菜：", "veg": "素菜：", "join": "，",  # noqa: E501
           "none": "抱歉，菜单上没有符合你要求的菜，所以我没有下单。", "no_tools": "我现在没有可用的菜单和下单工具，所以不能帮你点餐。",  # noqa: E501
           "no_menu": "抱歉，我没能读到菜单，所以没有下单。", "left_out": "菜单上没有你能吃的{k}，所以没有点。", "k_meat": "荤菜", "k_veg": "素菜"},  # noqa: E501
    "en": {"done": "✅ Your order is placed. {d}. A lovely, balanced choice. Enjoy your meal!", "meat": "Meat dish: ", "veg": "Vegetable dish: ", "join": "; ",  # noqa: E501
           "none": "Sorry, nothing on the menu meets your needs, so I have not ordered.", "no_tools": "I have no menu and ordering tools here, so I can't order for you.",  # noqa: E501
           "no_menu": "Sorry, I could not read the menu, so I have not ordered.", "left_out": "There is no {k} on the menu that suits you, so I left it out.", "k_meat": "meat dish", "k_veg": "vegetable dish"},  # noqa: E501
    "ru": {"done": "✅ Заказ оформлен. {d}. Отличное, сбалансированное сочетание. Приятного аппетита!", "meat": "Мясное: ", "veg": "Овощное: ", "join": "; ",  # noqa: E501
           "none": "К сожалению, в меню нет ничего подходящего, поэтому я ничего не заказываю.", "no_tools": "У меня здесь нет меню и инструмента заказа, поэтому заказать не получится.",  # noqa: E501
           "no_menu": "К сожалению, прочитать меню не удалось, поэтому заказа нет.", "left_out": "В меню нет подходящего блюда ({k}), поэтому его в заказе нет.", "k_meat": "мясное", "k_veg": "овощное"},  # noqa: E501
}  # fmt: skip


def order(conversation: Conversation) -> Turn | None:
    """The next step of an order: search, menu, order, report; None when no order was asked for."""
    placed = last_result(conversation, is_place)
    if placed is not None:
        return report(conversation, placed)
    if not wording.asks_order(conversation.question) or _asks_about_orders(conversation.question):
        return None
    menu_tool = next((tool for tool in conversation.tools if is_menu(tool.name, tool.description)), None)
    place_tool = next((tool for tool in conversation.tools if is_place(tool.name, tool.description)), None)
    menu = last_result(conversation, is_menu)
    if menu is None:
        return _first_calls(conversation, menu_tool, place_tool)
    return _place(conversation, menu, place_tool)


def is_menu(name: str, description: str = "") -> bool:
    """A menu tool: its name says so, or its description when the name says nothing of an order."""
    return bool(_MENU.search(name)) or (
        bool(_MENU.search(description)) and not _PLACE.search(name) and not _LOG.search(name)
    )


def is_log(name: str, description: str = "") -> bool:
    """A tool that lists earlier orders."""
    return bool(_LOG.search(re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " "))) or bool(
        _LOG.search(description) and not _PLACE.search(name)
    )


def is_place(name: str, description: str = "") -> bool:
    """A tool that places an order."""
    return (
        not is_menu(name, description)
        and not is_log(name, description)
        and bool(_PLACE.search(name) or re.search(r"place an order|下单|оформ\w+ заказ", description, re.I))
    )


def last_result(conversation: Conversation, is_kind: Any) -> Exchange | None:
    """The latest exchange of this turn with a tool of one kind, once its result is there."""
    descriptions = {tool.name: tool.description for tool in conversation.tools}
    done = [
        ex for ex in conversation.exchanges if ex.result is not None and is_kind(ex.name, descriptions.get(ex.name, ""))
    ]
    return done[-1] if done else None


_ABOUT_ORDERS = re.compile(
    r"\b(?:what|which|when|did|have)\b.{0,20}\bi\b.{0,15}\border(?:ed)?\b|我.{0,8}(?:点|订)(?:过|了)(?:什么|哪)|我.{0,6}(?:之前|上次).{0,6}点.{0,4}(?:什么|啥|哪)|что я.{0,20}заказыва",  # noqa: E501
    re.I,
)


def _asks_about_orders(text: str) -> bool:
    return bool(_ABOUT_ORDERS.search(fold(text)[:1000]))


def _first_calls(conversation: Conversation, menu_tool: Tool | None, place_tool: Tool | None) -> Turn:
    """What has to be looked up before choosing: preferences, earlier orders, the menu."""
    if menu_tool is None or place_tool is None:
        return Turn(SAY[conversation.lang]["no_tools"], skill="order")
    needs = not any(constraint(fact) for fact in [*conversation.facts.facts, *wishes(conversation)])
    searched = search_tool.call_search(conversation) if needs else None
    if searched is not None:
        return searched
    log = next((tool for tool in conversation.tools if is_log(tool.name, tool.description) and _fillable(tool)), None)
    calls = [
        Call(tool.name, _filled(tool, conversation.question))
        for tool in (log, menu_tool)
        if tool is not None and not _called(conversation, tool.name)
    ]
    if not calls:
        return Turn(SAY[conversation.lang]["no_menu"], skill="order")
    single = conversation.request.get("parallel_tool_calls") is False
    return Turn(None, tuple(calls[:1] if single else calls), skill="order")


def _fillable(tool: Tool) -> bool:
    """A tool that only looks something up, with what is known of it."""
    return search_tool.only_looks_up(tool) and (not tool.required or search_tool.parameter(tool) is not None)


def _filled(tool: Tool, question: str) -> dict[str, Any]:
    """Arguments of a tool that looks something up: none, or the question where it wants one text."""
    name = search_tool.parameter(tool)
    return {name: question} if name else {}


def _called(conversation: Conversation, name: str) -> bool:
    return any(exchange.name == name for exchange in conversation.exchanges)


def _place(conversation: Conversation, menu: Exchange, place_tool: Tool | None) -> Turn:
    """Choose and call the order tool, or say why not."""
    lang = conversation.lang
    if search_tool.failed(menu.result):
        return Turn(search_tool.failure(menu.result or "", lang), skill="order")
    dishes = read_menu(menu.result or "")
    if not dishes or place_tool is None:
        return Turn(SAY[lang]["no_menu" if not dishes else "no_tools"], skill="order")
    meal = pick(conversation, dishes)
    if not meal:
        return Turn(SAY[lang]["none"], skill="order")
    return Turn(None, (Call(place_tool.name, order_arguments(place_tool, meal)),), skill="order")


def pick(conversation: Conversation, menu: list[Dish]) -> tuple[Dish, ...]:
    """Collect what the choice depends on, all of it in view, and choose."""
    facts = [*conversation.facts.facts, *wishes(conversation)]
    seed = conversation.request.get("seed")
    named = [dish for dish in menu if fold(dish.name).lower() in fold(conversation.question).lower()]
    allowed = [dish for dish in named if not any(forbids(fact, dish) for fact in facts)]
    if allowed:
        return tuple(allowed[:MOST_PORTIONS])
    return choose(
        menu,
        wanted_kinds(conversation),
        lambda dish: not any(forbids(fact, dish) for fact in facts),
        lambda dish: any(fact.kind == "like" and mentions(fact, dish) for fact in facts),
        orders_in_view(conversation, [dish.name for dish in menu]),
        any(wording.asks_variety(line.text) for line in conversation.everything if line.speaker != "assistant"),
        seed if isinstance(seed, int) else None,
    )


def report(conversation: Conversation, placed: Exchange) -> Turn:
    """Name dishes and quantities (tool calls aren't stored, so a memory can only see the reply)."""
    lang, words = conversation.lang, SAY[conversation.lang]
    if search_tool.failed(placed.result):
        return Turn(search_tool.failure(placed.result or "", lang), skill="order")
    menu = last_result(conversation, is_menu)
    kinds = {dish.name: dish.kind for dish in read_menu((menu.result if menu else "") or "")}
    ordered = ordered_dishes(placed.arguments)
    parts = [f"{words[kinds.get(name, 'veg')]}{name}×{count}" for name, count in ordered.items()]
    text = words["done"].replace("{d}", words["join"].join(parts))
    left_out = (
        sorted(set(wanted_kinds(conversation)) - {kinds.get(name) for name in ordered})
        if kinds and len(ordered) < 2
        else []
    )
    notes = [words["left_out"].replace("{k}", words[f"k_{kind}"]) for kind in left_out]
    return Turn(("" if lang == "zh" else " ").join([text, *notes]), skill="order")
