"""A rate over the last windows, and how long a client must be silent to bring it down (SampledStat.java, Rate.java).

What is recorded falls into the present window, of `quota.window.size.seconds`; `quota.window.num` of them count. The
time that the sum is divided by is that since the oldest window began, and at least that of all windows but one: who has
just begun may use at once what all but one window allow, and is measured as if it had been silent before.

    observed rate O over W, limit T: silent for (O - T) / T * W, so that O * W / (W + silence) = T
"""

from math import floor, inf
from typing import Final, NamedTuple

INT_MAX: Final = 2**31 - 1
MS_PER_S: Final = 1000


class Windows(NamedTuple):
    """Of one kind of quota."""

    number: int
    size_ms: int

    @classmethod
    def of_seconds(cls, number: int, size_seconds: int) -> "Windows":
        return cls(number, size_seconds * MS_PER_S)

    @property
    def span_ms(self) -> int:
        """So long what was recorded counts."""
        return self.number * self.size_ms


class _Sample:
    """What was recorded in one window."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0.0
        self.start_ms = self.last_ms = now_ms


class Rate:
    """What one client, or several that share a limit, use of it."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._samples = [_Sample(now_ms)]
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """A negative value takes back what was recorded before."""
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        """The next window; one more is kept than counts, for the one that overlaps the span's beginning."""
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def per_second(self, now_ms: int) -> float:
        """The observed rate."""
        elapsed_ms = self.elapsed_ms(now_ms)
        return sum(sample.value for sample in self._samples) * MS_PER_S / elapsed_ms

    def elapsed_ms(self, now_ms: int) -> int:
        """The time over which the rate is observed; what is too old to count is forgotten."""
        span_ms, size_ms = self._windows.span_ms, self._windows.size_ms
        oldest_ms = now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= span_ms:
                sample.reset(now_ms)
            elif sample.start_ms < oldest_ms:
                oldest_ms = sample.start_ms
        elapsed_ms = now_ms - oldest_ms
        lacking = self._windows.number - 1 - elapsed_ms // size_ms
        if lacking > 0:
            elapsed_ms += lacking * size_ms
        return max(elapsed_ms, 1)

    def silence_ms(self, limit: float, now_ms: int) -> int:
        """For how long nothing may come until the rate is down to `limit`; 0 where it is."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        return as_int((rate - limit) / limit * self.elapsed_ms(now_ms) if limit > 0 else inf)


def as_int(duration_ms: float) -> int:
    """Rounded as Java does, and no more than a throttle time in an answer can say."""
    return INT_MAX if duration_ms >= INT_MAX else floor(duration_ms + 0.5)
