"""What a broker says of itself on its metrics page (`--metrics`), in Prometheus' text form: its histograms."""

import re
from dataclasses import dataclass
from math import inf
from urllib.request import urlopen

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many samples were at most each bound; the last bound is infinite, and has all of them."""

    counts: tuple[tuple[float, float], ...]

    @property
    def count(self) -> float:
        return self.counts[-1][1]

    def since(self, before: "Histogram") -> "Histogram":
        """What has been added to an earlier one."""
        earlier = dict(before.counts)
        return Histogram(tuple((bound, count - earlier[bound]) for bound, count in self.counts))

    def bound_of(self, share: float) -> float:
        """The least bound that so many of the samples do not exceed: they are not known better."""
        assert self.count > 0, "of no sample"
        return next(bound for bound, count in self.counts if count >= share * self.count)


def parse_histogram(page: str, name: str) -> Histogram | None:
    """A histogram without labels; None where the page has none of that name."""
    pattern = rf'^{re.escape(name)}_bucket{{le="([^"]+)"}} (\S+)$'
    found = [
        (inf if bound == "+Inf" else float(bound), float(count))
        for bound, count in re.findall(pattern, page, re.MULTILINE)
    ]
    return Histogram(tuple(sorted(found))) if found else None


def read_page(address: str) -> str:
    """Raises OSError."""
    with urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as answer:
        text: bytes = answer.read()
    return text.decode()
