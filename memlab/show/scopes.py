"""Who sees whose memories: the matrix as a figure, and checkboxes to set the scopes and watch it change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from memlab.errors import InvalidInputError
from memlab.experiments.scopes import Who, participants
from memlab.providers.memory_options import State
from memlab.show.explore import Explorer
from memlab.show.parts import shorten
from memlab.show.style import BLUE, GREEN, GREY, RED, ink, new_axes, set_alt
from memlab.stores.base import EVERYONE, SCOPE_FIELDS

_UNSEEN = "#E8E8E8"
_KINDS = (("not seen", _UNSEEN, ""), ("own", GREEN, "own"), ("same user", BLUE, "same"), ("leak", RED, "LEAK"))
_LEAK = 3


def plot_scope_matrix(
    frame: pd.DataFrame, users: Sequence[str] | None = None, ax: Axes | None = None, title: str = ""
) -> Axes:
    """Who sees whose memories: own green, another's of the same user blue, another user's a red leak, unseen pale.

    `frame`: Boolean, a row for each who asks, a column for each whose memories they are, both in the same order.
    `users`: the user of each row; by default the first word of its label.
    """
    seen, labels = _checked(frame), [str(label) for label in frame.index]
    names = [label.split()[0] for label in labels] if users is None else list(users)
    if len(names) != len(labels):
        raise InvalidInputError(f"{len(names)} users for {len(labels)} rows: one user for each row is needed")
    kinds = _kinds(seen, names)
    ax = new_axes(ax, width=max(9.0, 4.6 + 0.72 * len(labels)), height=3.4 + 0.5 * len(labels))
    colours = ListedColormap([colour for _, colour, _ in _KINDS])
    ax.pcolormesh(kinds, cmap=colours, vmin=0, vmax=len(_KINDS) - 1, edgecolors="white", linewidth=2)
    for (row, column), kind in np.ndenumerate(kinds):
        size = 13 if len(labels) <= 10 else 10
        ax.text(
            column + 0.5, row + 0.5, _KINDS[kind][2], ha="center", va="center", color="white", weight="bold", size=size
        )
    _label(ax, labels, title)
    return set_alt(ax, _in_words(kinds, title))


def _checked(frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if frame.empty or list(frame.index) != list(frame.columns):
        raise InvalidInputError(
            f"the matrix has {len(frame.index)} rows and {len(frame.columns)} columns; it needs the same "
            "participants in the same order on both sides, and at least one"
        )
    if not all(pd.api.types.is_bool_dtype(kind) for kind in frame.dtypes):
        raise InvalidInputError("the matrix must hold True and False alone: whether a row sees a column's memories")
    return frame.to_numpy(dtype=bool)


def _kinds(seen: np.ndarray[Any, np.dtype[np.bool_]], users: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions in `_KINDS`, shape (n, n)."""
    user = np.asarray(users)
    same = user[:, None] == user[None, :]
    kinds = np.where(same, 2, _LEAK)
    np.fill_diagonal(kinds, 1)
    return np.where(seen, kinds, 0)


def _label(ax: Axes, labels: Sequence[str], title: str) -> None:
    places = np.arange(len(labels)) + 0.5
    ax.set_yticks(places, [shorten(label, 28) for label in labels])
    ax.set_xticks(places, [shorten(label, 28) for label in labels], rotation=40, ha="right", rotation_mode="anchor")
    ax.set(xlabel="whose memories", ylabel="who asks", ylim=(len(labels), 0))
    ax.set_title(shorten(title, 60), pad=34)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for place, (name, colour, _) in zip((395, 0, 70, 195), _KINDS, strict=True):
        text = {"leak": "■ another user: leak"}.get(name, f"■ {name}")
        shade = GREY if colour == _UNSEEN else colour
        ax.annotate(
            text, (0, 1), (place, 5), "axes fraction", "offset points", color=ink(shade), weight="bold", size=13
        )


def _in_words(kinds: np.ndarray[Any, np.dtype[np.int64]], title: str) -> str:
    size, leaks = len(kinds), int((kinds == _LEAK).sum())
    blind = int((np.diagonal(kinds) == 0).sum())
    return (
        f"{title + ': ' if title else ''}who sees whose memories, {size} by {size}. "
        f"{leaks or 'No'} leak{'' if leaks == 1 else 's'} to another user. "
        f"{int((kinds == 2).sum())} cells of the same user elsewhere"
        + (f"; {blind} do not even see their own." if blind else "; all see their own.")
    )


# --- the explorer -----------------------------------------------------------------------------------------------


def scope_figure(storage_fields: Collection[str] = ("user_id",), search_fields: Collection[str] | None = None) -> Axes:
    """The matrix of 2 users × 2 sessions × 2 agents of one application, by the rule that stores search by.

    `storage_fields` stamp the records and `search_fields` filter the search, each some of application_id, agent_id,
    session_id and user_id; None searches by what is stored, nothing at all searches EVERYONE.
    Raises InvalidInputError for an unknown field, and as `State` does.
    """
    _check_fields([*storage_fields, *(search_fields or ())])
    who = [one for one in participants() if one.application_id == participants()[0].application_id]
    states = [_state(one, storage_fields, search_fields) for one in who]
    seen = [[_finds(asks, owner) for owner in states] for asks in states]
    labels = [f"{one.user_id} · {one.session_id} · {one.agent_id}" for one in who]
    searched = storage_fields if search_fields is None else search_fields
    title = f"stored by {_listed(storage_fields)}; searched by {_listed(searched)}"
    return plot_scope_matrix(pd.DataFrame(seen, labels, labels), [one.user_id for one in who], title=title)


def scope_explorer(
    storage_fields: Collection[str] = ("user_id",), search_fields: Collection[str] | None = None
) -> Explorer:
    """Tick the fields that stamp what is stored and those that filter a search, and watch who sees whom.

    A search field that is never stored is explained where the matrix stands otherwise.
    """
    searched = storage_fields if search_fields is None else search_fields
    _check_fields([*storage_fields, *searched])
    return _ScopeExplorer(storage_fields, searched)


class _ScopeExplorer(Explorer):
    def __init__(self, storage_fields: Collection[str], search_fields: Collection[str]) -> None:
        ticked = {"store": storage_fields, "search": search_fields}
        boxes: dict[str, widgets.ValueWidget] = {
            f"{part}_{name}": widgets.Checkbox(name in fields, description=name, indent=False)
            for part, fields in ticked.items()
            for name in SCOPE_FIELDS
        }
        super().__init__(_figure_of, boxes)
        heads = {"store": "Stored with", "search": "Searched by"}
        rows = [self._row(head, part) for part, head in heads.items()]
        self.children = [*rows, self.picture, self.caption]

    def _row(self, head: str, part: str) -> widgets.HBox:
        label = widgets.Label(head, layout=widgets.Layout(width="7em"))
        return widgets.HBox([label, *(self.controls[f"{part}_{name}"] for name in SCOPE_FIELDS)])


def _figure_of(**ticked: bool) -> Axes:
    return scope_figure(*([name for name in SCOPE_FIELDS if ticked[f"{part}_{name}"]] for part in ("store", "search")))


def _check_fields(fields: Collection[str]) -> None:
    if unknown := sorted(set(fields) - set(SCOPE_FIELDS)):
        raise InvalidInputError(f"a scope has no {', '.join(map(repr, unknown))}; it has {', '.join(SCOPE_FIELDS)}")


def _state(one: Who, storage_fields: Collection[str], search_fields: Collection[str] | None) -> State:
    search = None if search_fields is None else one.scope(search_fields) if search_fields else EVERYONE
    return State(one.scope(storage_fields), search)


def _finds(asks: State, owner: State) -> bool:
    return asks.searched is EVERYONE or asks.searched.matches(owner.storage_scope)  # type: ignore[union-attr]


def _listed(fields: Collection[str]) -> str:
    return " + ".join(name.removesuffix("_id") for name in SCOPE_FIELDS if name in fields) or "nothing (EVERYONE)"
