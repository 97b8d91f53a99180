"""Which topics a world has had, by id: two topics of one name, one made after the other was deleted, are two topics.

    topics.identity("orders", topic_id)     "orders" for the first topic of that name, "orders#2" for the second, ...
    topics.candidates("orders", from_ms, to_ms)

An *identity* is the topic's name in histories, so whatever goes by topic and partition goes by topic id. Clients that
speak of a topic by its name mean the one that the asked broker has: the one in the store, or one that was deleted and
that some broker has not let go yet.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from odradek.testing.sim.checking.history import Acknowledged, Answered, Asked, Record, Sent

SEPARATOR: Final = "#"
"""It stands in no topic's name."""
FOR_EVER: Final = float("inf")


def name_of(identity: str) -> str:
    """The name under which clients know the topic."""
    return identity.partition(SEPARATOR)[0]


@dataclass(slots=True)
class Topic:
    """One topic, from its creation to its deletion."""

    identity: str
    topic_id: bytes
    created_ms: float
    partition_count: int = 0
    is_stored: bool = False
    """It exists: the store has it."""
    held_until_ms: float = FOR_EVER
    """From then on no broker has it any more."""


class Topics:
    """See the module. All times are virtual ms."""

    def __init__(self, now_ms: Callable[[], float], *, is_told: bool = True) -> None:
        """`is_told`: of each topic at the moment at which it is created; else at the next look."""
        self._now_ms = now_ms
        self._is_told = is_told
        self._looked_ms = 0.0
        self._topics: dict[bytes, Topic] = {}
        self._by_name: dict[str, list[Topic]] = {}

    def identity(self, name: str, topic_id: bytes) -> str:
        """What histories call the topic. One that was not heard of before is the next of its name."""
        return self.topic(name, topic_id).identity

    def topic(self, name: str, topic_id: bytes) -> Topic:
        found = self._topics.get(topic_id)
        if found is None:
            same = self._by_name.setdefault(name, [])
            identity = f"{name}{SEPARATOR}{len(same) + 1}" if same else name
            found = Topic(identity, topic_id, self._now_ms() if self._is_told else self._looked_ms)
            self._topics[topic_id] = found
            same.append(found)
        return found

    def current(self, name: str) -> Topic | None:
        """The one that exists; None where there is none."""
        return next((topic for topic in reversed(self._by_name.get(name, ())) if topic.is_stored), None)

    def stored_names(self) -> list[str]:
        """Of the topics that exist."""
        return [name for name in self._by_name if self.current(name) is not None]

    def candidates(self, name: str, from_ms: float, to_ms: float) -> list[Topic]:
        """Those that a broker may have meant by the name at some moment between the two."""
        return [
            topic
            for topic in self._by_name.get(name, ())
            if topic.created_ms <= to_ms and topic.held_until_ms >= from_ms
        ]

    def looked(self, held: set[bytes]) -> None:
        """Brokers have these topics, at a look. To be called at each look that sees what there is."""
        now_ms = self._looked_ms = self._now_ms()
        for topic in self._topics.values():
            if not topic.is_stored and topic.held_until_ms == FOR_EVER and topic.topic_id not in held:
                topic.held_until_ms = now_ms

    def resolved(self, records: Iterable[Record]) -> Iterator[Record]:
        """A history in which answers to clients that spoke of a topic by its name say which topic it was, when all is
        known. Where it may have been either of two, an acknowledgement has no offset and names the older one."""
        asked_ms: dict[int | str, float] = {}
        names: dict[str, str] = {}
        for record in records:
            match record:
                case Sent():
                    asked_ms[record.value] = record.at_ms
                case Asked():
                    asked_ms[record.operator], names[record.operator] = record.at_ms, record.topic
                case Acknowledged() if len(self._by_name.get(record.topic, ())) > 1:
                    since_ms = asked_ms.get(record.value, record.at_ms)
                    found = self.candidates(record.topic, since_ms, record.at_ms)
                    if found:
                        offset = record.offset if len(found) == 1 else -1
                        record = replace(record, topic=found[0].identity, offset=offset)
                case Answered() if name := names.get(record.operator):
                    found = self.candidates(name, asked_ms[record.operator], record.at_ms)
                    record = replace(record, topic=found[0].identity if len(found) == 1 else "")
                case _:
                    pass
            yield record
