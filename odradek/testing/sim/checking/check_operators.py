"""What an answer to an operator promises: who leads, decides or answers later finds it done.

*Deleted records came back*: a leader's log starts below what a DeleteRecords was acknowledged to have left. *Log start
moved*: records are gone that nobody deleted. *Acknowledged change undone*: the metadata store does not have what was
acknowledged, or has lost it: a topic created or deleted, partitions, options, replicas, a broker unregistered. *Record
of another topic*: a topic that was made anew holds what was acknowledged in the one before. *Reassigned too early*:
replicas went, and with them too many of those in sync. *Created with too few replicas*, *refused*: a topic has not as
many replicas as were asked for, though enough brokers are registered, there or not.

A request without an answer, and one that failed, promise nothing, but may have changed something.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from odradek.testing.sim.checking.cluster_history import ClusterRecord, PartitionStored
from odradek.testing.sim.checking.expectations import Expectations, Request, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Event, Finding
from odradek.testing.sim.checking.history import Answered, ReplicaSeen
from odradek.testing.sim.checking.ledger import Ledger
from odradek.testing.sim.checking.topics import name_of

_TOO_FEW: Final = re.compile(r"only \d+ broker\(s\) are registered")
_NOT_PART: Final = -1


# -- records ----------------------------------------------------------------------------------------------------------


def returned_records(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """One finding for each request to delete records: the first leader, or the last reader, that finds them again."""
    leaders = _leaders(ledger, expectations)
    for request, done in _done(expectations, "delete records"):
        key, start = (done.topic, request.asked.partition), done.numbers[0]
        seen: list[tuple[int, int, Event]] = [
            (each.log_start_offset, index, each)
            for index, each in leaders.get(key, ())
            if each.at_ms > done.at_ms and each.log_start_offset < start
        ]
        if (last := ledger.last_readings.get(key)) is not None and last[1].at_ms > done.at_ms:
            seen += [(last[1].offset, *last)] if last[1].offset < start else []
        for offset, index, event in seen[:1]:
            yield Finding(
                Anomaly.DELETED_IS_BACK,
                *key,
                offset,
                f"the log starts at {offset}, and what is before {start} was deleted",
                (*_events(request), (index, event)),
                expectations.of_loss_before(key, event.at_ms, request.asked.at_ms),
            )


def _leaders(ledger: Ledger, expectations: Expectations) -> dict[TopicPartition, list[tuple[int, ReplicaSeen]]]:
    """Looks at leaders that were not deposed, as far as the store knew at that moment."""
    found: dict[TopicPartition, list[tuple[int, ReplicaSeen]]] = {}
    for index, record in enumerate(ledger.records):
        if isinstance(record, ReplicaSeen) and record.is_leader:
            key = record.topic, record.partition
            state = _state_at(expectations, key, record.at_ms)
            if state is None or record.leader_epoch >= state.leader_epoch:
                found.setdefault(key, []).append((index, record))
    return found


def _state_at(expectations: Expectations, key: TopicPartition, at_ms: float) -> PartitionStored | None:
    return next((state for state in reversed(expectations.stored.get(key, ())) if state.at_ms <= at_ms), None)


def moved_starts(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """One finding a partition."""
    found: set[TopicPartition] = set()
    for index, record in enumerate(ledger.records):
        if not isinstance(record, ReplicaSeen) or not record.log_start_offset:
            continue
        key = record.topic, record.partition
        if key in found or record.log_start_offset <= _deleted_before(expectations, key, record.at_ms):
            continue
        found.add(key)
        text = f"the log starts at {record.log_start_offset}, and nobody has deleted so much"
        excuse = expectations.of_loss_before(key, record.at_ms)
        yield Finding(Anomaly.START_UNCALLED, *key, record.log_start_offset, text, ((index, record),), excuse)


def _deleted_before(expectations: Expectations, key: TopicPartition, at_ms: float) -> float:
    """How far records may have been deleted by then."""
    keeps = expectations.rules.of(key[0]).keeps_records
    if not keeps or any("retention.bytes" in each.options for each in expectations.options.get(key[0], ())):
        return float("inf")
    requests = [each for each in expectations.deletions(key) if each.asked.at_ms <= at_ms]
    return max((each.deletes_before for each in requests), default=0.0)


def misplaced_records(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """At the offset that they had in the topic before. A producer whose answer was lost may have written its record to
    both; hardly at the same offset, and not if it had its answer before the second topic was created."""
    for key, partition in ledger.partitions.items():
        for other_key, other in ledger.partitions.items():
            if other_key[0] == key[0] or (name_of(other_key[0]), other_key[1]) != (name_of(key[0]), key[1]):
                continue
            created = next(iter(expectations.topics.get(key[0], ())), None)
            for offset, seen in partition.at.items():
                before = other.at.get(offset)
                send = ledger.sends.get(seen.value)
                if created is None or before is None or send is None or send.acknowledged is None:
                    continue
                if before.value == seen.value and send.acknowledged.at_ms < created.at_ms:
                    yield Finding(
                        Anomaly.OF_ANOTHER_TOPIC,
                        *key,
                        offset,
                        f"value {seen.value} was acknowledged in {other_key[0]}, before {key[0]} was created",
                        (
                            *ledger.events(send.acknowledged_index),
                            (_NOT_PART, created),
                            *ledger.events(seen.last_index),
                        ),
                    )


# -- metadata ---------------------------------------------------------------------------------------------------------


def undone_changes(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """What the metadata store lacks of what was acknowledged."""
    del ledger
    if not expectations.topics:
        return  # nothing is known of it
    for request, done in _done(expectations):
        if request.asked.action != "delete topic" and _is_gone_unseen(expectations, done):
            continue
        wrong: tuple[str, ClusterRecord | None] | None = None
        match request.asked.action:
            case "create topic" | "add partitions":
                wrong = _lacks_partitions(expectations, request, done)
            case "delete topic":
                wrong = _is_still_there(expectations, done)
            case "alter options":
                wrong = _lacks_options(expectations, request, done)
            case "reassign":
                wrong = _lacks_target(expectations, request, done)
            case "unregister":
                wrong = _is_registered(expectations, request, done)
            case _:
                pass
        if wrong is not None:
            text, event = wrong
            events = _events(request) if event is None else _in_order(*_events(request), (_NOT_PART, event))
            partition = max(0, request.asked.partition)
            topic = done.topic or request.asked.topic or "cluster"
            yield Finding(Anomaly.CHANGE_UNDONE, topic, partition, None, f"{request.asked.action}: {text}", events)


def _is_gone_unseen(expectations: Expectations, done: Answered) -> bool:
    """Whether the topic was deleted before anybody may have looked into the store of a broker that is alone."""
    slack_ms = expectations.rules.seen_within_ms
    deleted_ms = expectations.deleted_ms(done.topic) if done.topic and slack_ms else None
    return deleted_ms is not None and deleted_ms <= done.at_ms + slack_ms


def _lacks_partitions(
    expectations: Expectations, request: Request, done: Answered
) -> tuple[str, ClusterRecord | None] | None:
    if not done.topic:
        return None
    count = request.asked.numbers[0]
    states = expectations.topics.get(done.topic, [])
    at_once = [each for each in states if each.at_ms <= done.at_ms + expectations.rules.seen_within_ms]
    if not any(each.partition_count >= count for each in at_once):
        return f"there were not {count} partitions when it was acknowledged", None
    later = [each for each in states if each.at_ms > done.at_ms and 0 < each.partition_count < count]
    return (f"there are not {count} partitions any more", later[0]) if later else None


def _is_still_there(expectations: Expectations, done: Answered) -> tuple[str, ClusterRecord | None] | None:
    if not done.topic:
        return None
    deleted_ms = expectations.deleted_ms(done.topic)
    if deleted_ms is None or deleted_ms > done.at_ms + expectations.rules.seen_within_ms:
        return "the topic was there when that was acknowledged", None
    later = [each for each in expectations.topics[done.topic] if each.at_ms > deleted_ms and each.partition_count]
    return ("the topic is there again", later[0]) if later else None


def _lacks_options(
    expectations: Expectations, request: Request, done: Answered
) -> tuple[str, ClusterRecord | None] | None:
    asked = request.asked
    if asked.topic and not done.topic:
        return None
    stored = [each for each in expectations.options.get(done.topic, ()) if each.at_ms >= asked.at_ms]
    others = [
        each
        for each in expectations.requests.values()
        if each is not request and each.asked.action == "alter options" and each.asked.topic == asked.topic
    ]
    slack_ms = expectations.rules.seen_within_ms
    for name, value in asked.options.items():
        at_once = [each for each in stored if each.at_ms <= done.at_ms + slack_ms]
        if not any(each.options.get(name) == value for each in at_once):
            before = [each for each in expectations.options.get(done.topic, ()) if each.at_ms < asked.at_ms]
            is_seen = not slack_ms or not any(each.settled_ms > asked.at_ms for each in others)
            if is_seen and (not before or before[-1].options.get(name) != value):
                return f"{name} was not {value} when that was acknowledged", None
        since_ms = min(
            (each.asked.at_ms for each in others if name in each.asked.options and each.settled_ms > asked.at_ms),
            default=float("inf"),
        )
        later = [each for each in stored if done.at_ms < each.at_ms < since_ms and each.options.get(name) != value]
        if later:
            return f"{name} is not {value} any more", later[0]
    return None


def _lacks_target(
    expectations: Expectations, request: Request, done: Answered
) -> tuple[str, ClusterRecord | None] | None:
    if not done.topic:
        return None
    asked = request.asked
    states = expectations.stored.get((done.topic, asked.partition), [])
    before = [each for each in states if each.at_ms < asked.at_ms][-1:]
    meanwhile = [each for each in states if asked.at_ms <= each.at_ms <= done.at_ms + expectations.rules.seen_within_ms]
    if any([b for b in each.replicas if b not in each.removing] == asked.numbers for each in before + meanwhile):
        return None
    return f"the replicas were not to be {asked.numbers} when that was acknowledged", None


def _is_registered(
    expectations: Expectations, request: Request, done: Answered
) -> tuple[str, ClusterRecord | None] | None:
    (node_id,) = request.asked.numbers
    meanwhile = [each for each in expectations.nodes if request.asked.at_ms <= each.at_ms <= done.at_ms]
    if any(node_id not in each.nodes for each in meanwhile):
        return None
    return f"broker {node_id} was registered when that was acknowledged", None


# -- replicas ---------------------------------------------------------------------------------------------------------


def hasty_reassignments(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """A replica that goes takes none out of sync that is needed (docs/decisions/011-what-operators-may-take-away.md):
    as many stay as before, of those that are there, or as many as have to be in sync."""
    del ledger
    for key, states in expectations.stored.items():
        for before, after in pairwise(states):
            gone = set(before.replicas) - set(after.replicas)
            if not gone:
                continue
            minimum = min(expectations.lowest_minimum(key[0], after.at_ms), len(after.replicas))
            there = gone & set(before.isr)
            for live in (before.live, after.live):
                there &= there if live is None else set(live)
            count = len(after.isr) + len(there)
            if len(after.isr) < min(minimum, count):
                text = f"of {count} in sync {len(after.isr)} stay, where {minimum} have to be"
                yield Finding(Anomaly.REASSIGNED_TOO_EARLY, *key, None, text, ((_NOT_PART, before), (_NOT_PART, after)))


def wanting_creations(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """New topics with fewer replicas than were asked for, or refused for want of brokers that are registered."""
    del ledger
    for request in expectations.requests.values():
        answered, asked = request.answered, request.asked
        if answered is None or asked.action not in ("create topic", "add partitions", "reassign"):
            continue
        if not answered.is_done and _TOO_FEW.search(answered.error):
            registered = _least_registered(expectations, asked.at_ms, answered.at_ms)
            wanted = asked.numbers[1] if asked.action == "create topic" else 1
            if asked.action == "add partitions":
                wanted = max((len(each.replicas) for each in _of_name(expectations, asked.topic)), default=1)
            if registered >= wanted:
                text = f"{asked.action} was refused, and {registered} brokers are registered: {answered.error}"
                yield Finding(Anomaly.REFUSED_WRONGLY, asked.topic, 0, None, text, _events(request))
        elif answered.is_done and asked.action == "create topic" and answered.topic:
            for index in range(asked.numbers[0]):
                states = expectations.stored.get((answered.topic, index), [])
                if states and len(states[0].replicas) < asked.numbers[1]:
                    text = f"{asked.numbers[1]} replicas were asked for"
                    events = _in_order(*_events(request), (_NOT_PART, states[0]))
                    yield Finding(Anomaly.TOO_FEW_REPLICAS, answered.topic, index, None, text, events)


def _of_name(expectations: Expectations, name: str) -> Iterator[PartitionStored]:
    for (topic, _), states in expectations.stored.items():
        if name_of(topic) == name:
            yield states[0]


def _least_registered(expectations: Expectations, from_ms: float, to_ms: float) -> int:
    before = [each for each in expectations.nodes if each.at_ms < from_ms][-1:]
    meanwhile = [each for each in expectations.nodes if from_ms <= each.at_ms <= to_ms]
    return min((len(each.nodes) for each in before + meanwhile), default=0)


# -- requests ---------------------------------------------------------------------------------------------------------


def _done(expectations: Expectations, action: str | None = None) -> Iterator[tuple[Request, Answered]]:
    """Requests that were acknowledged; of topics only where it is certain which one it was."""
    for request in expectations.requests.values():
        done = request.done
        if done is not None and (action is None or (action == request.asked.action and done.topic)):
            yield request, done


def _events(request: Request) -> tuple[tuple[int, Event], ...]:
    assert request.answered is not None, "it is about what was answered"
    return (request.asked_index, request.asked), (request.answered_index, request.answered)


def _in_order(*events: tuple[int, Event]) -> tuple[tuple[int, Event], ...]:
    return tuple(sorted(events, key=lambda each: each[1].at_ms))
