"""Which records a test's program has processed, and when: to compare with what it has committed.

processed = ProcessedRecords()
for message in consumer:
    handle(message)
    processed.note(message)
kafka.requests(api="OffsetCommit").commit_only(processed)
"""

from typing import Any

from odradek.testing.waiting import now_s

__all__ = ["ProcessedRecords"]


class ProcessedRecords:
    """See the module. Offsets of control batches (transactions) are no records: where a topic has such, the last offset
    before the commit may be one that nobody can process, and the comparison is not for it."""

    def __init__(self) -> None:
        self._at_s: dict[tuple[str, int], dict[int, float]] = {}

    def note(self, record: Any) -> None:
        """This record is processed, now: of kafka-python, aiokafka, Odradek (attributes) or confluent-kafka (methods).
        In any thread. Raises TypeError."""
        topic = _told(record, "topic")
        if not isinstance(topic, str):
            raise TypeError(f"a record has topic, partition and offset, and this has not: {record!r}")
        self.note_offset(topic, _told(record, "partition"), _told(record, "offset"))

    def note_offset(self, topic: str, partition: int, offset: int) -> None:
        """The record at this offset is processed, now."""
        self._at_s.setdefault((topic, partition), {}).setdefault(offset, now_s())

    def missing(self, topic: str, partition: int, committed_offset: int, at_s: float) -> str:
        """What of that partition was not processed when this offset was committed; "" for nothing. Records before the
        first one that was noted are those of an earlier run."""
        noted = self._at_s.get((topic, partition), {})
        if not noted:
            return "" if committed_offset <= 0 else "no record of the partition was noted as processed"
        for offset in sorted(noted):
            if offset < committed_offset and noted[offset] > at_s:
                return f"offset {offset} was processed {(noted[offset] - at_s) * 1000:.0f} ms later"
        last = committed_offset - 1
        if last >= min(noted) and last not in noted:
            return f"offset {last} was never noted as processed"
        return ""


def _told(record: Any, name: str) -> Any:
    value = getattr(record, name, None)
    return value() if callable(value) else value
