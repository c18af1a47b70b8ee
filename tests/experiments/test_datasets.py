"""Labelled conversations: the kit's own set, public benchmarks with their label faults, and own transcripts."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from memlab import InvalidInputError
from memlab.experiments.datasets import (
    Turn,
    load_locomo,
    load_longmemeval,
    load_madial,
    load_teaching_set,
    load_transcript,
)
from tests.support_sweep import shared_file


@pytest.fixture
def write(tmp_path):
    """Write values as JSON, lists of them as JSON Lines, and texts as they are."""

    def write_file(name, content):
        path = tmp_path / name
        if name.endswith("l"):
            content = "\n".join(json.dumps(each, ensure_ascii=False) for each in content)
        path.write_text(
            content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), encoding="utf-8"
        )
        return path

    return write_file


# --- turns ---


def test_a_turn_is_written_as_a_template_says():
    turn = Turn("1", "Ann", "{tea} ", created_at=datetime(2023, 5, 8, tzinfo=UTC))
    assert turn.written() == "{tea}"
    assert turn.written("{day} {speaker}: {text}") == "8 May 2023 Ann: {tea}"
    assert turn.written("[{date}] {text}") == "[2023-05-08] {tea}"
    assert Turn("1", "Ann", "tea").written("{date} {day} {text}") == "tea"


@pytest.mark.parametrize("template", ["{when}", "{", "{0}", "{text.nothing}"])
def test_a_template_that_can_not_be_filled_is_refused_with_what_it_may_use(template):
    with pytest.raises(InvalidInputError, match=r"template.*\{speaker\}"):
        Turn("1", "Ann", "tea").written(template)


# --- the teaching set ---


def test_the_teaching_set_has_people_questions_and_sound_labels():
    data = load_teaching_set()
    assert len(data.conversations) >= 12
    assert {talk.language for talk in data.conversations} == {"en", "ru", "zh"}
    assert not sum(data.faults.values())
    for talk in data.conversations:
        said = [turn for turn in talk.turns if turn.speaker == "user"]
        assert len(said) >= 60, talk.id
        assert len({turn.id for turn in talk.turns}) == len(talk.turns)
        assert [turn.created_at for turn in talk.turns] == sorted(turn.created_at for turn in talk.turns)
        for question in talk.questions:
            assert question.answerable == (question.category != "unanswerable"), (talk.id, question.id)
            assert set(question.evidence) <= {turn.id for turn in said}, (talk.id, question.id)
    assert sum(1 for _ in data.questions) >= 300


def test_a_folder_without_conversations_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="no conversation"):
        load_teaching_set(tmp_path)


# --- LoCoMo ---


def locomo(*evidence, category=4):
    said = [{"speaker": "Ann", "dia_id": f"D1:{i}", "text": f"text {i}"} for i in (1, 2)]
    later = [
        {"speaker": "Bob", "dia_id": "D11:26", "text": "look", "blip_caption": "a boat"},
        {"speaker": "Ann", "dia_id": "D11:27", "text": " "},
    ]
    talk = {
        "session_11": later,
        "session_1": said,
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_11_date_time": "soon",
    }
    asked = [{"question": "?", "answer": 7, "evidence": each, "category": category} for each in evidence]
    return [{"sample_id": "conv-1", "conversation": talk, "qa": asked}]


@pytest.mark.parametrize(
    ("evidence", "read", "faults"),
    [
        (["D1:1", "D1:2"], ("D1:1", "D1:2"), {}),
        (["D1:1; D1:2"], ("D1:1", "D1:2"), {}),
        (["D1:1 D1:2"], ("D1:1", "D1:2"), {}),
        (["D:11:26"], ("D11:26",), {}),
        (["D01:02"], ("D1:2",), {}),
        (["D1:1", "D1:1"], ("D1:1",), {}),
        (["D"], (), {"unreadable evidence": 1, "no evidence": 1}),
        (["D1:1", "D"], ("D1:1",), {"unreadable evidence": 1}),
        ([], (), {"no evidence": 1}),
        (None, (), {"no evidence": 1}),
        (["D9:9", "D1:1"], ("D1:1",), {"evidence without a turn": 1}),
        (["D11:27"], (), {"evidence without a turn": 1}),  # a turn that says nothing
    ],
)
def test_labels_of_locomo_are_read_and_faults_counted(write, evidence, read, faults):
    data = load_locomo(write("locomo.json", locomo(evidence)))
    ((_, question),) = data.questions
    assert question.evidence == read
    assert +data.faults == faults


def test_sessions_of_locomo_stand_in_their_order_with_times_and_captions(write):
    data = load_locomo(write("locomo.json", locomo(["D1:1"])))
    (talk,) = data.conversations
    assert [(turn.id, turn.session_id) for turn in talk.turns] == [("D1:1", "1"), ("D1:2", "1"), ("D11:26", "11")]
    assert talk.turns[0].created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert talk.turns[2].created_at is None
    assert talk.turns[2].text == "look [picture: a boat]"
    assert (talk.id, talk.language, talk.questions[0].category, talk.questions[0].answer) == (
        "conv-1",
        "en",
        "single-hop",
        "7",
    )


def test_adversarial_questions_have_no_answer(write):
    data = load_locomo(write("locomo.json", locomo(["D1:1"], category=5)))
    ((_, question),) = data.questions
    assert (question.category, question.answerable) == ("adversarial", False)


def test_the_real_locomo():
    data = load_locomo(shared_file("locomo_dev.json"))
    questions = [question for _, question in data.questions]
    assert (len(data.conversations), len(questions)) == (5, 999)
    assert +data.faults == {"unreadable evidence": 1, "no evidence": 2, "evidence without a turn": 1}
    assert {question.category for question in questions} == {
        "multi-hop",
        "temporal",
        "open-domain",
        "single-hop",
        "adversarial",
    }
    assert all(turn.created_at for talk in data.conversations for turn in talk.turns)


# --- MADial-Bench ---


def test_madial_asks_what_the_user_said_last_before_the_test_turn(write):
    memories = write(
        "memory.jsonl",
        [
            {"2": {"time": "2024-02-01", "event": "later", "id": "2"}},
            {"1": {"time": "2023-02-01", "event": "earlier", "id": "1"}},
            {"3": {"time": "unknown", "event": "undated", "id": "3"}},
        ],
    )
    lines = [
        "<BOD>\n",
        '<Bart>: "Hello"\n',
        '<Assistant>: "Hi"\n',
        '<Bart>: "What now?"\n',
        '<Assistant>: "Well"\n',
        '<Bart>: "Ah"\n',
    ]
    dialogues = write(
        "dialogue.jsonl",
        [
            {"dialogue": lines, "test-turn": [4], "relevant-id": [2, 1, 99]},
            {"dialogue": lines, "test-turn": [2, 4], "relevant-id": [1]},
            {"dialogue": lines, "test-turn": [1], "relevant-id": [1]},
        ],
    )
    data = load_madial(dialogues, memories, "en")
    (talk,) = data.conversations
    assert [turn.id for turn in talk.turns] == ["3", "1", "2"]
    assert [(q.ask, q.evidence) for q in talk.questions] == [("What now?", ("2", "1")), ("Hello", ("1",))]
    assert +data.faults == {"evidence without a turn": 1}


@pytest.mark.parametrize(("language", "turns"), [("en", 160), ("zh", 171)])
def test_the_real_madial(language, turns):
    names = (f"MADial-Bench-{language}-{kind}.json" for kind in ("dialogue", "memory"))
    data = load_madial(*(shared_file("madial-bench", name) for name in names), language)
    (talk,) = data.conversations
    assert (len(talk.turns), len(talk.questions)) == (turns, 160)
    assert all(question.answerable and "<" not in question.ask for question in talk.questions)
    assert not sum(data.faults.values())


# --- LongMemEval ---


def test_longmemeval_brings_a_haystack_for_each_question(write):
    session = [
        {"role": "user", "content": "I moved to Lisbon.", "has_answer": True},
        {"role": "assistant", "content": "Nice."},
    ]
    item = {
        "question_type": "single-session-user",
        "question": "Where do I live?",
        "answer": "Lisbon",
        "haystack_session_ids": ["late", "early"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/02 (Tue) 10:00"],
        "haystack_sessions": [session, [{"role": "user", "content": "Hello"}]],
    }
    data = load_longmemeval(write("l.json", [{"question_id": "q1", **item}, {"question_id": "q2_abs", **item}]))
    first, second = data.conversations
    assert [turn.id for turn in first.turns] == ["early:0", "late:0", "late:1"], "oldest first"
    assert first.turns[1].created_at == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    assert first.questions[0].evidence == ("late:0",)
    assert not second.questions[0].answerable


# --- own transcripts ---


def test_a_transcript_as_json_lines(write):
    turns = [
        {
            "id": 0,
            "text": "Nuts make me ill.\u2028Really.",
            "role": "user",
            "session": "s1",
            "time": "2026-03-02T18:30:00+08:00",
        },
        {"text": "我叫张三", "time": "2026-03-03"},
    ]
    asked = [
        {"ask": "Nuts?", "evidence": [0], "category": "food"},
        {"ask": "Name?", "evidence": "2, 0"},
        {"ask": "Age?"},
    ]
    data = load_transcript(write("chat.jsonl", turns), write("questions.jsonl", asked))
    (talk,) = data.conversations
    assert [(t.id, t.speaker, t.session_id) for t in talk.turns] == [("0", "user", "s1"), ("2", "user", "")]
    assert talk.turns[0].text.endswith("\u2028Really.")
    assert talk.turns[0].created_at == datetime(2026, 3, 2, 18, 30, tzinfo=timezone(timedelta(hours=8)))
    assert talk.turns[1].created_at == datetime(2026, 3, 3, tzinfo=UTC)
    assert [(q.id, q.evidence, q.category) for q in talk.questions] == [
        ("1", ("0",), "food"), ("2", ("2", "0"), ""), ("3", (), "")
    ]  # fmt: skip
    assert (data.name, talk.id) == ("chat", "chat")


def test_a_transcript_as_csv_from_a_spreadsheet(tmp_path):
    (tmp_path / "chat.csv").write_bytes('\ufefftext,id\r\n"Tea, please.\nNow.",a\r\n坐船,b\r\n'.encode())
    (tmp_path / "asked.csv").write_bytes(b"ask,evidence\r\nDrink?,a\r\nBoth?,a b\r\nAge?,\r\n")
    (talk,) = load_transcript(tmp_path / "chat.csv", tmp_path / "asked.csv").conversations
    assert [turn.text for turn in talk.turns] == ["Tea, please.\nNow.", "坐船"]
    assert [question.evidence for question in talk.questions] == [("a",), ("a", "b"), ()]


GOOD = [{"text": "tea"}, {"text": "boat"}]


@pytest.mark.parametrize(
    ("turns", "asked", "named"),
    [
        ([{"text": "tea"}, {"text": " "}], [], r"chat\.jsonl, row 2, has no text"),
        ([{"message": "tea"}], [], r"row 1, has no text.*column 'text'"),
        ([{"text": None}], [], "row 1, has no text"),
        ([{"text": "tea", "id": "a"}, {"text": "boat", "id": "a"}], [], "'a' twice"),
        ([{"text": "tea", "time": "yesterday"}], [], r"row 1, has the time 'yesterday'.*2026"),
        ([["tea"]], [], "row 1, is no object"),
        (GOOD, [{"ask": "?", "evidence": 1}, {"ask": "?", "evidence": 3}], r"asked\.jsonl, row 2, names the turn '3'"),
        (GOOD, [{"ask": "", "evidence": 1}], r"asked\.jsonl, row 1, has no question.*'ask'"),
    ],
)
def test_a_fault_in_an_own_file_is_an_error_that_names_the_row(write, turns, asked, named):
    with pytest.raises(InvalidInputError, match=named):
        load_transcript(write("chat.jsonl", turns), write("asked.jsonl", asked))


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "chat.jsonl").write_text('{"text": "tea"}\n\n{"text": \n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"chat\.jsonl, line 3"):
        load_transcript(tmp_path / "chat.jsonl")


@pytest.mark.parametrize("name", ["chat.csv", "chat.jsonl"])
def test_a_file_that_is_not_utf8_or_not_there_is_named(tmp_path, name):
    with pytest.raises(InvalidInputError, match=rf"{name}.*can't be read"):
        load_transcript(tmp_path / name)
    (tmp_path / name).write_bytes("text\nтекст\n".encode("cp1251"))
    with pytest.raises(InvalidInputError, match=rf"{name}.*UTF-8"):
        load_transcript(tmp_path / name)
    with pytest.raises(InvalidInputError, match="can't be read"):
        load_locomo(tmp_path / "none.json")
