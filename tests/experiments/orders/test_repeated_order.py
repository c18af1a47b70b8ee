"""The experiment as a whole: what a row says, what always holds, what it costs, and that it can be gone on with."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import openai
import pandas as pd
import pytest

import memlab
from memlab import ConfigurationError, InvalidInputError, MemlabError
from memlab.experiments.orders.cost import Budget
from memlab.experiments.orders.part_files import PartFiles
from memlab.experiments.orders.parts import Part, make_parts, run_part
from memlab.experiments.orders.results import read_visits, write_visits
from memlab.experiments.orders.strategies import Strategy
from memlab.experiments.orders.summary import summarise_orders
from memlab.experiments.regulars import load_regulars
from memlab.experiments.repeated_order import EVERYTHING, repeated_order, replay
from memlab.experiments.takeout import open_kitchen
from memlab.offline.server import Server
from memlab.settings import Lab, read_settings

QUIET = {"progress": False}
SMALL = {"users": 2, "visits": 4, "chat_turns_between": 1, **QUIET}
SOME = ["vector, top 3", "order log + tastes", "oracle"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return repeated_order(users=3, visits=6, language=["zh", "en", "ru"], chat_turns_between=2, **QUIET)


def rows_of_users(frame: pd.DataFrame) -> list[pd.DataFrame]:
    return [rows for _, rows in frame.groupby(["strategy", "language", "user"], sort=False)]


def dishes(order: str) -> frozenset[str]:
    return frozenset(part.partition("×")[0] for part in order.split("+") if part)


def test_there_is_a_row_for_each_visit(frame: pd.DataFrame) -> None:
    assert len(frame) == len(EVERYTHING) * 3 * 3 * 6
    assert list(frame["strategy"].unique()) == list(EVERYTHING)
    assert all(rows["visit"].tolist() == [1, 2, 3, 4, 5, 6] for rows in rows_of_users(frame))
    assert frame["order"].str.len().min() > 0, "in each visit something is ordered"


def test_a_repeat_is_the_same_dish_set_as_the_previous_order(frame: pd.DataFrame) -> None:
    for rows in rows_of_users(frame):
        orders = [dishes(order) for order in rows["order"]]
        assert rows["repeat"].isna().tolist() == [True] + [False] * 5
        assert rows["repeat"].tolist()[1:] == [now == before for before, now in itertools.pairwise(orders)]
        assert rows["repeat_in_window"].tolist()[1:] == [orders[n] in orders[max(0, n - 3) : n] for n in range(1, 6)]


def test_violations_are_those_of_the_canonical_rules(frame: pd.DataFrame) -> None:
    menu = {dish.id: dish for dish in open_kitchen("zh", "large").dishes}
    users = {user.id: user for user in load_regulars()}
    for row in frame.to_dict("records"):
        broken = not all(users[row["user"]].allows(menu[dish]) for dish in dishes(row["order"]))
        assert row["violation"] == broken


def test_the_classroom_model_never_repeats_what_it_can_see_and_avoid(frame: pd.DataFrame) -> None:
    table = summarise_orders(frame, by=["strategy"], resamples=0)
    assert (table["conditional_repeats"] == 0).all()
    assert (table["violations_in_view"] == 0).all()
    assert (table["failed"] == 0).all()
    assert not frame["over_limit"].any()


def test_without_a_memory_the_first_visit_is_the_only_one_that_knows_the_constraint(frame: pd.DataFrame) -> None:
    alone = frame[frame["strategy"] == "no memory"]
    assert alone["constraint_visible"].tolist() == (alone["visit"] == 1).tolist()
    assert not alone["latest_visible"].fillna(False).any()
    assert (alone["memory_tokens"] == 0).all()


def test_the_log_with_tastes_sees_the_last_order_and_the_constraint(frame: pd.DataFrame) -> None:
    rows = frame[(frame["strategy"] == "order log + tastes") & (frame["visit"] > 1)]
    assert rows["latest_visible"].all()
    assert rows["constraint_visible"].all()
    assert not rows["repeat"].any()


def test_the_oracle_never_repeats_and_both_controls_respect_every_constraint(frame: pd.DataFrame) -> None:
    controls = frame[frame["strategy"].isin(["oracle", "random"])]
    assert not controls.loc[controls["strategy"] == "oracle", "repeat"].fillna(False).any()
    assert not controls["violation"].any()
    best = frame.groupby("strategy")["utility"].mean()
    assert best["oracle"] == best.max()


def test_every_repeat_is_explained_and_nothing_else(frame: pd.DataFrame) -> None:
    agents = frame[~frame["strategy"].isin(["oracle", "random"])]
    assert ((agents["why"] != "") == agents["repeat"].fillna(False)).all()
    missed = agents[agents["needed_rank"].notna()]
    assert len(missed)
    assert (missed["why"] == "stored but not retrieved").all()


def test_the_same_experiment_gives_the_same_frame_in_any_number_of_processes() -> None:
    alone = repeated_order(SOME, **SMALL)
    with joblib.parallel_config("loky", n_jobs=2):
        pd.testing.assert_frame_equal(repeated_order(SOME, **SMALL), alone)


def test_seeds_and_fresh_ties_change_the_orders() -> None:
    frame = repeated_order("no memory", users=4, visits=6, seeds=2, chat_turns_between=0, **QUIET)
    first, second = (frame[frame["seed"] == seed]["order"].tolist() for seed in (0, 1))
    assert first != second
    fresh = repeated_order("no memory", users=4, visits=6, chat_turns_between=0, fresh_ties=True, **QUIET)
    assert fresh["repeat"].mean() < frame["repeat"].mean()


def test_an_interrupted_experiment_goes_on(tmp_path: Path) -> None:
    whole = repeated_order(SOME, resume=tmp_path, **SMALL)
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) == 3 * 2
    marked = json.loads(files[0].read_text(encoding="utf-8"))
    marked[0]["utility"] = 0.125
    files[0].write_text(json.dumps(marked), encoding="utf-8")
    files[1].unlink()
    again = repeated_order(SOME, resume=tmp_path, **SMALL)
    assert (again["utility"] == 0.125).sum() == 1, "what was finished is read, not run again"
    pd.testing.assert_frame_equal(again.drop(columns="utility"), whole.drop(columns="utility"))
    repeated_order(SOME, resume=tmp_path, **{**SMALL, "visits": 5})
    assert len(list(tmp_path.glob("*.json"))) == 12, "another experiment has files of its own"


@pytest.mark.parametrize("broken", ["", "[", "[]", '[{"visit": 1}]', "5", '[{"visit": 1}, 2, 3, 4]'])
def test_a_file_that_is_not_whole_is_made_again(broken: str, tmp_path: Path) -> None:
    whole = repeated_order(["oracle"], resume=tmp_path, **SMALL)
    for path in tmp_path.glob("*.json"):
        path.write_text(broken, encoding="utf-8")
    pd.testing.assert_frame_equal(repeated_order(["oracle"], resume=tmp_path, **SMALL), whole)


def forget(folder: Path, strategy: str, users: int = 2) -> None:
    PartFiles(folder, memlab.connect("offline")).forget(make_parts(strategy, users, 4, 1, "zh", 1))


def test_only_the_parts_of_one_experiment_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious", encoding="utf-8")
    repeated_order(["oracle"], resume=tmp_path, **SMALL)
    repeated_order(["random"], resume=tmp_path, **SMALL)
    forget(tmp_path, "oracle")
    assert len(list(tmp_path.glob("*.json"))) == 2
    forget(tmp_path, "random")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_live_and_an_offline_run_share_no_parts(tmp_path: Path) -> None:
    repeated_order(["no memory"], resume=tmp_path, **SMALL)
    with Server(port=0, api_key="secret") as server:
        repeated_order(["no memory"], resume=tmp_path, lab=live_lab(server.url), **SMALL)
        assert server.counts["/v1/chat/completions"] > 0
    assert len(list(tmp_path.glob("*.json"))) == 4


def test_a_strategy_of_one_s_own_is_run_and_never_taken_from_a_file(tmp_path: Path) -> None:
    mine = Strategy("mine", "The single most similar.", lambda shop: [shop.memory(max_results=1)])
    frame = repeated_order([mine], resume=tmp_path, **SMALL)
    assert frame["strategy"].unique().tolist() == ["mine"]
    assert frame.filter(like="kept_").sum(axis=1).max() == 1
    assert not list(tmp_path.glob("*.json"))


MINE = Strategy("mine", "One.", lambda shop: [])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"strategies": ["vector, top 33"]}, "no strategy vector, top 33; there are no memory, full history"),
        ({"strategies": []}, "strategies is empty"),
        ({"strategies": [5]}, "a value of strategies is 5"),
        ({"strategies": 5}, "strategies is 5 .int.; pass str or Strategy, or a list"),
        ({"strategies": [Strategy("oracle", "Mine.", lambda shop: [])]}, "the name 'oracle' is taken"),
        ({"strategies": [MINE, Strategy("mine", "Two.", lambda shop: [])]}, "the name 'mine' is taken"),
        ({"users": 0}, "count is 0; there are regular users for 1 to 20"),
        ({"users": 21}, "count is 21"),
        ({"users": "3"}, "users is '3' .str.; pass a whole number"),
        ({"users": True}, "users is True"),
        ({"visits": 0}, "visits is 0; it must be at least 1"),
        ({"visits": 2.5}, "visits is 2.5"),
        ({"visits": True}, "visits is True"),
        ({"seeds": 0}, "seeds is 0"),
        ({"chat_turns_between": -1}, "chat_turns_between is -1; it must be at least 0"),
        ({"chat_turns_between": []}, "chat_turns_between is empty"),
        ({"chat_turns_between": None}, "chat_turns_between is None"),
        ({"language": "de"}, "language is de; it must be among zh, en, ru"),
        ({"language": []}, "language is empty"),
        ({"language": 5}, "language is 5"),
        ({"menu": "huge"}, "menu is 'huge'; there are small and large"),
        ({"fresh_ties": "no"}, "fresh_ties is 'no'"),
        ({"limit_usd": "a"}, "limit_usd is 'a'"),
        ({"lab": "x"}, "lab is 'x'"),
        ({"n_jobs": 0}, "n_jobs is 0; it must be at least 1, or -1 for all cores"),
        ({"n_jobs": "2"}, "n_jobs is '2'"),
        ({"resume": __file__}, "is a file; name a folder"),
    ],
)
def test_values_it_cant_use_are_named(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(MemlabError, match=message):
        repeated_order(**{"strategies": ["oracle"], **SMALL, **wrong})  # type: ignore[arg-type]


def test_numbers_of_numpy_and_repeated_values_are_taken() -> None:
    wanted = repeated_order(["oracle"], users=2, visits=3, chat_turns_between=[0, 1], **QUIET)
    given = {"users": np.int64(2), "visits": np.int64(3), "chat_turns_between": np.array([0, 1, 1]), **QUIET}
    pd.testing.assert_frame_equal(repeated_order(["oracle", "oracle"], language=["zh", "zh"], **given), wanted)


@pytest.mark.parametrize("wrong", [{"visits": 0}, {"visits": "2"}, {"chat_turns_between": -1}, {"seed": "a"}])
def test_a_replay_names_what_it_cant_use(wrong: dict[str, object]) -> None:
    with pytest.raises(MemlabError, match=next(iter(wrong))):
        replay("no memory", **wrong)  # type: ignore[arg-type]


def test_controls_alone_make_a_table() -> None:
    frame = repeated_order(["oracle", "random"], users=2, visits=3, **QUIET)
    table = summarise_orders(frame, by="strategy").set_index("strategy")
    assert table.loc["oracle", "repeat_rate"] == 0
    assert np.isnan(table.loc["oracle", "latest_visible"])


def live_lab(url: str, model: str = "classroom-128k") -> Lab:
    environ = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "secret", "MEMLAB_MODEL": model}
    return Lab(read_settings({**environ, "MEMLAB_EMBEDDING_MODEL": "use-multilingual"}, {}, "live"))


def test_it_runs_live_and_says_what_it_costs_first(capsys: pytest.CaptureFixture[str]) -> None:
    offline = repeated_order(SOME, **SMALL)
    with Server(port=0, api_key="secret") as server:
        live = repeated_order(SOME, lab=live_lab(server.url), **SMALL)
        assert server.counts["/v1/chat/completions"] == 2 * 2 * 4 * 3, "strategies x users x visits x calls"
    printed = capsys.readouterr().out
    assert "live with classroom-128k: about" in printed
    assert "for about $0.0000" in printed
    pd.testing.assert_frame_equal(live, offline)


def test_a_live_run_over_the_limit_sends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Server(port=0, api_key="secret") as server:
        for model, why in [("gpt-4o", r"about \$0\.09.*over limit_usd=0.0001"), ("new", "has no price; add a line")]:
            with pytest.raises(ConfigurationError, match=why):
                repeated_order(SOME, lab=live_lab(server.url, model), limit_usd=0.0001, **SMALL)
        with pytest.raises(InvalidInputError, match="limit_usd is nan"):
            repeated_order(SOME, lab=live_lab(server.url), limit_usd=float("nan"), **SMALL)
        assert not server.counts
    assert "secret" not in capsys.readouterr().out


def test_visits_are_written_and_read_back(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = write_visits(frame, tmp_path)
    assert path.read_bytes() == write_visits(frame, tmp_path / "again").read_bytes()
    pd.testing.assert_frame_equal(read_visits(path), frame, check_exact=False, atol=1e-4, check_dtype=False)


def test_the_stored_table_is_whole() -> None:
    stored = read_visits()
    assert len(stored) == len(EVERYTHING) * 3 * 2 * 20 * 12
    assert stored["strategy"].drop_duplicates().tolist() == list(EVERYTHING)
    assert (stored["failed"] == "").all()
    table = summarise_orders(stored, by=["strategy"], resamples=0)
    assert (table[["conditional_repeats", "violations_in_view", "no_order"]] == 0).all(axis=None)


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv.gz"
    path.write_text("strategy,language", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"other\.csv\.gz can't be read as a result"):
        read_visits(path)


def test_a_replay_gives_the_same_orders_with_all_that_happened() -> None:
    frame = repeated_order("vector, top 3", users=1, visits=5, language="en", **QUIET)
    visits = replay("vector, top 3", "Alice", visits=5, language="en")
    assert ["+".join(sorted(visit.dishes)) for visit in visits] == frame["order"].tolist()
    assert all(len(visit.searches) == 1 and visit.prompt for visit in visits)
    with pytest.raises(InvalidInputError, match="no user 'Zoe'; there are Alice"):
        replay("vector, top 3", "Zoe")


async def test_it_runs_where_a_loop_is_running() -> None:
    assert len(repeated_order("no memory", **SMALL)) == 8
    assert memlab.connect("offline").offline


def test_a_wrong_key_ends_the_experiment_at_once() -> None:
    with Server(port=0, api_key="another") as server:
        with pytest.raises(openai.AuthenticationError):
            repeated_order(["vector, top 3"], lab=live_lab(server.url), **SMALL)
        assert sum(server.counts.values()) <= 1


def test_a_resumed_live_run_pays_only_for_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Server(port=0, api_key="secret") as server:
        settings = {"lab": live_lab(server.url), "resume": tmp_path, **SMALL}
        first = repeated_order(SOME, **settings)
        before = server.counts["/v1/chat/completions"]
        capsys.readouterr()
        pd.testing.assert_frame_equal(repeated_order(SOME, **settings), first)
        assert server.counts["/v1/chat/completions"] == before
    assert "about 0 requests" in capsys.readouterr().out


def test_a_live_run_stops_when_the_limit_is_spent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Budget, "spent_usd", lambda budget: 0.06)
    stopped = pytest.raises(ConfigurationError, match=r"stopped: \$0.0600 spent, over limit_usd=0.05; with resume=")
    with Server(port=0, api_key="secret") as server, stopped:
        repeated_order(["no memory"], lab=live_lab(server.url), resume=tmp_path, **SMALL)
    assert len(list(tmp_path.glob("*.json"))) == 1, "the part that was paid for is kept"


def test_a_budget_counts_its_own_models_from_its_beginning() -> None:
    lab = live_lab("http://127.0.0.1:9/v1", "gpt-4o-mini")
    lab.meter.input_tokens["gpt-4o-mini"] = 10_000_000
    lab.meter.requests["a model without a price"] = 1
    budget = Budget(lab, 0.01)
    budget.check()
    lab.meter.input_tokens["gpt-4o-mini"] += 1_000_000
    assert budget.spent_usd() == pytest.approx(0.15)
    with pytest.raises(ConfigurationError, match="stopped"):
        budget.check()


def test_a_part_with_a_failure_is_told_and_run_again(tmp_path: Path) -> None:
    with Server(port=0, api_key="secret") as server:
        lab = live_lab(server.url)
        lab.__dict__["embedder"] = lab.embedder_for("no-such-model", 512)
        frame = repeated_order(["order log"], lab=lab, resume=tmp_path, **{**SMALL, "chat_turns_between": 0})
    assert frame.loc[frame["visit"] > 1, "failed"].str.contains("NotFoundError").all()
    assert summarise_orders(frame)["failed"].item() > 0
    assert not list(tmp_path.glob("*.json"))


def test_an_endpoint_that_always_fails_ends_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(part: Part, live: Lab | None) -> list[dict[str, object]]:
        rows = run_part(part, live)
        return [{**row, "order": "", "failed": "InternalServerError: out of order"} for row in rows]

    monkeypatch.setattr("memlab.experiments.repeated_order.run_part", failing)
    with pytest.raises(
        MemlabError, match="nothing but failures in 2 parts; the last: InternalServerError: out of order"
    ):
        repeated_order(["no memory"], **SMALL)


def test_two_runs_of_one_experiment_share_a_folder(tmp_path: Path) -> None:
    wanted = repeated_order(["oracle"], **{**SMALL, "users": 20})

    def one() -> pd.DataFrame:
        frame = repeated_order(["oracle"], resume=tmp_path / "parts", **{**SMALL, "users": 20})
        forget(tmp_path / "parts", "oracle", users=20)
        write_visits(frame, tmp_path)
        return frame

    with ThreadPoolExecutor(4) as threads:
        for frame in threads.map(lambda _: one(), range(24)):
            pd.testing.assert_frame_equal(frame, wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["repeated_order.csv.gz"]
