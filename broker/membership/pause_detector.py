"""Whether this process has stood still for so long that others may have taken its place unnoticed. Pure.

A process that is stopped (SIGSTOP, a machine that swaps, a virtual one that is moved) sends no heartbeats. The
controller fences it for its silence, sooner than its lease ends, and when it goes on it finds requests in its buffers
before it reads in the metadata what has happened. So whoever was stopped for half of that time counts for nothing more
than what epochs protect, until it has asked the store (registration.py).

It is noticed by whoever looks at the clock first, a request or the beat of a timer, in whatever order they come.
"""


class PauseDetector:
    """The last moment at which this process was seen running, and whether there was a gap before that."""

    __slots__ = ("_noticed_ms", "_seen_ms", "limit_ms", "may_be_replaced")

    def __init__(self, limit_ms: float = float("inf")) -> None:
        self.limit_ms = limit_ms
        self.may_be_replaced = False
        """Whether the store has to be asked before anything else."""
        self._seen_ms: float | None = None
        self._noticed_ms = 0.0

    def check(self, now_ms: float) -> bool:
        """The process runs now. Whether it is doubtful what has become of it."""
        if self._seen_ms is not None and now_ms - self._seen_ms > self.limit_ms:
            self.may_be_replaced = True
            self._noticed_ms = now_ms
        self._seen_ms = now_ms
        return self.may_be_replaced

    def stood_still(self, now_ms: float) -> None:
        """The process has, and goes on now: somebody knows that."""
        self.may_be_replaced = True
        self._noticed_ms = self._seen_ms = now_ms

    def confirmed(self, asked_ms: float) -> None:
        """The store was asked then, and nobody had taken its place."""
        if asked_ms >= self._noticed_ms:
            self.may_be_replaced = False
