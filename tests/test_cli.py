"""The command line, as a learner types it: real processes, real endpoint, piped input."""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import openai
import pytest

import memlab
from memlab import cli

ROOT = Path(__file__).resolve().parents[1]
_DROPPED = re.compile(r"^(OPENAI|MEMLAB)|_PROXY$|^PYTHONIOENCODING$", re.IGNORECASE)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not _DROPPED.search(name)}


@pytest.fixture
def run(tmp_path):
    """`memlab …` in an empty folder."""

    def run_memlab(*arguments, typed=None, **environ):
        return subprocess.run(
            [sys.executable, "-m", "memlab.cli", *arguments],
            input=typed.encode() if typed is not None else None,
            stdin=subprocess.DEVNULL if typed is None else None,
            env=ENVIRONMENT | environ,
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
        )

    return run_memlab


def out(process) -> str:
    assert process.returncode == 0, process.stderr.decode()
    return process.stdout.decode("utf-8")


def complaint(process) -> str:
    """The one line on stderr of a command that could not start."""
    lines = process.stderr.decode("utf-8").splitlines()
    assert process.returncode == 2
    assert len(lines) == 1, lines
    return lines[0]


def test_alone_it_prints_help(capsys):
    assert cli.main([]) == 0
    listed = re.findall(r"^    (\w+)  ", capsys.readouterr().out, re.M)
    assert listed == ["tour", "chat", "sweep", "orders", "lab", "serve", "doctor"]


@pytest.mark.parametrize("command", cli._COMMANDS)
def test_the_help_of_a_command_names_no_default_that_is_none(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main([command, "--help"])
    said = capsys.readouterr().out
    assert "default: None" not in said
    assert "default: False" not in said


def test_help_names_the_defaults_that_are_something(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["serve", "--help"])
    assert "(default: 8765)" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"memlab {memlab.__version__}\n"


def test_an_unknown_command_is_wrong_use(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["remember"])
    assert "remember" in capsys.readouterr().err


@pytest.mark.parametrize(("held", "code"), [(True, 0), (False, 1)])
def test_the_tours_exit_code_says_whether_every_claim_held(monkeypatch, held, code):
    monkeypatch.setattr("memlab.tour.run", lambda console: held)
    assert cli.main(["tour"]) == code


@pytest.mark.parametrize(("memory", "knows"), [("none", False), ("full", True), ("vector", True)])
def test_chat_remembers_what_its_memory_keeps(run, memory, knows):
    said = out(run("chat", "--memory", memory, typed="我叫张三\n我叫什么名字\n"))
    answers = re.findall(r"^model> (.*)$", said, re.M)
    assert len(answers) == 2
    assert ("张三" in answers[1]) == knows
    assert len(re.findall(r"^tokens: prompt \d+ .*, answer \d+, embedding \d+ \| so far", said, re.M)) == 2
    assert "as if gpt-4o-mini + text-embedding-3-small" in said
    assert ("scores 0." in said) == (memory == "vector")
    assert "\x1b" not in said, "colours in a pipe"


def test_chat_sums_up_tokens_and_money(run):
    said = out(run("chat", "--memory", "vector", typed="I like tea\nI like tea\n"))
    turns = re.findall(r"prompt (\d+) .*answer (\d+), embedding (\d+) \| so far (\d+) tokens, \$([\d.]+)", said)
    sums = [sum(map(int, turn[:3])) for turn in turns]
    assert int(turns[0][3]) == sums[0]
    assert int(turns[1][3]) == sums[0] + sums[1]
    assert 0 < float(turns[0][4]) < float(turns[1][4])


def test_chat_commands(run):
    typed = "/prompt\n/memory\n\n   \nMy name is Anna\n/prompt\n/memory\n/help\n/dance\n/quit\nMy name is Eve\n"
    said = out(run("chat", typed=typed))
    assert "nothing was sent yet" in said
    assert "nothing is kept" in said
    assert said.count("model> ") == 1, "a command, an empty line or a line after /quit was sent"
    assert said.count("     user: My name is Anna") == 2
    assert "assistant: " in said
    assert "/dance is not a command" in said


def test_chat_with_top_k_zero_sends_no_memory(run):
    said = out(run("chat", "--memory", "vector", "--top-k", "0", typed="My name is Anna\nMy name is Anna\n"))
    assert "memories: 0 of 2 sent" in said


def test_chat_survives_an_error_and_keeps_the_history(run):
    long = "word " * 9000
    said = out(run("chat", "--model", "classroom-8k", typed=f"My name is Anna\n{long}\nWhat is my name?\n/memory\n"))
    assert "error: context_length_exceeded" in said
    assert "Anna" in re.findall(r"^model> (.*)$", said, re.M)[-1]
    assert said.count("     user: ") == 2, "the failed turn was kept, or an earlier one lost"


def test_chat_with_a_model_that_does_not_exist(run):
    said = out(run("chat", "--model", "gpt-0", typed="hi\nhi\n"))
    assert said.count("error: model_not_found") == 2


@pytest.mark.parametrize(
    ("arguments", "said"), [(("--top-k", "-1"), "--top-k is -1"), (("--threshold", "7"), "--threshold is 7")]
)
def test_chat_refuses_what_can_not_be(run, arguments, said):
    assert said in complaint(run("chat", "--memory", "vector", *arguments))


def test_chat_survives_a_legacy_code_page(run):
    process = run("chat", typed="My name is Anna\nМеня зовут Олег\n", PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    assert process.returncode == 0, process.stderr
    assert b"Anna" in process.stdout


def test_a_set_up_that_can_not_work_is_one_line_and_debug_shows_more(run):
    assert "live needs a key or a URL" in complaint(run("chat", MEMLAB_MODE="live"))
    for arguments in (("--debug", "chat"), ("chat", "--debug")):
        assert b"Traceback" in run(*arguments, MEMLAB_MODE="live").stderr


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch):
    """This process in an empty folder, without settings: the doctor is slow to start."""
    for name in set(os.environ) - set(ENVIRONMENT):
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_doctor_prints_findings_and_fails_on_an_error(in_empty_folder, capsys, monkeypatch):
    assert cli.main(["doctor"]) == 0
    assert "offline: neither MEMLAB_MODE nor" in capsys.readouterr().out
    monkeypatch.setenv("MEMLAB_MODE", "alive")
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "error the mode is 'alive'" in said
    assert "\n      -> " in said


def test_doctor_leaves_the_request_out(in_empty_folder, capsys):
    Path(".env").write_text("OPENAI_URL=http://127.0.0.1:9/v1\n", encoding="utf-8")
    assert cli.main(["doctor"]) == 1
    assert "connection refused" in capsys.readouterr().out
    assert cli.main(["doctor", "--no-request"]) == 0
    assert "LIVE: .env names OPENAI_URL" in capsys.readouterr().out


# --- serve


def start_server(*arguments, **environ):
    process = subprocess.Popen(
        [sys.executable, "-m", "memlab.cli", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | environ,
    )
    return process, re.search(r"http://\S+/v1", process.stdout.readline())[0]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals to send to another process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_answers_and_counts_until_a_signal(number):
    key = secrets.token_hex(8)
    process, url = start_server(MEMLAB_SERVE_KEY=key)
    try:
        client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
        assert "classroom-8k" in [model.id for model in client.models.list()]
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()
        process.send_signal(number)
        said = process.stdout.read()
        process.wait(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert f"OPENAI_BASE_URL={url}" in said
    assert "MEMLAB_EMBEDDING_MODEL=use-multilingual" in said
    assert key not in said
    assert "stopped after 2 requests: /v1/models 2" in said


def test_serve_says_that_the_port_is_in_use(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = complaint(run("serve", "--port", str(port)))
    assert str(port) in said
    assert "another port" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0"), "add --api-key"),
        (("--host", "::"), "add --api-key"),
        (("--api-key", ""), "the API key must"),
        (("--api-key", "ключ"), "the API key must"),
        (("--port", "70000"), "the port is 70000"),
    ],
)
def test_serve_refuses_what_would_be_unsafe_or_useless(run, arguments, said):
    assert said in complaint(run("serve", *arguments))


# --- lab


@pytest.fixture
def fake_jupyter(tmp_path):
    """A `jupyterlab` that only prints how it was called."""
    folder = tmp_path / "fake"
    (folder / "jupyterlab").mkdir(parents=True)
    (folder / "jupyterlab" / "__init__.py").touch()
    (folder / "jupyterlab" / "__main__.py").write_text("import sys\nprint(*sys.argv[1:], sep='\\n')\n", "utf-8")
    return str(folder)


def test_lab_opens_the_lessons_of_the_clone_and_asks_nobody_else(run, fake_jupyter):
    lines = out(run("lab", "--no-browser", "--port", "8901", PYTHONPATH=fake_jupyter)).splitlines()
    assert str(ROOT / "notebooks") in lines
    assert {"--no-browser", "--port=8901", "--LabApp.news_url=None"} <= set(lines)
    assert "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate" in lines
    assert "--LabApp.extension_manager=readonly" in lines
    assert any(line.startswith("--LabApp.default_url=/lab/tree/00_") for line in lines)


@pytest.mark.parametrize("port", ["99999", "65536", "-1"])
def test_lab_refuses_a_port_that_is_none(run, fake_jupyter, port):
    assert f"the port is {port}; it must be from 0 to 65535" in complaint(
        run("lab", f"--port={port}", PYTHONPATH=fake_jupyter)
    )


def test_lab_from_a_wheel_copies_the_lessons_and_spares_the_learners(run, fake_jupyter, tmp_path):
    """A wheel has no pyproject.toml beside the package, and carries the notebooks inside it."""
    shutil.copytree(ROOT / "memlab", tmp_path / "fake" / "memlab", ignore=shutil.ignore_patterns("__pycache__"))
    inside = tmp_path / "fake" / "memlab" / "_assets" / "notebooks"
    inside.mkdir(parents=True)
    for name in ("00_start.ipynb", "01_next.ipynb", "build.py"):
        (inside / name).write_text("new", encoding="utf-8")
    mine = tmp_path / "memlab-notebooks"
    mine.mkdir()
    (mine / "00_start.ipynb").write_text("my work", encoding="utf-8")
    said = out(run("lab", PYTHONPATH=fake_jupyter))
    assert str(mine) in said.splitlines()
    assert "1 notebooks were in memlab-notebooks already" in said
    assert sorted(path.name for path in mine.iterdir()) == ["00_start.ipynb", "01_next.ipynb"]
    assert (mine / "00_start.ipynb").read_text(encoding="utf-8") == "my work"
    assert (mine / "01_next.ipynb").read_text(encoding="utf-8") == "new"


# --- README


def fences(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


# The one for Agent Framework wants a live endpoint: tests/interop runs it against one.
@pytest.mark.parametrize("snippet", [text for text in fences("python") if "agent_framework" not in text])
def test_the_python_of_readme_runs(snippet, tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", snippet], env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(("marker", "end"), [("main-command", "memlab tour"), ("test-command", "python -m pytest")])
def test_readmes_commands_are_one_paste_and_make_their_own_environment(marker, end):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(rf"<!-- {marker} -->\n+```bash\n(.*?)\n```", text, re.S)
    assert command.startswith("python3 -m venv .venv && ")
    assert "-c constraints.txt" in command
    assert command.endswith(end)
    assert command.replace("\\\n", " ").count("\n") == 0


def test_constraints_pin_what_is_installed_and_nothing_else():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines)
    pinned = [line.split("==")[0] for line in lines]
    assert pinned == sorted(set(pinned))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = set(re.findall(r'^    "([a-z0-9-]+)[>=\[]', project, re.M)) - {"memlab"}
    assert named <= set(pinned), f"no pin for {named - set(pinned)}"
