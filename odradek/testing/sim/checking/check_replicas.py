"""What the metadata store and the brokers themselves hold: one leader per epoch, sets within sets, epochs and high
watermarks that never go back, and no unclean election that is not called for and logged.
"""

from collections.abc import Iterator
from itertools import pairwise

from odradek.testing.sim.checking.cluster_history import NO_LEADER, PartitionStored
from odradek.testing.sim.checking.expectations import Expectations, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Event, Finding
from odradek.testing.sim.checking.history import ReplicaSeen
from odradek.testing.sim.checking.ledger import Ledger
from odradek.testing.sim.checking.loss_model import broker_id_of

NOT_PART = -1
"""The place of what stands in no history."""


# -- looks into brokers -----------------------------------------------------------------------------------------------


def impossible_replicas(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """High watermarks that go back, positions out of order, in-sync sets outside the assigned replicas, two leaders."""
    last: dict[tuple[str, int, str, int, int], tuple[int, ReplicaSeen]] = {}
    leaders: dict[tuple[str, int, int], tuple[int, str, Event]] = {}
    lives: dict[tuple[str, int, int], tuple[int, ReplicaSeen]] = {}
    assigned = {
        key: {broker_id for state in states for broker_id in state.replicas}
        for key, states in expectations.stored.items()
    }
    for key, states in expectations.stored.items():
        machines = {state.leader_epoch: state for state in states if state.leader != NO_LEADER}
        for epoch, state in machines.items():
            leaders[(*key, epoch)] = NOT_PART, str(state.leader), state
    for index, record in enumerate(ledger.records):
        if not isinstance(record, ReplicaSeen):
            continue
        key = record.topic, record.partition
        life = (*key, record.machine, record.incarnation, record.leader_epoch)
        if life in last and record.high_watermark < last[life][1].high_watermark:
            text = f"{record.machine} had {last[life][1].high_watermark} in epoch {record.leader_epoch}"
            # A follower of an uncleanly elected leader cuts its log when it is in the new epoch already.
            excuse = None if record.is_leader else expectations.of_loss_before(key, record.at_ms)
            found = last[life], (index, record)
            yield _seen(Anomaly.HIGH_WATERMARK_BACK, record.high_watermark, text, *found, excuse=excuse)
        last[life] = index, record
        if not record.log_start_offset <= record.high_watermark <= record.log_end_offset:
            yield _seen(Anomaly.IMPOSSIBLE_REPLICA, None, "its offsets are not in order", (index, record))
        if not set(record.in_sync) <= set(record.maximal_in_sync):
            yield _seen(Anomaly.IMPOSSIBLE_REPLICA, None, "its maximal in-sync set is smaller", (index, record))
        if key in assigned and not set(record.maximal_in_sync) <= assigned[key]:
            text = f"the replicas were never more than {sorted(assigned[key])}"
            yield _seen(Anomaly.ISR_OUTSIDE_REPLICAS, None, text, (index, record))
        if record.is_leader:
            yield from _second_leader(expectations, leaders, index, record)
            yield from _second_life(lives, index, record)


def _second_leader(
    expectations: Expectations,
    leaders: dict[tuple[str, int, int], tuple[int, str, Event]],
    index: int,
    record: ReplicaSeen,
) -> Iterator[Finding]:
    broker_id = broker_id_of(record.machine, expectations.rules.broker_ids)
    name = record.machine if broker_id is None else str(broker_id)
    epoch = record.topic, record.partition, record.leader_epoch
    first_index, first_name, first = leaders.setdefault(epoch, (index, name, record))
    if first_name != name:
        text = f"{first_name} and {name} lead in epoch {record.leader_epoch}"
        yield _seen(Anomaly.TWO_LEADERS, None, text, (first_index, first), (index, record))


def _second_life(
    lives: dict[tuple[str, int, int], tuple[int, ReplicaSeen]], index: int, record: ReplicaSeen
) -> Iterator[Finding]:
    """A leader that was restarted takes a new epoch before it leads again."""
    epoch = record.topic, record.partition, record.leader_epoch
    first_index, first = lives.setdefault(epoch, (index, record))
    if first.machine == record.machine and first.incarnation != record.incarnation:
        text = f"{record.machine} was restarted, and leads in epoch {record.leader_epoch} again"
        yield _seen(Anomaly.TWO_LEADERS, None, text, (first_index, first), (index, record))


def _seen(
    anomaly: Anomaly, offset: int | None, text: str, *events: tuple[int, Event], excuse: str | None = None
) -> Finding:
    """About the last of the events."""
    record = events[-1][1]
    assert isinstance(record, ReplicaSeen)
    return Finding(anomaly, record.topic, record.partition, offset, text, events, excuse)


# -- the metadata store -----------------------------------------------------------------------------------------------


def impossible_states(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """Of each partition: sets within sets, epochs, and elections."""
    del ledger
    for key, states in expectations.stored.items():
        for state in states:
            if not {*state.isr, *state.elr} <= set(state.replicas):
                yield _stored(Anomaly.ISR_OUTSIDE_REPLICAS, f"the replicas are {list(state.replicas)}", state)
            if set(state.isr) & set(state.elr) or state.leader not in (*state.isr, NO_LEADER):
                yield _stored(Anomaly.IMPOSSIBLE_REPLICA, "the leader, the in-sync and the eligible do not fit", state)
        for before, after in pairwise(states):
            yield from _change(before, after)
            if after.leader_epoch > before.leader_epoch and after.leader != NO_LEADER:
                yield from _election(expectations, key, before, after)
                yield from _elector(before, after)
        yield from _uncalled(expectations, key)


def _change(before: PartitionStored, after: PartitionStored) -> Iterator[Finding]:
    if after.leader_epoch < before.leader_epoch or after.partition_epoch <= before.partition_epoch:
        yield _stored(Anomaly.EPOCH_BACK, "an epoch did not grow as it should", before, after)
    elif after.leader != before.leader and after.leader_epoch == before.leader_epoch:
        anomaly = Anomaly.EPOCH_BACK if NO_LEADER in (before.leader, after.leader) else Anomaly.TWO_LEADERS
        yield _stored(anomaly, f"the leader changed within epoch {after.leader_epoch}", before, after)


def _election(
    expectations: Expectations, key: TopicPartition, before: PartitionStored, after: PartitionStored
) -> Iterator[Finding]:
    """A leader from outside is an unclean one, and has to be logged."""
    if after.leader in (*before.isr, *before.elr):
        return
    if not any(each.leader_epoch == after.leader_epoch for each in expectations.logged.get(key, ())):
        text = f"{after.leader} was neither in sync nor eligible"
        yield _stored(Anomaly.UNLOGGED_ELECTION, text, before, after)


def _elector(before: PartitionStored, after: PartitionStored) -> Iterator[Finding]:
    """Another leader is the controller's to choose, as of that very moment."""
    if after.writer is not None and after.leader != before.leader and after.writer != after.controller:
        text = f"{after.writer} elected {after.leader}, and the controller was {after.controller}"
        yield _stored(Anomaly.NOT_THE_CONTROLLER, text, before, after)


def _uncalled(expectations: Expectations, key: TopicPartition) -> Iterator[Finding]:
    since_ms = expectations.without_heirs_since_ms(key)
    for logged in expectations.logged.get(key, ()):
        is_called = since_ms is not None and logged.at_ms >= since_ms
        if not is_called and not expectations.may_elect_uncleanly(key, logged.at_ms):
            text = f"{logged.leader} was elected in epoch {logged.leader_epoch}: {logged.why}"
            yield Finding(Anomaly.UNCALLED_ELECTION, *key, None, text, ((NOT_PART, logged),))


def _stored(anomaly: Anomaly, text: str, *states: PartitionStored) -> Finding:
    events = tuple((NOT_PART, state) for state in states)
    return Finding(anomaly, states[-1].topic, states[-1].partition, None, text, events)
