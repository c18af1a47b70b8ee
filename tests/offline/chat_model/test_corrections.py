"""Corrections without the full frame: a marker, a value of the right shape, and a fact told just before."""

import pytest

from memlab.offline.chat_model.book import FactBook
from memlab.offline.chat_model.facts import extract


def told(*texts):
    book = FactBook()
    for text in texts:
        book.next_turn()
        for fact in extract(text):
            book.add(fact)
    return [fact.value for fact in book.facts]


@pytest.mark.parametrize(
    ("fact", "correction", "value"),
    [
        ("My name is Jon", "sorry typo, it's Joan", "Joan"), ("I'm 14", "typo, 15", "15"), ("I'm Steven", "*Stephen", "Stephen"),  # noqa: E501
        ("I live in York", "sorry, I meant Leeds", "in Leeds"), ("I'm allergic to cats", "correction: dogs, not cats", "dogs"),  # noqa: E501
        ("меня зовут Алина", "ой опечатка, Арина", "Арина"), ("мне 13", "сорри, 14", "14"), ("я живу в Омске", "ой, не в Омске, а в Туле", "в Туле"),  # noqa: E501
        ("我叫张伟", "打错了，是章伟", "章伟"), ("我今年15", "啊不对，16", "16"), ("我住在天津", "不是天津，是北京", "北京"),  # noqa: E501
    ],
)  # fmt: skip
def test_a_correction_takes_the_place_of_the_fact_it_means(fact, correction, value):
    assert told(fact, correction) == [value]


def test_a_correction_finds_the_fact_its_value_fits():
    assert told("My name is Jon and I live in York", "typo, it's Joan") == ["in York", "Joan"]


@pytest.mark.parametrize("text", ["it's Joan", "Joan", "it's late as always", "it's freezing here"])
def test_without_a_marker_nothing_is_corrected(text):
    assert told("My name is Jon", text) == ["Jon"]


def test_a_marker_needs_a_value_of_the_right_shape():
    assert told("I'm 14", "typo, Joan") == ["14"]
    assert told("I like tea", "sorry, it's the wifi") == ["tea"]


def test_what_was_told_long_ago_is_not_corrected_by_a_bare_value():
    assert told("My name is Jon", "hm", "hm", "hm", "typo, it's Joan") == ["Jon"]
    assert told("My name is Jon", "hm", "typo, it's Joan") == ["Joan"]


def test_a_correction_of_nothing_is_nothing():
    assert told("sorry typo, it's Joan") == []
