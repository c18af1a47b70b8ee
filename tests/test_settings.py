"""Offline or live, and why. Live only when asked for: a key that merely lies in the environment spends nothing."""

import asyncio
import io
from pathlib import Path

import numpy as np
import pytest
from dotenv import dotenv_values

from memlab import ConfigurationError, InvalidInputError, InvalidTypeError, connect
from memlab.settings import Lab, load_dotenv, read_settings

KEY = "sk-secret-0123456789"
URL = "https://models.example/v1"


@pytest.fixture(autouse=True)
def clean_place(monkeypatch, tmp_path):
    """No connection yet, no variables, and a project folder without a .env file."""
    monkeypatch.setattr("memlab.settings._current", None)
    for name in ("MEMLAB_MODE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "MEMLAB_MODEL", "OPENAI_MODEL", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)


# --- the mode ---


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": KEY}, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": URL}])
def test_what_merely_lies_in_the_environment_spends_nothing(environ):
    settings = read_settings(environ, {})
    assert settings.offline
    assert (settings.api_key, settings.base_url, settings.model) == (None, None, "classroom-128k")


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "API_KEY", "OPENAI_BASE_URL", "OPENAI_URL"])
def test_a_dotenv_file_that_names_a_key_or_a_url_means_live(name):
    value = KEY if name.endswith("KEY") else URL
    settings = read_settings({}, {name: value})
    assert (settings.offline, settings.why) == (False, f".env names {name}")
    assert value in (settings.api_key, settings.base_url)


@pytest.mark.parametrize("dotenv", [{"MODEL": "gpt-4o"}, {"API_KEY": ""}, {"OPENAI_API_KEY": "  "}, {"OTHER_KEY": KEY}])
def test_a_dotenv_file_that_names_neither_means_offline(dotenv):
    assert read_settings({"OPENAI_API_KEY": KEY}, dotenv).offline


@pytest.mark.parametrize(
    ("environ", "dotenv", "mode", "offline"),
    [
        ({"MEMLAB_MODE": "live", "OPENAI_API_KEY": KEY}, {}, None, False),
        ({"MEMLAB_MODE": "LIVE", "OPENAI_API_KEY": KEY}, {}, None, False),
        ({"MEMLAB_MODE": "offline"}, {"API_KEY": KEY}, None, True),
        ({"OPENAI_API_KEY": KEY}, {"MEMLAB_MODE": "live"}, None, False),
        ({}, {"MEMLAB_MODE": "offline", "API_KEY": KEY}, None, True),
        ({"MEMLAB_MODE": "offline"}, {"MEMLAB_MODE": "live", "API_KEY": KEY}, None, True),
        ({"MEMLAB_MODE": "live", "OPENAI_API_KEY": KEY}, {}, "offline", True),
        ({"MEMLAB_MODE": "offline", "OPENAI_API_KEY": KEY}, {}, "live", False),
        ({"MEMLAB_MODE": " "}, {}, None, True),
    ],
)
def test_the_mode_that_is_asked_for_wins(environ, dotenv, mode, offline):
    assert read_settings(environ, dotenv, mode).offline == offline


# --- the values ---


def test_short_names_are_read_from_dotenv_only():
    short = {
        "MODEL": "gpt-4o",
        "API_KEY": KEY,
        "OPENAI_URL": URL,
        "EMBEDDING_MODEL": "e",
        "EMBEDDING_DIMENSIONS": "256",
    }
    settings = read_settings({}, short)
    assert (settings.model, settings.api_key, settings.base_url) == ("gpt-4o", KEY, URL)
    assert (settings.embedding_model, settings.dimensions) == ("e", 256)
    live = read_settings(short | {"MEMLAB_MODE": "live", "OPENAI_API_KEY": "sk-other"}, {})
    assert (live.model, live.api_key, live.base_url) == ("gpt-4o-mini", "sk-other", None)
    assert (live.embedding_model, live.dimensions) == ("text-embedding-3-small", None)


@pytest.mark.parametrize("names", [("OPENAI_API_KEY", "API_KEY"), ("OPENAI_API_KEY", "OPENAI_API_KEY")])
def test_the_environment_wins_over_dotenv(names):
    environ = {names[0]: "sk-environment", "MEMLAB_MODEL": "from-environment"}
    settings = read_settings(environ, {names[1]: "sk-dotenv", "MODEL": "from-dotenv", "OPENAI_URL": URL + "/"})
    assert (settings.api_key, settings.model, settings.base_url) == ("sk-environment", "from-environment", URL)


def test_a_server_of_ones_own_needs_no_key():
    settings = read_settings({}, {"OPENAI_BASE_URL": "http://localhost:11434/v1"})
    assert settings.api_key  # the official client insists on one


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"MEMLAB_MODE": "online"}, "'online'.*'offline' or 'live'"),
        ({"MEMLAB_MODE": "live"}, "OPENAI_API_KEY.*OPENAI_BASE_URL"),
        ({"OPENAI_BASE_URL": "models.example/v1"}, "http://"),
        ({"OPENAI_BASE_URL": URL + "/chat/completions"}, "/chat/completions"),
        ({"OPENAI_BASE_URL": URL + "/embeddings/"}, "/embeddings"),
        ({"OPENAI_API_KEY": "sk-ключ"}, "ASCII"),
        ({"OPENAI_API_KEY": "sk-“quoted”"}, "ASCII"),
        ({"OPENAI_API_KEY": "sk-two\nlines"}, "space"),
        ({"OPENAI_API_KEY": KEY, "MEMLAB_EMBEDDING_DIMENSIONS": "many"}, "'many'"),
        ({"OPENAI_API_KEY": KEY, "MEMLAB_EMBEDDING_DIMENSIONS": "0"}, "'0'"),
        ({"OPENAI_API_KEY": KEY, "MEMLAB_EMBEDDING_DIMENSIONS": "-5"}, "'-5'"),
    ],
)
def test_a_bad_value_is_an_error_with_its_remedy_and_never_the_key(environ, named):
    with pytest.raises(ConfigurationError, match=named) as refused:
        read_settings({"MEMLAB_MODE": "live"} | environ, {})
    assert environ.get("OPENAI_API_KEY", "sk-")[3:] not in str(refused.value) or "OPENAI_API_KEY" not in environ


PLACEHOLDERS = [
    "your-key-here", "YOUR_API_KEY", "your_openai_api_key_here", "your key", "YOURKEY", "sk-your-key",
    "put-your-key-here",
    "<key>", "<your key>", "[KEY]", "${OPENAI_API_KEY}", "sk-...", "sk-…", "sk-proj-...", "sk-****", "sk-xxxxxxxx",
    "xxxxxxxxxxxx", "OPENAI_API_KEY", "api-key", "key-here", "changeme", "replace-me", "placeholder", '"<key>"',
]  # fmt: skip
REAL = [KEY, "none", "EMPTY", "ollama", "lm-studio", "x", "key", "dummy", "test", "sk-no-key-required", "sk-yourselfX9"]


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "API_KEY"])
@pytest.mark.parametrize("key", PLACEHOLDERS)
def test_a_placeholder_for_a_key_is_refused_and_never_means_live(name, key):
    for environ in ({}, {"OPENAI_API_KEY": KEY}):  # a key that merely lies in the environment spends nothing
        with pytest.raises(ConfigurationError, match=r"placeholder.*fill in.*remove its line from \.env"):
            read_settings(environ, {name: key})
    with pytest.raises(ConfigurationError, match="placeholder"):
        read_settings({"MEMLAB_MODE": "live"}, {name: key})
    with pytest.raises(ConfigurationError, match="placeholder"):
        read_settings({"MEMLAB_MODE": "live", "OPENAI_API_KEY": key}, {})
    with pytest.raises(ConfigurationError, match="placeholder"):
        read_settings({}, {name: key, "OPENAI_URL": URL})
    assert read_settings({"MEMLAB_MODE": "offline"}, {name: key}).offline
    assert read_settings({"OPENAI_API_KEY": key}, {}).offline


@pytest.mark.parametrize("key", REAL)
def test_a_key_that_a_server_may_have_is_no_placeholder(key):
    assert read_settings({}, {"API_KEY": key, "OPENAI_URL": URL}).api_key == key


def test_a_real_key_in_the_environment_wins_where_a_url_asks_for_live():
    settings = read_settings({"OPENAI_API_KEY": KEY}, {"API_KEY": "<key>", "OPENAI_URL": URL})
    assert (settings.api_key, settings.why) == (KEY, ".env names OPENAI_URL")


def test_the_key_lines_of_the_example_file_spend_nothing():
    example = Path(__file__).parents[1].joinpath(".env.example").read_text(encoding="utf-8")
    for line in [line[1:] for line in example.splitlines() if line.startswith(("#OPENAI_API_KEY", "#API_KEY"))]:
        values = {name: value for name, value in dotenv_values(stream=io.StringIO(line)).items() if value}
        assert read_settings({"OPENAI_API_KEY": KEY}, values).offline


# --- the .env file ---


def test_dotenv_is_found_in_the_project_and_never_above_it(tmp_path):
    inner = tmp_path / "notebooks" / "deep"
    inner.mkdir(parents=True)
    assert load_dotenv(inner) == {}
    (tmp_path / ".env").write_text("\ufeffAPI_KEY=" + KEY + "\nMODEL='模型'\nEMPTY=\n", encoding="utf-8")
    assert load_dotenv(inner) == {"API_KEY": KEY, "MODEL": "模型"}
    (inner.parent / "pyproject.toml").touch()
    assert load_dotenv(inner) == {}


def test_a_dotenv_file_that_is_not_utf8_is_an_error_that_says_so(tmp_path):
    (tmp_path / ".env").write_bytes("API_KEY=x\nMODEL=模型".encode("utf-16"))
    with pytest.raises(ConfigurationError, match="UTF-8"):
        connect()


# --- connect ---


@pytest.mark.parametrize(
    ("argument", "value", "remedy"),
    [
        ("mode", 5, "'offline', 'live' or None"),
        ("mode", 0, "'offline', 'live' or None"),
        ("mode", True, "'offline', 'live' or None"),
        ("model", 5, "a string or None"),
        ("embedding_model", ["a"], "a string or None"),
        ("dimensions", "512", "a whole number or None"),
        ("dimensions", True, "a whole number or None"),
    ],
)
def test_connect_refuses_another_type_and_says_what_to_pass(argument, value, remedy):
    with pytest.raises(InvalidTypeError, match=f"{argument} is .*pass {remedy}"):
        connect(**{argument: value})


def test_connect_makes_one_connection_and_arguments_make_a_new_one():
    lab = connect()
    assert lab is connect()
    assert lab.offline
    other = connect(model="classroom-8k")
    assert other is not lab
    assert (other.model, other.chat.model) == ("classroom-8k", "classroom-8k")
    assert connect() is other
    with pytest.raises(InvalidInputError, match="dimensions is 0"):
        _ = connect(dimensions=0).embedder


def test_connect_reads_the_project(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text(f"OPENAI_URL={URL}\nMODEL=qwen\nEMBEDDING_DIMENSIONS=2048\n", encoding="utf-8")
    lab = connect()
    assert (lab.offline, lab.model, lab.embedder.dimensions) == (False, "qwen", 2048)
    assert str(lab.client.base_url) == str(lab.sync_client.base_url) == URL + "/"
    assert connect("offline").offline


def test_the_key_never_shows(tmp_path):
    (tmp_path / ".env").write_text(f"API_KEY={KEY}\nOPENAI_URL={URL}\n", encoding="utf-8")
    lab = connect()
    shown = [repr(lab), str(lab), lab.describe(), lab.banner(), lab.cost_so_far(), repr(lab.settings), repr(lab.chat)]
    for text in shown:
        assert "secret" not in text
        assert "models.example" not in text
    assert lab.client.api_key == KEY


def test_the_banner_says_offline_or_live_and_the_cost():
    lab = connect()
    assert "offline" in lab.banner()
    assert "0 requests, 0 tokens, $0.0000" in lab.banner()
    lab.embedder.embed(["hello"])
    assert "1 requests, 1 tokens, $0.0000" in lab.banner()
    live = Lab(read_settings({"MEMLAB_MODE": "live", "OPENAI_API_KEY": KEY}, {}))
    assert "LIVE" in live.banner()
    assert "LIVE (MEMLAB_MODE says so)" in live.describe()


async def test_offline_needs_no_network_and_no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    lab = connect()
    assert (await lab.chat.as_agent().run("hi")).text
    assert lab.embedder.embed(["hi"]).shape == (1, lab.embedder.dimensions)


def test_each_event_loop_gets_its_own_client():
    lab = connect()

    async def client():
        assert lab.client is lab.client
        await lab.chat.as_agent().run("hi")
        return lab.client

    assert asyncio.run(client()) is not asyncio.run(client())
    assert lab.client is lab.client


def test_the_embedder_of_a_connection_is_used_by_a_store_in_any_thread():
    vectors = connect().embedder.embed(["我叫张三", "My name is Zhang San"])
    assert vectors.dtype == np.float32
    assert not np.allclose(vectors[0], vectors[1])


# --- claims and costs in a notebook ---


def test_a_claim_raises_offline_and_is_shown_live(capsys):
    connect().check(1 == 1, "one is one")
    with pytest.raises(AssertionError, match="one is two"):
        connect().check(1 == 2, "one is two")
    live = Lab(read_settings({"MEMLAB_MODE": "live", "OPENAI_API_KEY": KEY}, {}))
    live.check(1 == 2, "one is two")
    assert capsys.readouterr().out == "✓ one is one\n✗ one is two\n"


def test_a_step_that_costs_too_much_is_skipped_live_and_says_so(capsys):
    environ = {"MEMLAB_MODE": "live", "OPENAI_API_KEY": KEY, "MEMLAB_MODEL": "gpt-4o-mini"}
    live = Lab(read_settings(environ, {}))
    assert connect().affordable("everything", 10**9)
    assert live.affordable("a chat", 1_000)
    assert not live.affordable("a long chat", 10_000_000)
    assert not Lab(read_settings(environ | {"MEMLAB_MODEL": "nobody-knows"}, {})).affordable("a chat", 1)
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "skipped: a long chat would cost about $1.50 live, over the limit of $0.05",
        "skipped: a chat would cost an unknown price live, over the limit of $0.05",
    ]
