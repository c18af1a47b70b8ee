"""The time of an experiment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SimulatedClock:
    """A time that moves only when it is told to, so that a month of visits runs in seconds.

    >>> clock = SimulatedClock()
    >>> clock.forward(days=1)
    >>> clock()
    datetime.datetime(2026, 1, 2, 12, 0, tzinfo=datetime.timezone.utc)
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **spans: float) -> None:
        """Move on by a `timedelta(**spans)`."""
        self.now += timedelta(**spans)
