"""What the environment and `.env` say: mode, key, URL, proxies and certificates. Nothing is sent to find out."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from memlab.doctor.finding import Finding, Findings, Level
from memlab.settings import Settings, find_dotenv
from memlab.settings_values import is_placeholder

_KEYS = ("OPENAI_API_KEY", "API_KEY")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
LOOPBACK = ("localhost", "::1")


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
