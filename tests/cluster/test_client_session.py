"""What a client writes down: records in the order of their times, each handed over after it was noted."""

from collections.abc import Generator
from itertools import islice
from pathlib import Path

import pytest

from odradek.testing.sim.checking.history import Acknowledged, Failed, History, Placed, Polled, PollFailed, Record, Sent
from odradek.testing.sim.checking.numbered import decoded, encoded
from tests.cluster.client_session import IN_FLIGHT_MAX, Job, Reading, Sending, Session


@pytest.fixture
def session(tmp_path: Path) -> Generator[Session]:
    job = Job("odradek", "c1", "127.0.0.1:1", "t", 2, str(tmp_path / "history"), first_value=1_000)
    assert Job.from_json(job.to_json()) == job
    made = Session(job)
    yield made
    made.close()


def written(session: Session) -> list[Record]:
    return History.from_json(Path(session.job.file).read_text()).records


def test_a_record_is_noted_before_it_is_sent_and_with_its_end(session: Session) -> None:
    sending = Sending(session)
    assert decoded(sending.sent(7)) == 1_007
    [sent] = written(session)
    assert isinstance(sent, Sent)
    assert (sent.value, sent.partition, sent.acks, sent.is_idempotent) == (1_007, 1, -1, True)
    sending.acknowledged(7, 1, 41)
    sending.sent(8)
    sending.failed(8, TimeoutError("too late"))
    _, acknowledged, again, failed = written(session)
    assert isinstance(acknowledged, Acknowledged)
    assert (acknowledged.value, acknowledged.partition, acknowledged.offset) == (1_007, 1, 41)
    assert isinstance(failed, Failed)
    assert (failed.value, failed.is_definite) == (1_008, False)
    assert sent.at_ms <= acknowledged.at_ms <= again.at_ms <= failed.at_ms


def test_no_more_is_sent_than_there_is_room_for_and_nothing_once_it_is_to_stop(session: Session) -> None:
    sending = Sending(session)
    for _ in range(IN_FLIGHT_MAX - 1):
        assert sending.takes_room()
    numbers = sending.numbers()
    assert next(numbers) == 0
    assert not sending.takes_room()
    sending.sent(0)
    sending.acknowledged(0, 0, 0)
    assert next(numbers) == 1
    session.stop.set()
    assert list(numbers) == []


def test_partitions_take_turns(session: Session) -> None:
    sending = Sending(session)
    assert [sending.partition(number) for number in islice(range(20), 0, None, 5)] == [0, 1, 0, 1]


def test_a_reader_says_where_it_stood_and_what_it_was_given(session: Session) -> None:
    reading = Reading(session)
    reading.polled(5.0, 1, [(0, encoded(7)), (1, encoded(8, 100))])
    reading.polled(6.0, 1, [(2, encoded(9))])
    reading.failed(7.0, TimeoutError())
    reading.lost(1)
    placed = [each for each in written(session) if isinstance(each, Placed)]
    assert [(each.partition, each.offset, each.why) for each in placed] == [
        (0, 0, "start"),
        (1, 0, "start"),
        (1, 0, "out of range"),
    ]
    polled = [each for each in written(session) if isinstance(each, Polled)]
    assert [(each.position, each.records) for each in polled] == [(0, [(0, 7), (1, 8)]), (2, [(2, 9)])]
    assert [each.asked_ms for each in polled] == [5.0, 6.0]
    assert isinstance(written(session)[-2], PollFailed)
    assert reading.positions == {0: 0, 1: 0}
