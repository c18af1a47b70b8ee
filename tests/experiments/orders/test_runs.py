"""Runs A and B of the ordering scenario, replayed."""

import pytest

from memlab import InvalidInputError
from memlab.experiments.orders.runs import RUNS, replay_run, run_table
from memlab.experiments.orders.strategies import STRATEGIES
from memlab.experiments.takeout import LANGUAGES


@pytest.mark.parametrize("name", RUNS)
def test_in_chinese_both_runs_end_as_published(name: str) -> None:
    table = run_table(name, replay_run(name))
    assert table["same_pattern"].notna().sum() == len(RUNS[name].published)
    assert table["same_pattern"].dropna().all()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", RUNS)
def test_alice_gets_spicy_food_exactly_when_her_constraint_is_gone(name: str, language: str) -> None:
    visits = replay_run(name, language, visits=7)
    table = run_table(name, visits, language)
    alice = table[table["user"] == "Alice"]
    assert (alice["spicy"] == ~alice["constraint_in_prompt"]).all()
    if name == "A":
        assert table.loc[table["user"] == "Bob", "spicy"].all()
    else:
        assert not alice.loc[alice["visit"] <= 4, "spicy"].any()
        assert alice.loc[alice["visit"] >= 5, "spicy"].all()


@pytest.mark.parametrize("language", LANGUAGES)
def test_by_the_fourth_visit_only_requests_are_retrieved(language: str) -> None:
    table = run_table("B", replay_run("B", language, visits=6), language).set_index("visit")
    assert "order" in table.loc[2, "retrieved"]
    assert not table.loc[4:, "retrieved"].str.contains("order").any()
    assert "first request" in table.loc[4, "retrieved"]
    assert not table.loc[5:, "retrieved"].str.contains("first request").any()


def test_bob_sees_nothing_of_alice() -> None:
    bob = replay_run("A")[3:]
    assert not bob[0].retrieved
    assert all(record.scope.user_id == "Bob" for record in bob[1].retrieved)


def test_a_threshold_of_0_3_drops_the_orders_at_once() -> None:
    visits = replay_run("B", strategy=STRATEGIES["vector, threshold 0.3"])
    assert not any("order" in row for row in run_table("B", visits)["retrieved"])
    assert [visit.dishes == visit.previous[0] for visit in visits[1:4]] == [True] * 3


def test_an_unknown_run_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no run 'C'; there are A and B"):
        replay_run("C")
