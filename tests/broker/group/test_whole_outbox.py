"""What is said inside of a whole is one batch, or none; answers come after it."""

from typing import Any

import pytest

from odradek.broker.coordinator.machine import StoredRecord
from odradek.broker.group.whole_outbox import WholeOutbox
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.kept_outbox import Asked, KeptOutbox

A, B = StoredRecord(b"a", b"1"), StoredRecord(b"b", b"2")


def test_records_are_one_batch_and_answers_wait_for_it() -> None:
    kept, undone = KeptOutbox(), list[str]()
    outbox, asked = WholeOutbox(kept), Asked[str]()
    with outbox.whole("g"):
        outbox.reply("g", asked, "first")
        outbox.append("g", [A], lambda: undone.append("a"))
        outbox.append("g", [B], lambda: undone.append("b"))
        assert (kept.batches, asked.answers) == ([], [])
    assert (kept.batches, asked.answers, undone) == ([("g", [A, B])], ["first"], [])
    outbox.append("g", [A], lambda: None)
    assert len(kept.batches) == 2


def test_a_refusal_takes_all_back_the_last_first() -> None:
    kept, undone = KeptOutbox(), list[str]()
    outbox = WholeOutbox(kept)
    kept.refuses = True
    with outbox.whole("g") as whole:
        whole.also(lambda: undone.append("first"))
        outbox.append("g", [A], lambda: undone.append("second"))
    assert undone == []
    kept.undo()
    assert undone == ["second", "first"]


def test_what_is_dropped_is_taken_back_at_once_and_answered_nevertheless() -> None:
    kept, undone = KeptOutbox(), list[str]()
    outbox, asked = WholeOutbox(kept), Asked[Any]()
    with outbox.whole("g") as whole:
        outbox.append("g", [A], lambda: undone.append("a"))
        outbox.reply("g", asked, KafkaError(ErrorCode.INVALID_REQUEST))
        whole.drop()
    assert (kept.batches, undone, len(asked.answers)) == ([], ["a"], 1)


def test_an_exception_drops_it() -> None:
    kept, undone = KeptOutbox(), list[str]()
    outbox = WholeOutbox(kept)
    with pytest.raises(KafkaError), outbox.whole("g"):
        outbox.append("g", [A], lambda: undone.append("a"))
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    assert (kept.batches, undone) == ([], ["a"])
    outbox.append("g", [B], lambda: None)
    assert kept.batches == [("g", [B])]
