"""A consumer group misses nothing, its offsets do not go back, and a partition has one owner at a time.

*Processed by no member*: acknowledged, and by the end no member had it. That some have it twice is allowed.

*Committed offset went back*: an owner began before an offset whose commit had been acknowledged, or which a broker had
told as committed, when the owner was assigned. It asks for the offset after that, so it must be told this one or a
later one, whoever coordinates by then. No other member can commit there between the assignment and that question, for
its generation has ended. Nor may any broker, whoever it takes itself for, tell a lower offset to somebody who asks
after that. Excused is an offset whose commit was not answered within the client's request time-out, for one that was
given up may come behind a later one, as with Apache Kafka.

*Began ahead of every commit*: an owner passed over records of which nobody had said that they are processed, and which
it had not processed itself: kafka-python keeps its position in a partition that it is given again.

*Commit of a generation that had ended*: it was asked for after some member had been assigned in a later generation, so
the coordinator knew that generation, and has to refuse. Where the client was in another generation when it answered, it
may have sent that one.

*Two owners*. In one generation a partition is one member's: the leader assigns it once. From one generation to the next
owners overlap where the coordinator gave up waiting for the former one (a session that ended, a rebalance that it did
not join), and the former one could not know: until it reaches the coordinator again, or gives up by itself after its
session time-out. So two members may both process for `Rules.dark_ms`, and no longer. What the former one commits
meanwhile is refused, which is the rule above. Two lives of one static member have the same partitions in one
generation, and the newer one has fenced the older.

That positions do not go back within one ownership is judged with all readers' (check_reads.py).
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from odradek.testing.sim.checking.expectations import Expectations, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.group_history import NO_GENERATION
from odradek.testing.sim.checking.ledger import Ledger
from odradek.testing.sim.checking.ownership import Commit, Groups, Known, Ownership

LATE_COMMIT: Final = "a commit of this offset may have come late"


def broken_groups(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """Of all kinds that are named above."""
    if not ledger.group_records:
        return
    groups = Groups(ledger)
    yield from _unprocessed(ledger, groups)
    yield from _beginnings(ledger, groups, expectations.rules.request_timeout_ms)
    yield from _readings(ledger, groups, expectations.rules.request_timeout_ms)
    yield from _generations(ledger, groups)
    yield from _two_owners(ledger, groups, expectations.rules.dark_ms)


# -- what is processed ------------------------------------------------------------------------------------------------


def _unprocessed(ledger: Ledger, groups: Groups) -> Iterator[Finding]:
    """One finding a partition, about the first record. Nothing where the history ended before the members had all."""
    if not ledger.has_ended:
        return
    processed: dict[TopicPartition, set[int]] = {
        key: {offset for _, polled in each.polls if polled.client in groups.members for offset, _ in polled.records}
        for key, each in ledger.partitions.items()
    }
    missed: dict[TopicPartition, list[tuple[int, int]]] = {}
    for send in ledger.sends.values():
        told = send.acknowledged
        if told is None or not send.is_strong or told.offset < 0 or told.topic not in groups.topics:
            continue
        key = told.topic, told.partition
        if told.offset not in processed[key]:
            missed.setdefault(key, []).append((told.offset, send.acknowledged_index))
    for key, offsets in missed.items():
        offset, index = min(offsets)
        text = f"{len(offsets)} acknowledged records were processed by no member, this one first"
        yield Finding(Anomaly.UNPROCESSED, *key, offset, text, ledger.events(index))


def _beginnings(ledger: Ledger, groups: Groups, request_timeout_ms: float) -> Iterator[Finding]:
    """Where owners begin."""
    positions: dict[tuple[str, TopicPartition], int] = {}
    for each in groups.ownerships:
        if each.first is None:
            continue
        began = each.first.records[0][0]
        committed = groups.committed_before(each.key, each.index)
        if committed is not None and began < committed.offset:
            late = groups.may_have_come_late(each.key, began, each.first_index, request_timeout_ms)
            yield _went_back(ledger, each, committed, late)
        asked = groups.asked_before(each.key, each.first_index)
        own = positions.get((each.member, each.key), 0)
        yield from _passed_over(ledger, each, max(own, 0 if asked is None else asked.offset))
        assert each.last is not None
        positions[each.member, each.key] = each.last.records[-1][0] + 1


def _went_back(ledger: Ledger, each: Ownership, known: Known, late: Commit | None) -> Finding:
    assert each.first is not None
    began = each.first.records[0][0]
    text = f"{each.member} began at {began}, though {known.offset} was committed when it was assigned"
    indexes = [known.commit.asked_index, known.event, each.index, each.first_index]
    if late is not None:
        indexes.append(late.asked_index)
    excuse = None if late is None else LATE_COMMIT
    return Finding(Anomaly.COMMIT_LOST, *each.key, began, text, ledger.events(*indexes), excuse)


def _passed_over(ledger: Ledger, each: Ownership, start: int) -> Iterator[Finding]:
    """`start`: the highest offset that anybody had asked to commit, or that it had come to itself; 0 where there is
    neither."""
    assert each.first is not None
    began = each.first.records[0][0]
    partition = ledger.partition(*each.key)
    known = next((seen for offset in range(start, began) if (seen := partition.strong_at(offset)) is not None), None)
    if known is not None:
        text = f"{each.member} began at {began}, and nobody had come farther than {start}"
        events = ledger.events(known.first_index, each.index, each.first_index)
        yield Finding(Anomaly.BEGAN_AHEAD, *each.key, known.offset, text, events)


def _readings(ledger: Ledger, groups: Groups, request_timeout_ms: float) -> Iterator[Finding]:
    """What brokers tell of offsets."""
    times = [record.at_ms for record in ledger.records]
    for index, read in groups.reads:
        asked_index = bisect_left(times, read.asked_ms)
        for partition, offset in read.offsets:
            key = read.topic, partition
            committed = groups.committed_before(key, asked_index)
            if committed is None or committed.offset <= offset:
                continue
            late = groups.may_have_come_late(key, offset, index, request_timeout_ms)
            text = f"{read.machine} told {offset} of what is committed, when {committed.offset} was known to be"
            events = ledger.events(committed.commit.asked_index, committed.event, index)
            excuse = None if late is None else LATE_COMMIT
            yield Finding(Anomaly.COMMIT_LOST, *key, max(offset, 0), text, events, excuse)


# -- generations and owners -------------------------------------------------------------------------------------------


def _generations(ledger: Ledger, groups: Groups) -> Iterator[Finding]:
    """Each member's go up, and commits are those of the present one."""
    newest: dict[str, tuple[int, int]] = {}
    for index, record in groups.assignments:
        before_index, before = newest.get(record.member, (-1, NO_GENERATION))
        if record.generation != NO_GENERATION:
            if record.generation < before:
                text = f"{record.member} was in generation {before}, and is assigned in {record.generation}"
                first = record.partitions[0] if record.partitions else -1
                events = ledger.events(before_index, index)
                yield Finding(Anomaly.GENERATION_BACK, record.topic, first, None, text, events)
            newest[record.member] = index, record.generation
    for commit in groups.commits:
        yield from _of_other_generation(ledger, groups, commit)


def _of_other_generation(ledger: Ledger, groups: Groups, commit: Commit) -> Iterator[Finding]:
    asked, answered = commit.asked, commit.answered
    if answered is None or answered.error or NO_GENERATION in (asked.generation, answered.generation):
        return
    if asked.generation != answered.generation:
        return
    for index, record in groups.assignments:
        if index > commit.asked_index:
            return
        if record.topic == asked.topic and record.generation > asked.generation:
            partition, offset = asked.offsets[0]
            text = (
                f"{asked.member} committed in generation {asked.generation}, when {record.member} had been assigned in "
                f"{record.generation}"
            )
            events = ledger.events(index, commit.asked_index, commit.answered_index)
            yield Finding(Anomaly.OTHER_GENERATION, asked.topic, partition, offset, text, events)
            return


def _two_owners(ledger: Ledger, groups: Groups, dark_ms: float) -> Iterator[Finding]:
    by_key: dict[TopicPartition, list[Ownership]] = {}
    for each in groups.ownerships:
        for former in by_key.setdefault(each.key, []):
            if former.is_same_client(each):
                continue
            if former.generation == each.generation != NO_GENERATION:
                text = f"{former.member} and {each.member} were both assigned it in generation {each.generation}"
                events = ledger.events(former.index, each.index)
                yield Finding(Anomaly.TWO_OWNERS, *each.key, None, text, events)
            yield from _overlap(ledger, former, each, dark_ms)
        by_key[each.key].append(each)


def _overlap(ledger: Ledger, former: Ownership, each: Ownership, dark_ms: float) -> Iterator[Finding]:
    """Both process for longer than the former owner may be in the dark. One that reads nothing harms nobody."""
    last = former.last
    if last is None or last.at_ms <= each.assigned.at_ms + dark_ms or each.until_ms <= last.at_ms:
        return
    text = (
        f"{former.member} still processes {last.at_ms - each.assigned.at_ms:.0f} ms after {each.member} was assigned it"
    )
    events = ledger.events(former.index, each.index, former.last_index)
    yield Finding(Anomaly.TWO_OWNERS, *each.key, last.records[0][0], text, events)
