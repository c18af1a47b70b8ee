"""`memlab sweep`, as a learner types it: real processes, small transcripts, the benchmarks' formats in miniature."""

import csv
import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest

from memlab.console_sweep import parse_threshold, parse_top_k
from memlab.errors import InvalidInputError
from memlab.experiments.open_dataset import open_dataset
from memlab.offline.server import Server

_DROPPED = re.compile(r"^(OPENAI|MEMLAB)|_PROXY$|^PYTHONIOENCODING$", re.IGNORECASE)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not _DROPPED.search(name)}
SAID = ["Nuts make me ill.", "The tram was late.", "My cat is called Pixel.", "I play the cello.", "Rain again today."]
ASKED = [
    ("What must I not eat?", "1"),
    ("Do I have a cat?", "3"),
    ("Which instrument do I play?", "4"),
    ("My car?", ""),
]
TINY = ("--top-k", "1-3", "--threshold", "0:0.5:3")


@pytest.fixture
def folder(tmp_path):
    """A folder with a transcript and questions on it."""
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(SAID, 1)]
    (tmp_path / "chat.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with (tmp_path / "asked.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("ask", "evidence"), *ASKED])
    return tmp_path


@pytest.fixture
def run(folder):
    """`memlab sweep …` in that folder."""

    def run_sweep(*arguments, **environ):
        command = [sys.executable, "-m", "memlab.cli", "sweep", *arguments]
        return subprocess.run(command, env=ENVIRONMENT | environ, cwd=folder, capture_output=True, timeout=180)

    return run_sweep


def out(process) -> str:
    assert process.returncode == 0, process.stderr.decode()
    assert process.stderr == b"", "a progress bar in a pipe"
    return process.stdout.decode("utf-8")


def complaint(process) -> str:
    lines = process.stderr.decode("utf-8").splitlines()
    assert process.returncode == 2, process.stderr.decode()
    assert len(lines) == 1, lines
    return lines[0]


# --- a whole run ---


def test_a_transcript_gives_a_table_pictures_and_the_best_settings(run, folder):
    said = out(run("chat.jsonl", "--questions", "asked.csv", *TINY, "--out", "found"))
    assert "chat: 1 conversations, 5 turns, 4 questions, 1 of them unanswerable" in said
    frame = pd.read_csv(folder / "found" / "sweep.csv")
    everyone = frame[frame["group"] == "all"]
    assert sorted(set(everyone["rank"])) == ["bm25", "cosine", "hybrid"]
    assert sorted(set(everyone["top_k"])) == [1, 2, 3]
    assert sorted(set(everyone["threshold"])) == [0, 0.25, 0.5]
    assert len(everyone) == 3 * 3 * 3
    for name in ("recall_cosine", "recall_bm25", "recall_hybrid", "precision_recall", "tokens_recall"):
        assert (folder / "found" / f"{name}.png").read_bytes().startswith(b"\x89PNG"), name
        assert f"{name}.png" in said
    assert not list((folder / "found").glob("*.part"))
    best = everyone.loc[everyone[everyone["rank"] == "cosine"]["f1"].idxmax()]
    row = re.search(r"^ *cosine +use-multilingual +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +\d+$", said, re.M)
    assert row, said
    assert int(row[1]) == best["top_k"]
    assert float(row[2]) == pytest.approx(best["threshold"])
    assert float(row[3]) == pytest.approx(best["f1"], abs=0.0006)
    assert "Chosen on the questions they are measured with" in said
    assert "interval" not in said, "one conversation has none"


def test_rankings_templates_and_embedders_of_ones_own_choice(run, folder):
    arguments = ("--rank", "bm25,newest", "--embedder", "lexical-hashing", "--template", "{text}", "{speaker}: {text}")
    said = out(run("chat.jsonl", "--questions", "asked.csv", *arguments, "--top-k", "2", "--threshold", "none"))
    frame = pd.read_csv(folder / "memlab-sweep" / "sweep.csv")
    assert set(frame["template"]) == {"{text}", "{speaker}: {text}"}
    assert set(frame["rank"]) == {"bm25", "newest"}
    assert set(frame["embedder"]) == {"lexical-hashing"}
    assert re.search(r"newest +lexical-hashing +\{speaker\}: \{text\} +2 +none", said)


def test_recall_comes_with_an_interval_over_the_conversations(run, folder):
    asked = [{"id": "q1", "ask": "Cat?", "evidence": ["s1:1"], "category": "single"}]
    for name, said in (("a", "A cat is here."), ("b", "Dogs only.")):
        turns = [{"id": f"s1:{n}", "role": "user", "text": text} for n, text in enumerate([said, "A grey cat."], 1)]
        sessions = [{"id": "s1", "date": "2026-03-02T18:30:00+00:00", "turns": turns}]
        talk = {"id": name, "language": "en", "sessions": sessions, "questions": asked}
        (folder / "talks").mkdir(exist_ok=True)
        (folder / "talks" / f"{name}.json").write_text(json.dumps(talk), encoding="utf-8")
    said = out(run("talks", "--rank", "bm25", "--top-k", "1", "--threshold", "none"))
    assert re.search(r"bm25 +- +1 +none +0.500 +0.500 \[0.00, 1.00\]", said), said
    assert "a bootstrap over 2 conversations: so few make a rough one" in said


def test_two_jobs_find_what_one_finds(run, folder):
    base = ("chat.jsonl", "--questions", "asked.csv", *TINY, "--embedder", "lexical-hashing")
    out(run(*base, "--out", "one"))
    out(run(*base, "--out", "two", "--jobs", "2"))
    assert (folder / "one" / "sweep.csv").read_bytes() == (folder / "two" / "sweep.csv").read_bytes()


# --- live ---


def test_live_shows_the_price_first_spends_nothing_without_yes_and_pays_once(run):
    with Server(port=0, api_key="secret") as server:
        live = {
            "MEMLAB_MODE": "live",
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "secret",
            "MEMLAB_EMBEDDING_MODEL": "lexical-hashing",
        }
        base = ("chat.jsonl", "--questions", "asked.csv", *TINY)
        refused = complaint(run(*base, **live))
        assert re.search(r"about \d+ tokens with lexical-hashing costs about \$0.0000 .*--yes", refused)
        unknown = complaint(run(*base, "--embedder", "no-price", **live))
        assert "an unknown price: add --yes" in unknown
        assert sum(server.counts.values()) == 0
        out(run(*base, "--rank", "bm25", **live))
        assert sum(server.counts.values()) == 0, "bm25 asks no embedding model"
        out(run(*base, "--yes", **live))
        assert sum(server.counts.values()) == 2, "the turns, the questions"
        out(run(*base, **live))
        assert sum(server.counts.values()) == 2, "all vectors are in the cache, so there is no price to agree to"


# --- what can't be ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.json",), "there is no file nowhere.json"),
        (("chat.jsonl",), "--questions FILE"),
        (("chat.jsonl", "--questions", "none.csv"), "there is no file none.csv"),
        (("--questions", "asked.csv"), "belongs to a transcript"),
        (("--rank", "best"), "--rank is 'best'; it takes cosine, bm25"),
        (("--top-k", "0-3"), "--top-k is '0-3'"),
        (("--threshold", "0:2:5"), "--threshold is '0:2:5'"),
        (("--jobs", "0"), "--jobs is 0"),
        (("chat.jsonl", "--questions", "asked.csv", "--embedder", "nope"), "there is no embedding model nope"),
        (("chat.jsonl", "--questions", "asked.csv", "--out", "asked.csv"), "--out asked.csv can't be a folder"),
        (("chat.jsonl", "--questions", "asked.csv", "--template", "{who}"), "{who}"),
    ],
)
def test_wrong_use_is_one_line(run, arguments, said):
    assert said in complaint(run(*arguments))


def test_the_help_names_every_option(run):
    said = out(run("--help"))
    for option in ("questions", "rank", "embedder", "top-k", "threshold", "template", "out", "jobs", "yes"):
        assert f"--{option}" in said


@pytest.mark.parametrize("text", ["", "a", "3-1", "0", "1,,2", "-1", "1.5", "1-99999"])
def test_no_top_k(text):
    with pytest.raises(InvalidInputError, match="--top-k"):
        parse_top_k(text)


@pytest.mark.parametrize("text", ["", "a", "0:1", "0:1:0", "1:0:5", "0:1:2.5", "0:1:2,3", "nan", "2"])
def test_no_threshold(text):
    with pytest.raises(InvalidInputError, match="--threshold"):
        parse_threshold(text)


def test_grids():
    assert parse_top_k("1-3,6,2") == [1, 2, 3, 6]
    assert parse_threshold("0:1:3") == [0, 0.5, 1]
    assert parse_threshold("-0.5,0.3") == [-0.5, 0.3]
    assert parse_threshold("none") is None


# --- datasets by their contents ---


def write(path, value) -> str:
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def test_locomo_and_longmemeval_are_told_apart_by_their_keys(tmp_path):
    turn = {"speaker": "A", "dia_id": "D1:1", "text": "I have a cat."}
    talk = {"speaker_a": "A", "session_1_date_time": "1:00 pm on 8 May, 2023", "session_1": [turn]}
    asked = {"question": "A pet?", "answer": "a cat", "evidence": ["D1:1"], "category": 4}
    locomo = open_dataset(write(tmp_path / "a.json", [{"sample_id": "x", "qa": [asked], "conversation": talk}]))
    assert (locomo.name, locomo.conversations[0].questions[0].evidence) == ("LoCoMo", ("D1:1",))
    haystack = {
        "question_id": "q",
        "question_type": "single",
        "question": "A pet?",
        "answer": "a cat",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["s"],
        "haystack_sessions": [[{"role": "user", "content": "I have a cat.", "has_answer": True}]],
    }
    assert open_dataset(write(tmp_path / "b.json", [haystack])).name == "LongMemEval"


def test_madial_takes_its_two_files_in_any_order(tmp_path):
    memories = write(tmp_path / "m.json", {"1": {"time": "2023-12-25", "event": "Bart danced."}})
    said = ["<BOD>\n", '<Bart>: "I will dance."\n', '<Assistant>: "As in December?"\n']
    dialogues = write(tmp_path / "d.json", {"dialogue": said, "test-turn": [2], "relevant-id": [1]})
    for paths in ((memories, dialogues), (dialogues, memories)):
        found = open_dataset(*paths)
        assert found.conversations[0].questions[0].ask == "I will dance."
        assert found.conversations[0].turns[0].text == "Bart danced."


def test_the_teaching_set_by_name_and_a_folder_in_its_format(tmp_path):
    assert open_dataset("teaching").name == "teaching set"
    with pytest.raises(InvalidInputError, match="there is no conversation"):
        open_dataset(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}', "neither LoCoMo"),
        ('[{"qa": [], "conversation": 3}]', "not in a known format"),
        ('[{"haystack_dates": []}]', "not in a known format"),
        ('[{"qa": ', "can't be read as JSON"),
        ('[{"qa": [], "conversation": {}}]', "has no questions"),
    ],
)
def test_a_file_in_no_known_format_is_refused(tmp_path, content, message):
    path = tmp_path / "file.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        open_dataset(str(path))


def test_three_paths_are_too_many(tmp_path):
    with pytest.raises(InvalidInputError, match="3 datasets"):
        open_dataset("a", "b", "c")
