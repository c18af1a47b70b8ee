"""Watches the logs of memlab while tests run.

`watched_logs` fails a test whose run logs a user id, a query or a text of a message. It is not automatic here;
`pytest -p tests.support_logs` (or an import of the fixture into a conftest) watches every test.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memlab import ChatHistoryMemoryProviderOptions, MemoryScope
from memlab.turn import Turn

SHORTEST = 4  # shorter secrets turn up by chance, within a number or a name


class Capture(logging.Handler):
    """Keeps every record, at every level."""

    def __init__(self, name: str = "memlab") -> None:
        super().__init__(logging.NOTSET)
        self.logger = logging.getLogger(name)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def __enter__(self) -> Capture:
        self.level, self.disabled = self.logger.level, logging.root.manager.disable
        self.logger.setLevel(logging.DEBUG)
        logging.disable(logging.NOTSET)
        self.logger.addHandler(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        self.logger.removeHandler(self)
        self.logger.setLevel(self.level)
        logging.disable(self.disabled)

    @property
    def text(self) -> str:
        """All that a handler could write of the records: messages, arguments, exceptions, extra fields."""
        return "\n".join(map(shown, self.records))


def shown(record: logging.LogRecord, with_message: bool = True) -> str:
    """All that a handler could write of one record, beside its place in the code."""
    parts = [repr(record.args or ()), record.exc_text or "", record.stack_info or ""]
    if with_message or not record.args:  # without arguments, the message may be an f-string
        parts += [str(record.msg), record.getMessage()]
    if record.exc_info:
        parts += traceback.format_exception(*record.exc_info)
    standard = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
    parts += [f"{name}={value!r}" for name, value in vars(record).items() if name not in standard]
    return "\n".join(parts)


@contextmanager
def watching(monkeypatch: pytest.MonkeyPatch, logger: str = "memlab") -> Iterator[set[str]]:
    """Raises AssertionError at its end if a record of `logger` held what was said in a run. Gives the secrets so far.

    Where a provider opted in to sensitive logs, through `enable_sensitive_telemetry_data`, nothing is judged.
    """
    secrets: set[str] = set()
    opted_in: list[bool] = []

    def after(owner: type, name: str, look: Callable[[Any], None]) -> None:
        original = getattr(owner, name)

        def wrapped(self: Any, *args: Any, **options: Any) -> Any:
            result = original(self, *args, **options)
            look(self)
            return result

        monkeypatch.setattr(owner, name, wrapped)

    after(Turn, "__init__", lambda turn: secrets.update(m.text for m in turn.context.input_messages))
    after(MemoryScope, "__post_init__", lambda scope: secrets.update(scope.set_fields().values()))
    after(
        ChatHistoryMemoryProviderOptions,
        "__post_init__",
        lambda options: opted_in.append(True) if options.enable_sensitive_telemetry_data else None,
    )
    with Capture(logger) as capture:
        yield secrets
    if not opted_in:
        kept = [secret for secret in secrets if len(secret.strip()) >= SHORTEST]
        for record in capture.records:
            text = shown(record, with_message=False)
            leaked = [secret for secret in kept if secret in text]
            assert not leaked, f"{record.name} logged {leaked[0]!r} of a run: {record.getMessage()!r}"


@pytest.fixture
def watched_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Fails the test if a record of memlab holds what was said in its runs."""
    with watching(monkeypatch) as secrets:
        yield secrets


_watch = pytest.fixture(autouse=True)(lambda watched_logs: watched_logs)  # in force where this module is a plugin
