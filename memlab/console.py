"""What the commands share: a console, styled text, help, the check of a port, and errors in words."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memlab.errors import InvalidInputError, MemlabError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Adds to each option's help what it is by default, where it is something."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        nothing = action.default is None or action.default is False
        return action.help if nothing else super()._get_help_string(action)


def console() -> Console:
    """A console that colours nothing by itself."""
    from rich.console import Console

    return Console(highlight=False)


def styled(text: str, style: str = "") -> Text:
    """`text` in a style of rich's."""
    from rich.text import Text

    return Text.assemble((text, style))  # not markup: a path may hold brackets


def show(console: Console, text: Text) -> None:
    """A terminal gets words wrapped, a pipe whole lines."""
    console.print(text, soft_wrap=not console.is_terminal)


def check_port(port: int) -> None:
    """Raise InvalidInputError unless it is a port to listen on."""
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"the port is {port}; it must be from 0 to 65535, where 0 takes a free one")


def in_words(error: Exception) -> str:
    """What went wrong, and what to do."""
    if isinstance(error, MemlabError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error} (memlab doctor looks for the cause)"
    from memlab.doctor.endpoint import explain

    finding = explain(error)
    return f"{finding.what} ({finding.remedy})"
