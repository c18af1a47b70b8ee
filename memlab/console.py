"""What the commands share: a console, styled text, and errors in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlab.errors import MemlabError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


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


def in_words(error: Exception) -> str:
    """What went wrong, and what to do."""
    if isinstance(error, MemlabError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error} (memlab doctor looks for the cause)"
    from memlab.doctor import explain

    finding = explain(error)
    return f"{finding.what} ({finding.remedy})"
