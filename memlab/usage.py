"""Usage: how many tokens went in and out of a model."""

from __future__ import annotations

from collections.abc import Mapping


class UsageDetails(dict[str, int]):
    """Token counts under Agent Framework's names; two of them add up.

    `estimated` is True when a part was counted here because the service reported no usage.

    >>> UsageDetails(input_token_count=11, output_token_count=4) + UsageDetails(input_token_count=20)
    {'input_token_count': 31, 'output_token_count': 4}
    """

    estimated: bool = False

    @classmethod
    def of(cls, prompt: int, completion: int, *, estimated: bool = False) -> UsageDetails:
        """The counts of one model call."""
        usage = cls(input_token_count=prompt, output_token_count=completion, total_token_count=prompt + completion)
        usage.estimated = estimated
        return usage

    def __add__(self, other: Mapping[str, int]) -> UsageDetails:
        total = UsageDetails({k: self.get(k, 0) + other.get(k, 0) for k in {**self, **other}})
        total.estimated = self.estimated or getattr(other, "estimated", False)
        return total
