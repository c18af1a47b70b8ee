"""The take-out agent of lessons 6, 7 and 9: a menu, an order tool, and users with tastes of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from memlab.agent import Agent
from memlab.assets import data_path
from memlab.errors import InvalidInputError
from memlab.providers.base import ContextProvider
from memlab.response import AgentResponse, ChatClient
from memlab.session import AgentSession
from memlab.tools import FunctionTool, tool

LANGUAGES = ("zh", "en", "ru")


@dataclass(frozen=True)
class Dish:
    """A dish under its canonical id; `kind` is "meat" or "veg" (eggs count as meat here)."""

    id: str
    kind: str
    spicy: bool
    name: str


@dataclass
class Kitchen:
    """One language's menu and texts, and the orders that were placed.

    `orders` holds each placed order as dish ids with quantities, oldest first.
    """

    dishes: tuple[Dish, ...]
    texts: dict[str, str]
    orders: list[dict[str, int]] = field(default_factory=list)

    def dish(self, name: str) -> Dish:
        """The dish of that name. Raises InvalidInputError, which the model gets to read."""
        found = next((dish for dish in self.dishes if dish.name == name), None)
        if found is None:
            raise InvalidInputError(f"{name!r} is not on the menu; it has {', '.join(d.name for d in self.dishes)}")
        return found

    def tools(self) -> list[FunctionTool]:
        """The two tools of the agent, under the names that the original scenario gives them."""

        def get_menu() -> list[str]:
            return [dish.name for dish in self.dishes]

        def place_order(orderItems: dict[str, int]) -> list[dict[str, Any]]:  # noqa: N803 - the model sees it
            order = {self.dish(name).id: count for name, count in orderItems.items()}
            if not order or min(order.values()) < 1:
                raise InvalidInputError(f"orderItems is {orderItems}; it needs dishes with quantities of at least 1")
            self.orders.append(order)
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


def open_kitchen(language: str = "zh") -> Kitchen:
    """A kitchen that has no orders yet, in "zh", "en" or "ru"."""
    if language not in LANGUAGES:
        raise InvalidInputError(f"language is {language!r}; the scenario is written in {', '.join(LANGUAGES)}")
    data = _scenario()
    dishes = tuple(Dish(d["id"], d["kind"], d["spicy"], d[language]) for d in data["dishes"])
    return Kitchen(dishes, data["languages"][language])


@cache
def _scenario() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(data_path("scenarios", "takeout.json").read_text(encoding="utf-8"))
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
