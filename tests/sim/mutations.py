"""Turns a legal history into an illegal one, in one place: each operator breaks one promise.

An operator changes the records that it is given, and returns False where it finds nothing to change. Histories come
from `model_cluster.py` without unclean elections, so that nothing excuses what is done here.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from odradek.testing.sim.checking.finding import Anomaly
from odradek.testing.sim.checking.history import Acknowledged, Failed, Placed, Polled, Record, Sent

Records = list[Record]
Operator = Callable[[Records, random.Random], bool]


def _polls(records: Records) -> list[tuple[int, Polled]]:
    return [(index, each) for index, each in enumerate(records) if isinstance(each, Polled) and each.records]


def _strong(records: Records) -> dict[int, Acknowledged]:
    """Acknowledged with acks=all, by value."""
    strong = {each.value for each in records if isinstance(each, Sent) and each.acks == -1}
    return {each.value: each for each in records if isinstance(each, Acknowledged) and each.value in strong}


def lose_an_acknowledged_record(records: Records, rng: random.Random) -> bool:
    """No reader is given it; the position behind it shows that they passed over it, or the end that it is missing."""
    acknowledged = _strong(records)
    if not acknowledged:
        return False
    value = rng.choice(sorted(acknowledged))
    for index, polled in _polls(records):
        records[index] = replace(polled, records=[each for each in polled.records if each[1] != value])
    return True


def skip_within_a_poll(records: Records, rng: random.Random) -> bool:
    return _skip(records, rng, is_first=False)


def skip_before_a_poll(records: Records, rng: random.Random) -> bool:
    return _skip(records, rng, is_first=True)


def _skip(records: Records, rng: random.Random, *, is_first: bool) -> bool:
    """One poll is without a record of which an acknowledgement tells: else nobody could know that it was there."""
    acknowledged = _strong(records)
    holes = [
        (index, hole)
        for index, polled in _polls(records)
        for hole, (_, value) in enumerate(polled.records[:-1])
        if value in acknowledged and (hole == 0) is is_first
    ]
    if not holes:
        return False
    index, hole = rng.choice(holes)
    polled = records[index]
    assert isinstance(polled, Polled)
    records[index] = replace(polled, records=polled.records[:hole] + polled.records[hole + 1 :])
    return True


def put_another_value_there(records: Records, rng: random.Random) -> bool:
    """Where an acknowledgement names one, a reader finds another, of a producer whose records may come twice."""
    acknowledged = _strong(records)
    others = [each.value for each in records if isinstance(each, Sent) and not each.is_idempotent]
    places = [
        (index, place)
        for index, polled in _polls(records)
        for place, (_, value) in enumerate(polled.records)
        if value in acknowledged
    ]
    if not places or not others:
        return False
    index, place = rng.choice(places)
    polled = records[index]
    assert isinstance(polled, Polled)
    changed = list(polled.records)
    changed[place] = changed[place][0], rng.choice(others)
    records[index] = replace(polled, records=changed)
    return True


def write_a_record_twice(records: Records, rng: random.Random) -> bool:
    """A reader's last poll brings one of an idempotent producer a second time."""
    strong = {each.value for each in records if isinstance(each, Sent) and each.is_idempotent}
    polls = _polls(records)
    seen = [(index, each) for index, polled in polls for each in polled.records if each[1] in strong]
    if not seen:
        return False
    highest = max(offset for _, polled in polls for offset, _ in polled.records)
    _, (_, value) = rng.choice(seen)
    last = polls[-1][1]
    records.append(
        replace(last, at_ms=records[-1].at_ms, position=highest + 1, records=[(highest + 1, value)], client="new")
    )
    return True


def refuse_what_was_read(records: Records, rng: random.Random) -> bool:
    """The answer was that it is certainly not there."""
    read = {value for _, polled in _polls(records) for _, value in polled.records}
    answers = [
        index for index, each in enumerate(records) if isinstance(each, Acknowledged | Failed) and each.value in read
    ]
    if not answers:
        return False
    index = rng.choice(answers)
    answer = records[index]
    assert isinstance(answer, Acknowledged | Failed)
    records[index] = Failed(answer.at_ms, answer.value, "INVALID_RECORD", True)
    return True


def read_what_nobody_sent(records: Records, rng: random.Random) -> bool:
    polls = _polls(records)
    if not polls:
        return False
    index, polled = rng.choice(polls)
    records[index] = replace(polled, records=[*polled.records[:-1], (polled.records[-1][0], 1_000_000)])
    return True


def turn_two_writes_round(records: Records, rng: random.Random) -> bool:
    """Everywhere: two records of one idempotent producer have changed places."""
    producers = {each.value: each.producer for each in records if isinstance(each, Sent) and each.is_idempotent}
    places = {value: offset for _, polled in _polls(records) for offset, value in polled.records if value in producers}
    pairs = [(one, other) for one in places for other in places if one < other and producers[one] == producers[other]]
    if not pairs:
        return False
    one, other = rng.choice(pairs)
    swapped = {one: other, other: one}
    for index, each in enumerate(records):
        if isinstance(each, Polled):
            changed = [(offset, swapped.get(value, value)) for offset, value in each.records]
            records[index] = replace(each, records=changed)
        elif isinstance(each, Acknowledged) and each.value in swapped:
            records[index] = replace(each, offset=places[swapped[each.value]])
    return True


def go_back_between_polls(records: Records, rng: random.Random) -> bool:
    """A reader asks once more for what it was just given."""
    polls = _polls(records)
    if not polls:
        return False
    index, polled = rng.choice(polls)
    records.insert(index + 1, replace(polled))
    return True


def go_back_within_a_poll(records: Records, rng: random.Random) -> bool:
    long = [(index, polled) for index, polled in _polls(records) if len(polled.records) >= 2]
    if not long:
        return False
    index, polled = rng.choice(long)
    records[index] = replace(polled, records=[*polled.records, polled.records[0]])
    return True


def write_before_what_is_known(records: Records, rng: random.Random) -> bool:
    """A new record is acknowledged at an offset of its own, before one that was acknowledged."""
    last = max((each.offset for each in _strong(records).values()), default=0)
    taken = {offset for _, polled in _polls(records) for offset, _ in polled.records}
    taken |= {each.offset for each in records if isinstance(each, Acknowledged)}
    free = [offset for offset in range(last) if offset not in taken]
    if not free:
        return False
    at_ms = records[-1].at_ms
    records.append(Sent(at_ms, "c", "late", 2_000_000, "t", 0, -1, False))
    records.append(Acknowledged(at_ms, 2_000_000, "t", 0, rng.choice(free)))
    return True


def lose_a_position(records: Records, rng: random.Random) -> bool:
    polls = _polls(records)
    if not polls:
        return False
    index, polled = rng.choice(polls)
    end = polled.records[-1][0]
    records.insert(index + 1, Placed(polled.at_ms, polled.client, polled.topic, polled.partition, end, "out of range"))
    return True


OPERATORS: dict[Operator, set[Anomaly]] = {
    lose_an_acknowledged_record: {Anomaly.LOST_WRITE, Anomaly.UNSEEN},
    skip_within_a_poll: {Anomaly.INTERNAL_SKIPPED_POLL},
    skip_before_a_poll: {Anomaly.SKIPPED_POLL},
    put_another_value_there: {Anomaly.INCONSISTENT_OFFSET},
    write_a_record_twice: {Anomaly.DUPLICATE},
    refuse_what_was_read: {Anomaly.ABORTED_READ},
    read_what_nobody_sent: {Anomaly.PHANTOM},
    turn_two_writes_round: {Anomaly.WRITE_ORDER},
    go_back_between_polls: {Anomaly.NON_MONOTONIC_POLL},
    go_back_within_a_poll: {Anomaly.INTERNAL_NON_MONOTONIC_POLL},
    write_before_what_is_known: {Anomaly.NON_MONOTONIC_SEND},
    lose_a_position: {Anomaly.POSITION_LOST},
}
"""Each with what it has to lead to; one of these is enough."""
