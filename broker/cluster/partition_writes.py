"""Writing partitions to the store: what a write expects, beside what it decides, and how many go into a commit. Pure.

A leader that was restarted needs a new leader epoch, and whoever decides sees that by revisions: the leader's
registration is younger than the partition's last change (controller/decisions.py). So no write may hide a restart that
its writer has not seen. Each names the registration of the leader that it leaves in office, or elects, as its writer
knows it; absent, if it is. In-sync writes name their leader's anyway (replication/isr_writer.py).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER, PartitionState, broker_key
from odradek.broker.cluster.partition_changes import changed
from odradek.broker.cluster.store import OPERATIONS_MAX, Conflict, Txn


class PartitionWrite(NamedTuple):
    """What a partition's key held, and what it should hold."""

    key: str
    before: PartitionState
    after: PartitionState


def leader_was_restarted(state: PartitionState, image: ClusterImage) -> bool:
    """Whether its leader has registered since the partition was last changed."""
    leader = image.brokers.get(state.leader)
    return leader is not None and leader.epoch > state.revision


def with_epochs(before: PartitionState, after: PartitionState, image: ClusterImage) -> PartitionState:
    """`after` with its epochs, by what is different and by a restart of the leader."""
    return changed(before, after, restarted=leader_was_restarted(before, image))


def commits(writes: Iterable[PartitionWrite], image: ClusterImage, guard: Mapping[str, int]) -> Iterator[Txn]:
    """The writes, as few commits as they fit into: elections first, for nobody can use those partitions meanwhile, and
    each leader's together, for its registration is one condition. `guard`: what each of them expects, too.

    Raises Conflict for a write that would keep a restarted leader in its former epoch: decide again.
    """
    expect, put = dict(guard), dict[str, bytes]()
    for write in sorted(writes, key=_order):
        conditions = _conditions(write, image)
        if len(put) == OPERATIONS_MAX or len(expect.keys() | conditions) > OPERATIONS_MAX:
            yield Txn(expect=expect, put=put)
            expect, put = dict(guard), {}
        expect |= conditions
        put[write.key] = write.after.encode()
    if put:
        yield Txn(expect=expect, put=put)


def _order(write: PartitionWrite) -> tuple[bool, int]:
    return write.before.leader == write.after.leader, write.after.leader


def _conditions(write: PartitionWrite, image: ClusterImage) -> dict[str, int]:
    before, after = write.before, write.after
    conditions = {write.key: before.revision}
    if after.leader != NO_LEADER:
        if after.leader_epoch == before.leader_epoch and leader_was_restarted(before, image):
            raise Conflict(f"{write.key}: its leader, broker {after.leader}, was restarted meanwhile")
        leader = image.brokers.get(after.leader)
        conditions[broker_key(after.leader)] = 0 if leader is None else leader.epoch
    return conditions
