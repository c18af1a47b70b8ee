"""Phrases by somebody who had not seen the rules: at least 90 % right, no language under 80 %, nothing invented.

The set was scored once, when the rules were done, and no rule was changed for it.
"""

from pathlib import Path

import pytest

from tests.offline.chat_model.phrases import load, run_case

DATA = Path(__file__).parents[2] / "data"
LANGUAGES = ("zh", "en", "ru")


@pytest.fixture(scope="module")
def results():
    cases = {language: load(DATA / f"heldout2_{language}.jsonl") for language in LANGUAGES}
    return {language: [(case, *run_case(case)) for case in group] for language, group in cases.items()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_forty_phrases_and_four_fifths_right(results, language):
    judged = results[language]
    assert len(judged) >= 40
    assert sum(right for _, right, _ in judged) / len(judged) >= 0.8


def test_nine_of_ten_right_in_all(results):
    judged = [right for group in results.values() for _, right, _ in group]
    assert sum(judged) / len(judged) >= 0.9


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_fact_is_invented(results, language):
    for case, _, reply in results[language]:
        if case.get("unknown"):
            assert not any(text.lower() in reply.lower() for text in case.get("reject", [])), (case["id"], reply)
