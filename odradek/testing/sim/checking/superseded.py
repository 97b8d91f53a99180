"""Which records compaction may have taken from readers: those with a newer one of their key.

It takes nothing above the high watermark, so of a record that it took a newer one could be read; and of the newest of a
key, that one itself. While readers are on their way the newer one may be gone again for a still newer one before
anybody has seen it.
"""

from odradek.testing.sim.checking.expectations import Rules, TopicPartition
from odradek.testing.sim.checking.ledger import Ledger, Send
from odradek.testing.sim.checking.topics import name_of


class Superseded:
    """Asked of one history. In topics that are not compacted nothing is."""

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        self._ledger = ledger
        self._rules = rules
        self._newest_read: dict[tuple[TopicPartition, int], int] = {}
        """The largest offset at which a record of a key was read."""
        self._sent: dict[tuple[str, int], list[Send]] = {}
        """By topic and key."""
        self._places: dict[tuple[TopicPartition, int], int] = {}
        """The largest offset at which a value was seen."""
        if any(topic.is_compacted for topic in (rules.default, *rules.topics.values())):
            self._learn()

    def _learn(self) -> None:
        for send in self._ledger.sends.values():
            if send.sent.key is not None:
                self._sent.setdefault((send.sent.topic, send.sent.key), []).append(send)
        for key, partition in self._ledger.partitions.items():
            for seen in partition.sightings():
                self._raise(self._places, (key, seen.value), seen.offset)
                written = self._ledger.sends.get(seen.value)
                if seen.is_read and written is not None and written.sent.key is not None:
                    self._raise(self._newest_read, (key, written.sent.key), seen.offset)

    @staticmethod
    def _raise(offsets: dict[tuple[TopicPartition, int], int], which: tuple[TopicPartition, int], offset: int) -> None:
        offsets[which] = max(offset, offsets.get(which, -1))

    def in_the_end(self, key: TopicPartition, offset: int, value: int) -> bool:
        """Whether it may be missing when all is read: a newer one was."""
        record_key = self._key(key, value)
        return record_key is not None and self._newest_read.get((key, record_key), -1) > offset

    def by(self, at_ms: float, key: TopicPartition, offset: int, value: int) -> bool:
        """Whether it may have been missing then: a newer one, as far as is known, may have been there."""
        record_key = self._key(key, value)
        return record_key is not None and any(
            send.sent.at_ms <= at_ms
            and not (send.failed is not None and send.failed.is_definite)
            and send.sent.partition in (None, key[1])
            and self._places.get((key, send.sent.value), offset + 1) > offset
            for send in self._sent[name_of(key[0]), record_key]
        )

    def _key(self, key: TopicPartition, value: int) -> int | None:
        send = self._ledger.sends.get(value)
        return None if send is None or not self._rules.of(key[0]).is_compacted else send.sent.key
