"""`memlab orders` in a terminal: a table, a file of visits, a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.cli import main
from memlab.experiments.orders.parts import Part, run_part
from memlab.experiments.orders.results import FILE_NAME, read_visits
from memlab.experiments.repeated_order import EVERYTHING
from memlab.settings import Lab

SMALL = ["--users", "2", "--visits", "4", "--language", "zh", "--chat-turns", "1", "--jobs", "1"]


def test_it_lists_the_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["orders", "--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EVERYTHING)


def test_it_prints_a_table_and_writes_visits_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["orders", "vector, top 3", "order log + tastes", "oracle", *SMALL, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "order log + tastes" in printed
    assert "24 visits; means over 1 setting of language and chats" in printed
    assert len(read_visits(tmp_path / FILE_NAME)) == 3 * 2 * 4
    assert (tmp_path / "pareto.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pareto.png", FILE_NAME], "parts are gone when it ends"


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "thesis.txt").write_text("precious", encoding="utf-8")
    assert main(["orders", "no memory", *SMALL, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "parts" / "thesis.txt").read_text(encoding="utf-8") == "precious"


def test_controls_alone_and_a_single_visit_have_a_table_and_no_picture(tmp_path: Path, capsys) -> None:
    for options in (["oracle", "random", *SMALL], ["no memory", *SMALL, "--visits", "1"]):
        assert main(["orders", *options, "--out", str(tmp_path)]) == 0
        assert f"written to {tmp_path}: {FILE_NAME}" in capsys.readouterr().out.replace("\n", "")


def test_interrupted_it_says_how_to_go_on(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(9))

    def interrupted(*args: object) -> list[dict[str, object]]:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return run_part(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("memlab.experiments.repeated_order.run_part", interrupted)
    assert main(["orders", "no memory", *SMALL, "--out", str(tmp_path)]) == 130
    assert "interrupted: 1 finished parts are kept" in capsys.readouterr().err


def test_after_a_failure_only_the_failed_part_is_run_again(tmp_path: Path, capsys, monkeypatch) -> None:
    ran: list[str] = []

    def with_a_failure(part: Part, live: Lab | None) -> list[dict[str, object]]:
        ran.append(part.user.id)
        rows = run_part(part, live)
        return [*rows[:-1], {**rows[-1], "failed": "RateLimitError: later"}] if part.user.id == "Bob" else rows

    monkeypatch.setattr("memlab.experiments.repeated_order.run_part", with_a_failure)
    command = ["orders", "no memory", *SMALL, "--users", "3", "--out", str(tmp_path)]
    assert main(command) == 0
    assert "1 visits failed" in capsys.readouterr().out.replace("\n", " ")
    assert main(command) == 0
    assert ran == ["Alice", "Bob", "Carol", "Bob"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["orders", "no memory", *SMALL, "--out", str(tmp_path / "file")]) == 2
    assert "a file; name a folder" in capsys.readouterr().err


def test_full_is_40_visits_and_5_seeds(tmp_path: Path) -> None:
    small = ["--users", "1", "--language", "en", "--chat-turns", "0", "--jobs", "1"]
    assert main(["orders", "oracle", "no memory", "--full", *small, "--out", str(tmp_path)]) == 0
    visits = read_visits(tmp_path / FILE_NAME)
    assert (visits["visit"].max(), visits["seed"].nunique(), len(visits)) == (40, 5, 2 * 40 * 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["no such strategy"], "there is no strategy no such strategy; there are no memory"),
        (["--language", "de"], "language is de"),
        (["--chat-turns", "few"], "--chat-turns is 'few'; it takes whole numbers, as 3,12"),
        (["--users", "99"], "regular users for 1 to 20"),
        (["--jobs", "0"], "--jobs is 0"),
    ],
)
def test_wrong_options_are_named(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["orders", *options, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_live_it_refuses_what_costs_more_than_the_limit(tmp_path: Path) -> None:
    environment = os.environ | {"MEMLAB_MODE": "live", "OPENAI_API_KEY": "x", "MEMLAB_MODEL": "gpt-4o"}
    command = [sys.executable, "-m", "memlab.cli", "orders", "vector, top 3", *SMALL, "--limit-usd", "0.0001"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, env=environment, encoding="utf-8"
    )
    assert done.returncode == 2
    assert "over limit_usd=0.0001" in done.stderr
    assert "live with gpt-4o: about" in done.stdout
