"""The take-out agent of lessons 6, 7 and 9: a menu, an order tool, and users with tastes of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from memlab.agent import Agent
from memlab.assets import data_path
from memlab.errors import InvalidInputError
from memlab.providers.base import ContextProvider
from memlab.response import AgentResponse, ChatClient
from memlab.session import AgentSession
from memlab.tools import FunctionTool, record_event, tool

LANGUAGES = ("zh", "en", "ru")
MENUS = ("small", "large")
MOST_PORTIONS = 3


@dataclass(frozen=True)
class Dish:
    """A dish under its canonical id; `kind` is "meat" or "veg" (eggs count as meat here).

    `shown` is what the menu tool tells of it: its name, or an object that says more.
    """

    id: str
    kind: str
    spicy: bool
    name: str
    ingredients: tuple[str, ...] = ()
    shown: Any = field(default="", compare=False)


@dataclass
class Kitchen:
    """One language's menu and texts, and the orders that were placed.

    `orders` holds each placed order as dish ids with quantities, oldest first. With `logs_orders`, a placed order is
    also an event of the kind "order", which a memory provider stores as a record.
    """

    dishes: tuple[Dish, ...]
    texts: dict[str, str]
    orders: list[dict[str, int]] = field(default_factory=list)
    logs_orders: bool = False

    def dish(self, name: str) -> Dish:
        """The dish of that name. Raises InvalidInputError, which the model gets to read."""
        found = next((dish for dish in self.dishes if dish.name == name), None)
        if found is None:
            raise InvalidInputError(f"{name!r} is not on the menu; it has {', '.join(d.name for d in self.dishes)}")
        return found

    def tools(self) -> list[FunctionTool]:
        """The two tools of the agent, under the names that the original scenario gives them."""

        def get_menu() -> list[Any]:
            return [dish.shown for dish in self.dishes]

        def place_order(orderItems: dict[str, int]) -> list[dict[str, Any]]:  # noqa: N803 - the model sees it
            order = {self.dish(name).id: count for name, count in orderItems.items()}
            if not order or min(order.values()) < 1:
                raise InvalidInputError(f"orderItems is {orderItems}; it needs dishes with quantities of at least 1")
            self.orders.append(order)
            if self.logs_orders:
                record_event("order", self.named(order))
            return [{"dishName": name, "quantity": count} for name, count in orderItems.items()]

        menu = tool(name="GetMenu", description=self.texts["menu_description"])(get_menu)
        return [menu, tool(name="PlaceOrder", description=self.texts["order_description"])(place_order)]

    def agent(self, client: ChatClient, providers: Sequence[ContextProvider] = (), **options: Any) -> Agent:
        """The agent `delivery-order`."""
        return Agent(
            client,
            self.texts["instructions"],
            name="delivery-order",
            tools=self.tools(),
            context_providers=providers,
            **options,
        )

    def spicy(self, order: dict[str, int]) -> bool:
        """Whether an order holds anything spicy."""
        return any(dish.spicy for dish in self.dishes if dish.id in order)

    def named(self, order: dict[str, int]) -> str:
        """An order as text, in the language of the menu."""
        return ", ".join(f"{dish.name}×{order[dish.id]}" for dish in self.dishes if dish.id in order)


def open_kitchen(language: str = "zh", menu: str = "small", logs_orders: bool = False) -> Kitchen:
    """A kitchen that has no orders yet, in "zh", "en" or "ru".

    `menu` is "small", the seven dishes of the original scenario, told by their names, or "large", twenty dishes,
    told with kind, spiciness and ingredients.
    """
    if language not in LANGUAGES:
        raise InvalidInputError(f"language is {language!r}; the scenario is written in {', '.join(LANGUAGES)}")
    if menu not in MENUS:
        raise InvalidInputError(f"menu is {menu!r}; there are {' and '.join(MENUS)}")
    texts, large = scenario("takeout")["languages"][language], scenario("regulars")
    known = {dish["id"]: dish for dish in large["dishes"]}
    if menu == "large":
        dishes = [_dish(dish, language, _shown(dish, language, large)) for dish in large["dishes"]]
    else:
        dishes = [_dish({**known.get(d["id"], {}), **d}, language, d[language]) for d in scenario("takeout")["dishes"]]
    return Kitchen(tuple(dishes), texts, logs_orders=logs_orders)


def _dish(data: Mapping[str, Any], language: str, shown: Any) -> Dish:
    return Dish(data["id"], data["kind"], data["spicy"], data[language], tuple(data.get("ingredients", ())), shown)


def _shown(dish: Mapping[str, Any], language: str, scenario: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": dish[language],
        "kind": scenario["words"][dish["kind"]][language],
        "spicy": dish["spicy"],
        "ingredients": [scenario["ingredients"][name][language] for name in dish["ingredients"]],
    }


@cache
def scenario(name: str) -> dict[str, Any]:
    """A file of `data/scenarios`, read once."""
    loaded: dict[str, Any] = json.loads(data_path("scenarios", f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def user_of(session: AgentSession) -> str:
    """The user that a session belongs to. Raises InvalidInputError when nobody set one."""
    if "user_id" not in session.state:
        raise InvalidInputError("User ID not found in session state.")
    return str(session.state["user_id"])


async def visit(agent: Agent, user_id: str, request: str) -> AgentResponse:
    """A user comes back: one request in a new session."""
    session = agent.create_session()
    session.state["user_id"] = user_id
    return await agent.run(request, session=session)
