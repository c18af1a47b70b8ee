"""What is wrong with a set-up, and what to do: `memlab doctor`.

Each check yields findings; every one that is not "ok" comes with its remedy. A key is never shown, nor its length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from memlab.doctor.configuration import check_dotenv, check_key, check_mode, check_network, check_url
from memlab.doctor.endpoint import check_endpoint, explain
from memlab.doctor.finding import Finding, Findings
from memlab.doctor.installation import (
    check_encoders,
    check_font,
    check_kernel,
    check_output,
    check_packages,
    check_python,
    check_tokenizer,
    check_widgets,
)
from memlab.errors import ConfigurationError
from memlab.settings import Settings, read_settings

__all__ = ["Finding", "explain", "findings"]


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
