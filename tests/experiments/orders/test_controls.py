"""The controls: an oracle that repeats only where it must, and chance."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from memlab.experiments.orders.controls import CONTROLS
from memlab.experiments.regulars import Regular, load_regulars
from memlab.experiments.takeout import open_kitchen

LARGE, SMALL = open_kitchen("zh", "large").dishes, open_kitchen("zh", "small").dishes
regulars = st.sampled_from(load_regulars())


def orders(name: str, user: Regular, menu: tuple, seed: int, visits: int = 12) -> list[frozenset[str]]:
    choose = CONTROLS[name](user, menu, seed)
    made: list[frozenset[str]] = []
    for number in range(1, visits + 1):
        made.append(choose(tuple(reversed(made)), number))
    return made


@given(st.sampled_from(list(CONTROLS)), regulars, st.sampled_from([LARGE, SMALL]), st.integers(0, 99))
def test_a_control_orders_feasible_sets_the_same_each_time(name: str, user: Regular, menu: tuple, seed: int) -> None:
    made = orders(name, user, menu, seed)
    assert set(made) <= set(user.feasible_sets(menu))
    assert made == orders(name, user, menu, seed)


@given(regulars, st.sampled_from([LARGE, SMALL]), st.integers(0, 99))
def test_the_oracle_repeats_only_where_there_is_one_feasible_set(user: Regular, menu: tuple, seed: int) -> None:
    made = orders("oracle", user, menu, seed)
    repeats = sum(now == before for before, now in itertools.pairwise(made))
    assert repeats == (11 if len(user.feasible_sets(menu)) == 1 else 0)


@given(regulars, st.integers(0, 99))
def test_no_order_that_avoids_the_last_one_is_liked_more_than_the_oracle_s(user: Regular, seed: int) -> None:
    likes = {dish.id: user.likes(dish) for dish in LARGE}
    made = orders("oracle", user, LARGE, seed)
    for before, now in itertools.pairwise(made):
        others = [meal for meal in user.feasible_sets(LARGE) if meal != before]
        assert sum(likes[dish] for dish in now) == max(sum(likes[dish] for dish in meal) for meal in others)


def test_chance_takes_every_feasible_set() -> None:
    alice = load_regulars(1)[0]
    assert set(orders("random", alice, SMALL, 0, visits=200)) == set(alice.feasible_sets(SMALL))
