"""What was processed when: what a commit lacks is said, whichever client's records were noted."""

from types import SimpleNamespace

import pytest

from odradek.testing.faults.processed_records import ProcessedRecords
from odradek.testing.waiting import now_s


class Message:
    """As confluent-kafka has it."""

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 8


def test_what_a_commit_lacks_is_said() -> None:
    processed = ProcessedRecords()
    processed.note(SimpleNamespace(topic="orders", partition=0, offset=7))
    first_s = now_s()
    processed.note(Message())
    second_s = now_s()
    assert processed.missing("orders", 0, 8, first_s) == ""
    assert processed.missing("orders", 0, 3, first_s) == "", "an earlier run's"
    assert processed.missing("orders", 0, 9, first_s).startswith("offset 8 was processed ")
    assert processed.missing("orders", 0, 9, second_s) == ""
    assert processed.missing("orders", 0, 10, second_s) == "offset 9 was never noted as processed"
    assert processed.missing("orders", 1, 1, second_s) == "no record of the partition was noted as processed"
    assert processed.missing("orders", 1, 0, second_s) == ""


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(TypeError, match="a record has topic, partition and offset, and this has not: 'text'"):
        ProcessedRecords().note("text")
