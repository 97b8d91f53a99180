"""A histogram in constant memory: how many values fall below each of some bounds, and their sum."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence


class Histogram:
    """Counts are those of the buckets alone, not of all below; the last one is what is above every bound."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.sum += value
        self.counts[bisect_left(self.bounds, value)] += 1

    def add_up_to(self, total: int) -> "Histogram":
        """A copy in which the values that were not observed, because they are 0, are: there are `total` of them all."""
        copy = Histogram(self.bounds)
        copy.counts = [*self.counts]
        copy.counts[0] += total - sum(self.counts)
        copy.sum = self.sum
        return copy

    def in_other_unit(self, bounds: Sequence[float], factor: float) -> "Histogram":
        """A copy whose values are larger by a factor, and whose bounds are `bounds`, which are, too."""
        copy = Histogram(bounds)
        copy.counts, copy.sum = [*self.counts], self.sum * factor
        return copy

    def cumulative(self) -> Iterable[tuple[str, float]]:
        """Upper bound, as Prometheus writes it, and how many values are not above it."""
        total = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            yield bound, total


def merged(histograms: Sequence[Histogram]) -> Histogram:
    """Of all their values; they have the same bounds."""
    result = Histogram(histograms[0].bounds)
    for each in histograms:
        result.sum += each.sum
        for index, count in enumerate(each.counts):
            result.counts[index] += count
    return result
