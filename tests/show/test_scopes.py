"""The scope matrix says who leaks to whom, and the checkboxes redraw what the rule of the stores says."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from memlab import connect, show
from memlab.errors import InvalidInputError
from memlab.experiments import scopes
from memlab.show.style import BLUE, GREEN, RED, png

LABELS = ["alice · s1", "alice · s2", "bob · s1"]
SEEN = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=bool)


def frame(seen: np.ndarray = SEEN, labels: list[str] = LABELS) -> pd.DataFrame:
    return pd.DataFrame(seen, index=labels, columns=labels)


def colours(ax) -> np.ndarray:
    """The colour of each cell, shape (n, n, 4)."""
    mesh = ax.collections[0]
    size = len(ax.get_yticks())
    return mesh.to_rgba(mesh.get_array()).reshape(size, size, 4)


def test_own_same_user_leak_and_unseen_have_colours_and_words_of_their_own() -> None:
    ax = show.plot_scope_matrix(frame(), title="broken")
    cells = colours(ax)
    assert tuple(cells[0, 0]) == to_rgba(GREEN)
    assert tuple(cells[0, 1]) == to_rgba(BLUE)
    assert tuple(cells[1, 2]) == to_rgba(RED)
    assert cells[2, 0, :3].min() > 0.8  # pale
    words = {text.get_position(): text.get_text() for text in ax.texts if text.get_text() in ("own", "same", "LEAK")}
    assert words == {(0.5, 0.5): "own", (1.5, 0.5): "same", (1.5, 1.5): "own", (2.5, 1.5): "LEAK", (2.5, 2.5): "own"}
    assert [label.get_text() for label in ax.get_yticklabels()] == LABELS
    assert [label.get_text() for label in ax.get_xticklabels()] == LABELS
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title("left")) == ("who asks", "whose memories", "broken")


def test_the_alt_text_counts_the_leaks() -> None:
    assert "broken: who sees whose memories, 3 by 3. 1 leak to another user." in show.describe(
        show.plot_scope_matrix(frame(), title="broken")
    )
    everything = show.describe(show.plot_scope_matrix(frame(np.ones((3, 3), dtype=bool))))
    assert "4 leaks" in everything
    assert "all see their own" in everything
    nothing = show.describe(show.plot_scope_matrix(frame(np.zeros((3, 3), dtype=bool))))
    assert "No leaks" in nothing
    assert "3 do not even see their own" in nothing


def test_users_say_whose_row_it_is_where_labels_do_not() -> None:
    one_user = show.plot_scope_matrix(frame(), users=["x", "x", "x"])
    assert "No leaks" in show.describe(one_user)
    three = show.plot_scope_matrix(frame(), users=["x", "y", "z"])
    assert "2 leaks" in show.describe(three)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: show.plot_scope_matrix(pd.DataFrame()), "0 rows"),
        (lambda: show.plot_scope_matrix(frame().iloc[:2]), "2 rows and 3 columns"),
        (lambda: show.plot_scope_matrix(frame()[LABELS[::-1]]), "same participants in the same order"),
        (lambda: show.plot_scope_matrix(frame(SEEN.astype(float))), "True and False alone"),
        (lambda: show.plot_scope_matrix(frame(), users=["alice"]), "1 users for 3 rows"),
        (lambda: show.scope_figure(["user"]), "a scope has no 'user'"),
        (lambda: show.scope_explorer(["user_id"], ["users"]), "a scope has no 'users'"),
        (lambda: show.scope_figure([]), "sets no field"),
        (lambda: show.scope_figure(["user_id"], ["session_id"]), "sets session_id, which the storage scope leaves out"),
    ],
)
def test_what_is_no_matrix_and_no_scope_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


# --- the figure from scopes ---

CASES = [
    (["user_id"], None, "No leaks", 24),
    (["agent_id"], None, "16 leaks", 8),
    (["application_id"], None, "32 leaks", 24),
    (["user_id", "session_id"], None, "No leaks", 8),
    (["user_id", "session_id"], ["session_id"], "16 leaks", 8),
    (["application_id", "agent_id", "session_id", "user_id"], None, "No leaks", 0),
    (["user_id"], [], "32 leaks", 24),
]


@pytest.mark.parametrize(("stored", "searched", "leaks", "same_user"), CASES)
def test_the_figure_shows_who_would_see_whom(
    stored: list[str], searched: list[str] | None, leaks: str, same_user: int
) -> None:
    text = show.describe(show.scope_figure(stored, searched))
    assert "8 by 8" in text
    assert f"{leaks} to another user" in text
    assert f"{same_user} cells of the same user elsewhere; all see their own" in text


@pytest.mark.parametrize(("stored", "searched"), [(["agent_id"], None), (["user_id", "session_id"], ["session_id"])])
async def test_the_rule_gives_the_matrix_that_agents_give(stored: list[str], searched: list[str] | None) -> None:
    who = [one for one in scopes.participants() if one.application_id == "web"]
    asked = await scopes.who_sees_whom(connect("offline"), stored, searched, who)
    ax = show.plot_scope_matrix(asked, users=[one.user_id for one in who])
    assert (colours(ax) == colours(show.scope_figure(stored, searched))).all()


# --- the explorer ---


def test_the_explorer_shows_its_static_twin_and_follows_the_checkboxes() -> None:
    explorer = show.scope_explorer(["user_id", "agent_id"])
    assert explorer.picture.value == png(show.scope_figure(["user_id", "agent_id"], ["user_id", "agent_id"]))
    assert "No leaks" in explorer.caption.value
    explorer.controls["search_user_id"].value = False
    assert "16 leaks" in explorer.caption.value
    assert explorer.picture.value == png(show.scope_figure(["user_id", "agent_id"], ["agent_id"]))
    explorer.controls["search_agent_id"].value = False
    assert "32 leaks" in explorer.caption.value


def test_a_search_field_that_is_not_stored_is_explained_in_place_of_the_picture() -> None:
    explorer = show.scope_explorer()
    explorer.controls["search_session_id"].value = True
    assert "the search scope sets session_id, which the storage scope leaves out" in explorer.caption.value
    assert explorer.picture.value == b""
    assert explorer.picture.layout.display == "none"
    explorer.controls["store_session_id"].value = True
    assert "No leaks" in explorer.caption.value
    assert explorer.picture.value == png(show.scope_figure(["user_id", "session_id"], ["user_id", "session_id"]))
    assert explorer.picture.layout.display is None


def test_every_checkbox_is_shown_under_its_name() -> None:
    explorer = show.scope_explorer()
    stored, searched = explorer.children[:2]
    for row in (stored, searched):
        assert [box.description for box in row.children[1:]] == ["application_id", "agent_id", "session_id", "user_id"]
    assert (stored.children[0].value, searched.children[0].value) == ("Stored with", "Searched by")
