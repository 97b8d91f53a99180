"""Which replica of each partition is its preferred leader: each broker of as many partitions as any other. Pure.

Of each topic, and of all together, two brokers differ by one leader at most, as far as the replicas allow. Where all
partitions have the same number of replicas, spread as `plan` spreads them, that can be had: each of r replicas leading
an r-th of the partition is such a division in fractions, and flows are integral.

A leader is handed on along chains: from a broker with more, over partitions of which the next one has a replica, to one
with fewer; first within each topic, then over all of them, where a topic may give its odd one to another broker.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

__all__ = ["preferred_leaders"]

K = TypeVar("K")
Place = tuple[str, int]
"""A topic and a broker; the topic is empty for all of them together."""
ALL: Final = ""


def preferred_leaders(topics: Mapping[str, Mapping[K, Sequence[int]]]) -> dict[K, int]:
    """`topics`: by topic the replicas of its partitions, the one first that leads now."""
    leading = _Leading(topics)
    for topic in topics:
        while leading.hand_on_within(topic):
            pass
    while leading.hand_on_over_all():
        pass
    return leading.leaders


class _Leading(Generic[K]):
    def __init__(self, topics: Mapping[str, Mapping[K, Sequence[int]]]) -> None:
        self._replicas = {key: replicas for its in topics.values() for key, replicas in its.items()}
        self._topic_of = {key: topic for topic, its in topics.items() for key in its}
        self.leaders = {key: replicas[0] for key, replicas in self._replicas.items()}
        self._brokers = sorted({each for replicas in self._replicas.values() for each in replicas})
        self._topics_on: dict[int, dict[str, None]] = {broker: {} for broker in self._brokers}
        self._led: dict[Place, dict[K, None]] = {}
        for topic, its in topics.items():
            for broker in self._brokers:
                self._led[topic, broker] = {}
            for key, replicas in its.items():
                self._led[topic, replicas[0]][key] = None
                for broker in replicas:
                    self._topics_on[broker][topic] = None
        self._low = {topic: len(its) // max(len(self._brokers), 1) for topic, its in topics.items()}
        self._high = {topic: -(-len(its) // max(len(self._brokers), 1)) for topic, its in topics.items()}
        self._loads = Counter(self.leaders.values())

    def hand_on_within(self, topic: str) -> bool:
        """Makes the topic more even by one; False where that cannot be."""

        def load(broker: int) -> int:
            return len(self._led[topic, broker])

        for start in sorted(self._brokers, key=load, reverse=True):
            before: dict[Place, tuple[Place, K | None]] = {}
            line: list[Place] = [(topic, start)]
            for place in line:
                if load(start) - load(place[1]) > 1:
                    self._hand_on(line[0], place, before)
                    return True
                self._look(place, line, before)
        return False

    def hand_on_over_all(self) -> bool:
        """Makes all together more even by one; False where that cannot be."""
        for start in sorted(self._brokers, key=lambda broker: self._loads[broker], reverse=True):
            before: dict[Place, tuple[Place, K | None]] = {}
            line: list[Place] = [(ALL, start)]
            for place in line:
                topic, broker = place
                if topic == ALL:
                    if self._loads[start] - self._loads[broker] > 1:
                        self._hand_on(line[0], place, before)
                        return True
                    giving = [
                        (each, broker)
                        for each in self._topics_on[broker]
                        if len(self._led[each, broker]) > self._low[each]
                    ]
                    self._extend(place, None, giving, line, before)
                else:
                    if len(self._led[place]) < self._high[topic]:
                        self._extend(place, None, [(ALL, broker)], line, before)
                    self._look(place, line, before)
        return False

    def _look(self, place: Place, line: list[Place], before: dict[Place, tuple[Place, K | None]]) -> None:
        for key in self._led[place]:
            self._extend(place, key, ((place[0], broker) for broker in self._replicas[key]), line, before)

    @staticmethod
    def _extend(
        place: Place,
        key: K | None,
        reached: Iterable[Place],
        line: list[Place],
        before: dict[Place, tuple[Place, K | None]],
    ) -> None:
        for end in reached:
            if end not in before and end != line[0]:
                before[end] = (place, key)
                line.append(end)

    def _hand_on(self, start: Place, end: Place, before: Mapping[Place, tuple[Place, K | None]]) -> None:
        place = end
        while place != start:
            source, key = before[place]
            if key is not None:
                self.leaders[key] = place[1]
                del self._led[source][key]
                self._led[place][key] = None
            place = source
        self._loads[start[1]] -= 1
        self._loads[end[1]] += 1
