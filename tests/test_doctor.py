"""The doctor: what it finds, what it advises, and what it never shows."""

import json
import ssl
import subprocess
import sys
from pathlib import Path

import httpx2
import openai
import pytest

from memlab import doctor
from memlab.settings import find_dotenv, read_settings

LIVE = {"MEMLAB_MODE": "live", "OPENAI_BASE_URL": "https://models.example.org/v1", "OPENAI_API_KEY": "made-up-key"}


def look(environ, dotenv=None, folder=None, **options):
    return doctor.findings(environ, dotenv or {}, folder=folder or Path(__file__).parent, request=False, **options)


def problems(found):
    return [(finding.level, finding.what) for finding in found if finding.level != "ok"]


def check_settings(environ, dotenv=None):
    """The findings of those checks that read nothing but the settings."""
    dotenv = dotenv or {}
    settings = read_settings(environ, dotenv)
    checks = [doctor.check_key(settings, environ, dotenv), doctor.check_url(settings)]
    return [finding for check in [*checks, doctor.check_network(settings, environ)] for finding in check]


def test_a_good_installation_has_no_error(tmp_path):
    found = look({}, folder=tmp_path)
    assert [finding for finding in found if finding.level == "error"] == []
    said = "\n".join(finding.what for finding in found)
    for part in ("openai 3", "widget manager 5", "this Python", "offline: neither", "tokenizer", "512", "font"):
        assert part in said


def test_every_problem_comes_with_a_remedy(tmp_path):
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfMODEL=x\n")
    environ = LIVE | {"OPENAI_API_KEY": " “k k” ", "OPENAI_BASE_URL": "http://u:p@example.org", "SSL_CERT_FILE": "/no"}
    found = look(environ, folder=tmp_path)
    assert len(problems(found)) >= 4
    assert all(finding.remedy for finding in found if finding.level != "ok")


@pytest.mark.parametrize("key", ["sk-5f0a7c21d9e84b36", "sk 5f0a 7c21", "“sk-5f0a7c21”", "ключ-5f0a", "'sk-5f0a7c21'"])
@pytest.mark.parametrize("mode", ["live", "offline"])
def test_no_part_of_a_key_and_not_its_length_is_shown(key, mode, tmp_path):
    found = look({"MEMLAB_MODE": mode, "OPENAI_API_KEY": key}, {"API_KEY": key}, folder=tmp_path)
    said = json.dumps([vars(finding) for finding in found], ensure_ascii=False)
    assert "5f0a" not in said
    assert "7c21" not in said
    assert f" {len(key)} " not in said


def test_a_key_in_the_environment_spends_nothing_offline():
    found = check_settings({"OPENAI_API_KEY": "made-up-key"})
    assert "offline it spends nothing" in found[0].what
    assert problems(found) == []


@pytest.mark.parametrize(
    ("key", "flaw"),
    [("made up", "white space"), ("'made-up'", "quotation marks"), ("mаde-up", "not ASCII"), ("a\nb", "white space")],
)
def test_a_flawed_key_is_an_error_live_and_a_warning_offline(key, flaw):
    offline = [f for f in look({"OPENAI_API_KEY": key}) if "API key" in f.what and f.level != "ok"]
    live = [f for f in look(LIVE | {"OPENAI_API_KEY": key}) if "the API key in" in f.what and f.level != "ok"]
    assert [(f.level, flaw in f.what) for f in offline] == [("warn", True)]
    assert [(f.level, flaw in f.what) for f in live] == [("error", True)]


@pytest.mark.parametrize("key", ["your-key-here", "sk-...", "<key>"])
def test_a_placeholder_for_a_key_in_dotenv_is_an_error_with_its_remedy(key):
    found = [f for f in look({}, {"API_KEY": key}) if f.level == "error"]
    assert all("placeholder" in finding.what and finding.remedy for finding in found)
    assert [f.what for f in found if "in .env is" in f.what] == ["the API key in .env is a placeholder"]
    assert key not in " ".join(finding.what + finding.remedy for finding in found)
    offline = [f for f in look({"OPENAI_API_KEY": key}) if "placeholder" in f.what]
    assert [finding.level for finding in offline] == ["warn"]


@pytest.mark.parametrize(
    "environ",
    [
        {"MEMLAB_MODE": "alive"},
        {"MEMLAB_MODE": "live"},
        LIVE | {"OPENAI_BASE_URL": "example.org/v1"},
        LIVE | {"OPENAI_BASE_URL": "https://example.org/v1/chat/completions"},
    ],
)
def test_settings_that_cannot_work_are_an_error_and_the_other_checks_go_on(environ):
    found = look(environ)
    assert [level for level, _ in problems(found)] == ["error"]
    assert "font" in " ".join(finding.what for finding in found)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org", "no /v1"),
        ("https://example.org/openai", "no /v1"),
        ("https://example.org/api/paas/v4", None),
        ("https://example.org/v1beta/openai/", None),
        ("http://127.0.0.1:11434/v1", None),
        ("http://example.org/v1", "unencrypted"),
        ("https://name:word@example.org/v1", "name or password"),
        ("https:///v1", "no host"),
    ],
)
def test_the_form_of_the_base_url(url, expected):
    found = check_settings(LIVE | {"OPENAI_BASE_URL": url})
    said = [what for _, what in problems(found)]
    assert len(said) == (expected is not None)
    assert all(expected in what for what in said)
    assert "word@" not in " ".join(finding.what for finding in found)


@pytest.mark.parametrize(
    ("extra", "warned"),
    [
        ({"HTTP_PROXY": "http://proxy.example.org"}, True),
        ({"https_proxy": "http://proxy.example.org", "no_proxy": "example.org"}, True),
        ({"HTTP_PROXY": "http://proxy.example.org", "NO_PROXY": "example.org, 127.0.0.1"}, False),
        ({"HTTP_PROXY": "http://proxy.example.org", "NO_PROXY": "*"}, False),
        ({"HTTP_PROXY": ""}, False),
        ({}, False),
    ],
)
def test_a_proxy_before_a_server_of_this_machine(extra, warned):
    found = check_settings(LIVE | {"OPENAI_BASE_URL": "http://127.0.0.1:8765/v1"} | extra)
    assert [level for level, _ in problems(found)] == ["warn"] * warned


def test_a_certificate_file_that_is_not_there(tmp_path):
    environ = {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}
    assert [level for level, _ in problems(check_settings(environ))] == ["warn"]
    assert [level for level, _ in problems(check_settings(LIVE | environ))] == ["error"]
    (tmp_path / "ca.pem").write_text("", encoding="utf-8")
    assert problems(check_settings(LIVE | environ)) == []


@pytest.mark.parametrize(
    ("name", "content", "level", "said"),
    [
        (".env", b"MODEL=x", "ok", ".env found"),
        (".env", b"\xef\xbb\xbfMODEL=x", "warn", "BOM"),
        (".env", "MODEL=x".encode("utf-16"), "error", "UTF-16"),
        (".env.txt", b"MODEL=x", "warn", "nothing reads"),
    ],
)
def test_the_dotenv_file(tmp_path, name, content, level, said):
    (tmp_path / name).write_bytes(content)
    found = list(doctor.check_dotenv(tmp_path))
    assert found[-1].level == level
    assert said in found[-1].what


def test_a_dotenv_that_git_would_publish(tmp_path):
    (tmp_path / ".env").write_text("MODEL=x", encoding="utf-8")
    assert problems(doctor.check_dotenv(tmp_path)) == []  # not a repository
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert problems(doctor.check_dotenv(tmp_path)) == [("warn", "git does not ignore .env")]
    (tmp_path / ".gitignore").write_text(".env\n", encoding="utf-8")
    assert problems(doctor.check_dotenv(tmp_path)) == []


def test_dotenv_is_looked_for_where_settings_look(tmp_path):
    project, inside = tmp_path / "project", tmp_path / "project" / "notebooks"
    inside.mkdir(parents=True)
    (tmp_path / ".env").write_text("MODEL=stranger", encoding="utf-8")
    (project / "pyproject.toml").touch()
    assert find_dotenv(inside) is None
    (project / ".env").write_text("MODEL=x", encoding="utf-8")
    assert find_dotenv(inside) == project / ".env"


def kernel(folder, program, monkeypatch):
    """A `python3` kernel that comes before all others."""
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [program, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "x", "language": "python"}), "utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(folder))


@pytest.mark.parametrize(
    ("program", "level"), [(sys.executable, "ok"), ("python3", "ok"), ("/opt/other/bin/python", "error")]
)
def test_which_python_the_notebooks_get(tmp_path, monkeypatch, program, level):
    kernel(tmp_path, program, monkeypatch)
    assert [finding.level for finding in doctor.check_kernel()] == [level]


def test_a_check_that_breaks_is_a_finding(monkeypatch, tmp_path):
    monkeypatch.setattr("memlab.show.style.use_style", lambda: 1 / 0)
    found = [finding for finding in look({}, folder=tmp_path) if finding.level == "error"]
    assert [finding.what for finding in found] == ["font: ZeroDivisionError: division by zero"]


def test_output_that_is_not_utf8(monkeypatch):
    class Legacy:
        encoding = "cp936"

    monkeypatch.setattr(sys, "stdout", Legacy())
    assert problems(doctor.check_output())[0][0] == "warn"


REQUEST = httpx2.Request("POST", "https://models.example.org/v1/chat/completions")


def status(kind, number, code=None, message="what the API says"):
    body = {"message": message, "code": code}
    return kind(message, response=httpx2.Response(number, request=REQUEST), body=body)


def connection(reason):
    error = openai.APIConnectionError(request=REQUEST)
    error.__cause__ = reason
    return error


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (status(openai.AuthenticationError, 401, message="bad key sk-5f0a"), "API key (401)", "OPENAI_API_KEY"),
        (status(openai.NotFoundError, 404, "model_not_found"), "model_not_found: what", "MEMLAB_MODEL"),
        (status(openai.RateLimitError, 429, "insufficient_quota"), "insufficient_quota", "billing"),
        (status(openai.BadRequestError, 400, "context_length_exceeded"), "what the API says", "send less"),
        (status(openai.InternalServerError, 503), "503: what", "later"),
        (connection(httpx2.ConnectError("[Errno 111] Connection refused")), "refused", "start the server"),
        (connection(httpx2.ConnectError("[Errno -2] Name or service not known")), "host is unknown", "URL"),
        (connection(ssl.SSLCertVerificationError("CERTIFICATE_VERIFY_FAILED")), "not trusted", "SSL_CERT_FILE"),
        (connection(ssl.SSLError("[SSL: WRONG_VERSION_NUMBER]")), "TLS", "http://"),
        (connection(httpx2.LocalProtocolError("Illegal header value b'Bearer sk-5f0a'")), "can't be sent", "copy"),
        (openai.APITimeoutError(request=REQUEST), "in time", "network"),
        (connection(OSError("strange")), "can't be reached", "base URL"),
        (httpx2.RemoteProtocolError("peer closed connection"), "broke off", "network"),
        (openai.APIError("overloaded", REQUEST, body=None), "error: overloaded", "later"),
        (ValueError("<html>"), "not one of this API", "base URL"),
    ],
)
def test_an_error_of_the_endpoint_in_words(error, what, remedy):
    finding = doctor.explain(error)
    assert finding.level == "error"
    assert what in finding.what
    assert remedy in finding.remedy
    assert "5f0a" not in finding.what + finding.remedy
