"""`memlab tour` tells the story with every claim checked, and its exit code says whether all held."""

import io

from rich.console import Console

import memlab
from memlab import tour
from memlab.experiments import hundred_turns


def run_tour():
    screen = io.StringIO()
    held = tour.run(Console(file=screen, width=120))
    return held, screen.getvalue()


def test_every_claim_holds_offline():
    memlab.connect("offline")
    held, text = run_tour()
    assert held, text
    assert "✗" not in text
    for words in ("张三", "context_length_exceeded", "grows quadratically", "vector memory", "a restart loses"):
        assert words in text


def test_a_claim_that_fails_is_shown_and_told(monkeypatch):
    memlab.connect("offline")
    talk = hundred_turns.load_conversation()
    short = hundred_turns.Conversation(talk.turns[:6], talk.probes[:3])
    monkeypatch.setattr(hundred_turns, "load_conversation", lambda: short)
    held, text = run_tour()
    assert not held  # six turns overflow no window
    assert "✗" in text
