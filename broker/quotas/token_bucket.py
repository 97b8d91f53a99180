"""Tokens that come in at a steady rate, are saved up to a burst, and may be overdrawn once (KIP-599, TokenBucket.java).

    room grows by `limit` tokens in a second, up to what all windows allow; an operation takes its tokens off

Whoever has at least none to pay back may do any operation, however large; whoever owes waits until the debt is paid.
Changes of the cluster's metadata come in bursts, which a rate over windows would refuse for long.
"""

from typing import Final

from odradek.broker.quotas.rate import MS_PER_S, Windows, as_int

_FULL: Final = float("inf")


class TokenBucket:
    """The tokens of one client, or of several that share a limit."""

    __slots__ = ("_at_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        """It is full."""
        self._windows = windows
        self._tokens = _FULL
        self._at_ms = now_ms

    def record(self, tokens: float, limit: float, now_ms: int) -> None:
        """Takes tokens off."""
        self._refill(limit, now_ms)
        self._tokens -= tokens

    def tokens(self, limit: float, now_ms: int) -> float:
        """What is there; negative: what is owed."""
        self._refill(limit, now_ms)
        return self._tokens

    def silence_ms(self, limit: float, now_ms: int) -> int:
        """For how long nothing may be done until nothing is owed."""
        tokens = self.tokens(limit, now_ms)
        return as_int(-tokens / limit * MS_PER_S) if tokens < 0 else 0

    def _refill(self, limit: float, now_ms: int) -> None:
        burst = self._windows.span_ms / MS_PER_S * limit
        self._tokens = min(burst, self._tokens + limit * (now_ms - self._at_ms) / MS_PER_S)
        self._at_ms = now_ms
