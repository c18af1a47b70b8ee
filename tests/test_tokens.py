"""Counting offline, the vocabulary cache, windows and prices."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InvalidInputError, InvalidTypeError
from memlab.prices import context_window, cost_usd, load_prices
from memlab.tokens import count_chat, count_message, count_text, count_tools, truncate_text
from memlab.vocabulary import VOCABULARIES

ZHANG_SAN = [{"role": "user", "content": "我叫张三"}]

# Run in another process: any connection is refused, so a download would fail.
NO_NETWORK = """
import sys
def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise OSError("no network here")
sys.addaudithook(refuse)
"""


def run_offline(code: str, cache: Path, **extra: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")}
    environment |= {"XDG_CACHE_HOME": str(cache), "LOCALAPPDATA": str(cache), "HOME": str(cache), **extra}
    result = subprocess.run(
        [sys.executable, "-c", NO_NETWORK + code], env=environment, capture_output=True, text=True, encoding="utf-8"
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def blob_name(encoding: str) -> str:
    return hashlib.sha1(VOCABULARIES[encoding][0].encode()).hexdigest()


# --- the vocabulary ---


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_address_and_hash_are_those_of_the_installed_tiktoken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    seen = {}
    monkeypatch.setattr(
        openai_public, "load_tiktoken_bpe", lambda url, expected_hash: seen.update({url: expected_hash}) or {}
    )
    getattr(openai_public, name)()
    assert seen == dict([VOCABULARIES[name]])


def test_a_fresh_machine_without_network_counts_exactly(tmp_path: Path) -> None:
    code = "from memlab.tokens import count_text; print(count_text('我叫张三'), count_text('我叫张三', 'gpt-4'))"
    assert run_offline(code, tmp_path) == "4 5"
    assert len(list(tmp_path.rglob(blob_name("o200k_base")))) == 1


def test_other_users_of_tiktoken_profit_once_the_vocabulary_is_prepared(tmp_path: Path) -> None:
    code = (
        "import memlab.tokens as t; folder = t.prepare_vocabulary(); import tiktoken, os\n"
        "count = len(tiktoken.get_encoding('cl100k_base').encode('我叫张三'))\n"
        "print(count, os.environ['TIKTOKEN_CACHE_DIR'] == str(folder))"
    )
    assert run_offline(code, tmp_path) == "5 True"


def test_a_wrong_file_in_the_cache_is_replaced(tmp_path: Path) -> None:
    code = "from memlab.tokens import count_text; print(count_text('我叫张三'))"
    run_offline(code, tmp_path)
    (blob,) = tmp_path.rglob(blob_name("o200k_base"))
    blob.write_bytes(b"half a downl")
    assert run_offline(code, tmp_path) == "4"
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == VOCABULARIES["o200k_base"][1]


def test_a_folder_that_the_user_has_set_is_filled_and_kept(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    code = "import os; from memlab.tokens import count_text; print(count_text('hi'), os.environ['TIKTOKEN_CACHE_DIR'])"
    assert run_offline(code, tmp_path / "cache", TIKTOKEN_CACHE_DIR=str(mine)) == f"1 {mine}"
    assert (mine / blob_name("o200k_base")).is_file()
    assert not (tmp_path / "cache").exists()


def test_an_unusable_folder_falls_back_to_a_temporary_one(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be", encoding="utf-8")
    code = "from memlab.tokens import count_text; print(count_text('我叫张三'))"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    names = ("TMPDIR", "TEMP", "TMP")
    assert run_offline(code, blocked, **dict.fromkeys(names, str(temporary))) == "4"
    assert len(list(temporary.rglob(blob_name("o200k_base")))) == 1


def test_importing_is_cheap() -> None:
    code = "import sys, memlab.tokens; print(sorted({'tiktoken', 'numpy', 'openai'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


# --- counting ---


def test_the_known_chat_counts() -> None:
    assert count_chat(ZHANG_SAN, model="gpt-4o-mini") == count_chat(ZHANG_SAN, model="classroom-8k") == 11
    assert count_chat(ZHANG_SAN, model="gpt-4") == 12


@given(st.text())
def test_counts_are_those_of_tiktoken(text: str) -> None:
    encoding = tiktoken.get_encoding("o200k_base")
    assert count_text(text) == len(encoding.encode(text, disallowed_special=()))


@pytest.mark.parametrize("text", ["<|endoftext|>", "a\ud800b", "\udfff", "\0", "", " " * 50_000])
def test_odd_texts_are_counted(text: str) -> None:
    assert count_text(text) >= (1 if text else 0)


def test_a_name_costs_its_tokens_and_one_more() -> None:
    message = {"role": "user", "content": "hi"}
    assert count_message(message | {"name": "alice"}) == count_message(message) + count_text("alice") + 1


def test_content_parts_count_like_the_same_text() -> None:
    parts = [{"type": "text", "text": "hello"}, {"type": "text", "text": "world"}]
    assert count_message({"role": "user", "content": parts}) == 3 + 1 + 2
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert count_message({"role": "user", "content": [*parts, image]}) == 3 + 1 + 2 + 85


def test_tool_calls_and_their_results_count() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "GetMenu", "arguments": '{"kind": "素"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    texts = ("assistant", "call_1", "GetMenu", '{"kind": "素"}')
    assert count_message(message) == 3 + sum(count_text(text) for text in texts)
    assert count_message(message | {"tool_calls": [None, {"function": 1}]}) == 3 + 1  # nonsense costs nothing


def test_a_tool_costs_more_the_more_it_says() -> None:
    bare = {"type": "function", "function": {"name": "GetMenu"}}
    parameters = {"type": "object", "properties": {"kind": {"type": "string", "enum": ["荤", "素"]}}}
    full = {"type": "function", "function": {"name": "GetMenu", "description": "菜单", "parameters": parameters}}
    assert 0 < count_tools([bare]) < count_tools([full])
    assert count_tools([]) == count_tools(None) == 0
    assert count_chat(ZHANG_SAN, [full]) == count_chat(ZHANG_SAN) + count_tools([full])


def test_what_is_no_text_or_message_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="needs a str"):
        count_text(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="A message is a dict"):
        count_message("hello")  # type: ignore[arg-type]


@given(st.text(), st.integers(min_value=0, max_value=20))
def test_truncated_text_fits_and_is_a_beginning(text: str, limit: int) -> None:
    cut = truncate_text(text, limit)
    assert count_text(cut) <= limit
    assert text.startswith(cut)


def test_truncation_keeps_what_fits_and_whole_characters() -> None:
    assert truncate_text("我叫张三", 4) == "我叫张三"
    assert truncate_text("我叫张三", 2) == "我叫"
    assert truncate_text("𝔘𝔫𝔦𝔠𝔬𝔡𝔢", 4).isprintable()
    with pytest.raises(InvalidInputError, match="0 or more"):
        truncate_text("hi", -1)


# --- windows and prices ---


def test_every_row_of_the_table_is_dated_and_sourced() -> None:
    import datetime

    prices = load_prices()
    assert {"gpt-4o-mini", "gpt-4o", "text-embedding-3-small", "classroom-8k", "use-multilingual"} <= set(prices)
    for name, price in prices.items():
        assert price.model == name
        assert datetime.date.fromisoformat(price.as_of) <= datetime.date.today()
        assert price.source
        assert price.context_window > 0


def test_windows_of_the_offline_models() -> None:
    assert [context_window(f"classroom-{size}") for size in ("8k", "32k", "128k")] == [8192, 32768, 131072]
    assert context_window("no-such-model") is None


def test_costs() -> None:
    assert cost_usd("gpt-4o-mini", 1000, 100) == pytest.approx(1000 * 0.15e-6 + 100 * 0.60e-6)
    assert cost_usd("gpt-4o-mini-2024-07-18", 1000) == cost_usd("gpt-4o-mini", 1000)
    assert cost_usd("classroom-8k", 10**9, 10**9) == 0
    assert cost_usd("no-such-model", 1) is None


def test_a_table_can_be_edited(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    header = "model,input_per_million,output_per_million,context_window,as_of,source\n"
    path.write_text(header + "mine,1,2,4096,2026-01-01,me\n", encoding="utf-8")
    assert cost_usd("mine", 10**6, 10**6, prices=load_prices(path)) == 3
    path.write_text(header + "mine,10,2,4096,2026-01-01,me and later\n", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert load_prices(path)["mine"].input_per_million == 10


def test_a_broken_table_says_which_row(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    header = "model,input_per_million,output_per_million,context_window,as_of,source\n"
    path.write_text(header + "mine,cheap,2,4096,2026-01-01,me\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="cheap"):
        load_prices(path)
    with pytest.raises(InvalidInputError, match="no price table"):
        load_prices(tmp_path / "nowhere.csv")
