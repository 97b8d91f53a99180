"""Mistakes put into production code on purpose, one function each, to see that histories find them.

    with sung(CANARIES["the log is not synced"]): simulate(seed)

A canary replaces a function, or a property, while it is sung; one whose function is not there any more cannot be sung.
The first six are about one broker and its disk, the next about what brokers owe one another, the last about what
operators are told (operator_canaries.py), members of groups (group_canaries.py), and transactions
(transaction_canaries.py).
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from odradek.broker import server
from odradek.broker.api.fetch.follower import FollowerReading
from odradek.broker.cluster import lineage, reassignment
from odradek.broker.cluster.keys import BROKERS_PREFIX, CONTROLLER_KEY, PARTITIONS_PREFIX, broker_key
from odradek.broker.cluster.store import Txn
from odradek.broker.controller.controller import Controller
from odradek.broker.coordinator import shards
from odradek.broker.coordinator.commits import Commits
from odradek.broker.coordinator.shard import Shard
from odradek.broker.directories import data_directory
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.handling import topic_plans
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.broker.log import recovery
from odradek.broker.log.batches import Damage
from odradek.broker.log.flush import Flush
from odradek.broker.log.log_durability import LogDurability
from odradek.broker.log.producers import Producers
from odradek.broker.log.segment import Segment
from odradek.broker.membership.registration import Registration
from odradek.broker.partitions import cleaner
from odradek.broker.replica.acknowledgements import Acknowledgements
from odradek.broker.replica.deletions import Deletions
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_reader import PartitionReader
from odradek.broker.replica.replicas import Replicas
from odradek.broker.replica.role import Role
from odradek.broker.replication.isr_writer import IsrWriter
from odradek.broker.txn.marker_sender import MarkerSender
from odradek.client.consumer.group_calls import GroupCalls
from odradek.client.fetching import fetched
from odradek.protocol.messages.fetch import FetchPartition
from odradek.runtime.progress import Progress
from tests.sim.group_canaries import (
    any_epoch,
    any_generation,
    lease_alone,
    not_loaded,
    read_at_once,
    replied_at_once,
)
from tests.sim.operator_canaries import (
    answered_alone,
    any_start,
    closed_as_it_is,
    not_stored_yet,
    of_any_topic,
    on_live_ones,
    one_is_enough,
)
from tests.sim.transaction_canaries import (
    any_coordinator,
    as_they_come,
    committed_beside,
    not_committed_yet,
    once_is_enough,
    past_open_ones,
    stays_though_refused,
    up_to_the_high_watermark,
)

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Canary:
    """`make` gets the real function, and gives the one in its place."""

    owner: Any
    function: str
    make: Callable[[Function], Function]


def _not_synced(run: Function) -> Function:
    del run

    def close_only(flush: Flush) -> None:
        for sync in (*flush._data, *flush._derived):  # pyright: ignore
            sync.close()

    return close_only


def _not_waited_for(stored: Function) -> Function:
    del stored

    async def at_once(acknowledgements: Acknowledgements, last_offset: int, timeout_ms: float) -> None:
        del acknowledgements, last_offset, timeout_ms

    return at_once


def _not_cut(cut: Function) -> Function:
    del cut

    def keep(segment: Segment, damage: Damage) -> None:
        del segment, damage

    return keep


def _never_a_duplicate(check: Function) -> Function:
    del check

    def nothing_known(*_: Any, **__: Any) -> None: ...

    return nothing_known


def _not_learned(take_batch: Function) -> Function:
    del take_batch

    def forget(*_: Any) -> None: ...

    return forget


def _trusted(distrust: Function) -> Function:
    del distrust

    def trust(durability: LogDurability, error: OSError) -> None:
        del durability, error

    return trust


# -- of clusters ------------------------------------------------------------------------------------------------------


def _cut_to_high_watermark(become_follower: Function) -> Function:
    def follow(partition: Partition, leader_id: int, leader_epoch: int) -> None:
        become_follower(partition, leader_id, leader_epoch)
        if partition.log.log_end_offset > partition.high_watermark.value:
            partition.log.truncate_to(partition.high_watermark.value)
            partition.truncated()

    return follow


def _any_epoch(require_epoch: Function) -> Function:
    del require_epoch

    def ignore(role: Role, current_leader_epoch: int) -> None:
        del role, current_leader_epoch

    return ignore


class _Forgetful:
    """A store whose commits do without the conditions that `is_kept` does not want."""

    def __init__(self, store: Any, is_kept: Callable[[str], bool]) -> None:
        self._store = store
        self._is_kept = is_kept

    async def commit(self, txn: Txn) -> int:
        kept = {key: revision for key, revision in txn.expect.items() if self._is_kept(key)}
        revision: int = await self._store.commit(replace(txn, expect=kept))
        return revision


def _isr_without(is_kept: Callable[[IsrWriter, str], bool]) -> Callable[[Function], Function]:
    def make(commit: Function) -> Function:
        async def write(writer: IsrWriter, writes: Any) -> Any:
            store = writer._store  # pyright: ignore
            writer._store = _Forgetful(store, lambda key: is_kept(writer, key))  # type: ignore[assignment]  # pyright: ignore
            try:
                return await commit(writer, writes)
            finally:
                writer._store = store  # pyright: ignore

        return write

    return make


def _not_compared(writer: IsrWriter, key: str) -> bool:
    return not key.startswith(PARTITIONS_PREFIX) and key != broker_key(writer._node_id)  # pyright: ignore


def _any_life(writer: IsrWriter, key: str) -> bool:
    return not key.startswith(BROKERS_PREFIX) or key == broker_key(writer._node_id)  # pyright: ignore


def _unguarded(guard: Any) -> Any:
    def nothing(controller: Controller) -> dict[str, int]:
        assert CONTROLLER_KEY in guard.fget(controller), "there is something to leave out"
        return {}

    return property(nothing)


def _stored_isr(maximal_isr: Any) -> Any:
    del maximal_isr
    return property(lambda replicas: replicas.isr)


def _never_too_few(require_replicas: Function) -> Function:
    del require_replicas

    def accept(acknowledgements: Acknowledgements) -> None:
        del acknowledgements

    return accept


def _whatever_the_minimum(high_watermark: Function) -> Function:
    def move(replicas: Replicas, end: int, current: int, minimum: int, *more: Any) -> int:
        del minimum
        elr, replicas.elr = replicas.elr, ()
        try:
            moved: int = high_watermark(replicas, end, current, 1, *more)
            return moved
        finally:
            replicas.elr = elr

    return move


def _kept_in_sync_places(give_up_in_sync_places: Function) -> Function:
    del give_up_in_sync_places

    async def keep(*_: Any, **__: Any) -> bool:
        return False

    return keep


def _unknown_producers(become_leader: Function) -> Function:
    def lead(partition: Partition, leader_epoch: int, replicas: Replicas) -> None:
        partition.log.end.producers = Producers()
        become_leader(partition, leader_epoch, replicas)

    return lead


def _above_high_watermark(cleanable: Function) -> Function:
    def plan(segments: Any, checkpoint: int | None, *, log_end_offset: int, **more: Any) -> Any:
        more["last_stable_offset"] = log_end_offset
        return cleanable(segments, checkpoint, log_end_offset=log_end_offset, **more)

    return plan


def _not_replicated(replicated: Function) -> Function:
    del replicated

    async def at_once(acknowledgements: Acknowledgements, last_offset: int, timeout_ms: float) -> None:
        del acknowledgements, last_offset, timeout_ms

    return at_once


def _stays_where_logs_part(take: Function) -> Function:
    def note(reading: FollowerReading, topic_id: bytes, wanted: FetchPartition) -> None:
        take(reading, topic_id, wanted)
        session, key = reading._session, (topic_id, wanted.partition)  # pyright: ignore
        answer = reading._answers.get(key)  # pyright: ignore
        if answer is not None and answer.diverging_epoch is not None:
            partitions = reading._context.partitions  # pyright: ignore
            session.add(partitions.leader(partitions.topic_name(topic_id), wanted.partition), wanted)
            session.to_read.pop(key)

    return note


def _late(reach: Function) -> Function:
    async def wait(progress: Progress, value: int, timeout_ms: float | None = None) -> None:
        """Between the look at the number and the wait for it a millisecond passes, and nobody looks again."""
        if progress.value < value:
            await asyncio.sleep(0.001)
            value = max(value, progress.value + 1)
        await reach(progress, value, timeout_ms)

    return wait


def _by_revision_alone(lacks: Function) -> Function:
    del lacks

    def nothing(*_: Any) -> None: ...

    return nothing


CANARIES: Final[dict[str, Canary]] = {
    "the log is not synced": Canary(Flush, "run", _not_synced),
    "acknowledged before it is synced": Canary(Acknowledgements, "synced", _not_waited_for),
    "half a batch is not cut off": Canary(recovery, "_cut", _not_cut),
    "duplicates are not noticed": Canary(Producers, "check", _never_a_duplicate),
    "producers are not learned from the log": Canary(recovery, "take_batch", _not_learned),
    "a log is trusted after a failed sync": Canary(LogDurability, "_distrust", _trusted),
    "a follower truncates to its high watermark": Canary(Partition, "become_follower", _cut_to_high_watermark),
    "the leader ignores the fetch's leader epoch": Canary(Role, "_require_epoch", _any_epoch),
    "an in-sync set is written without compare": Canary(IsrWriter, "_commit", _isr_without(_not_compared)),
    "the broker epoch is ignored when a replica is added": Canary(IsrWriter, "_commit", _isr_without(_any_life)),
    "the controller writes without its guard": Canary(Controller, "guard", _unguarded),
    "high watermark from the stored in-sync set": Canary(Replicas, "maximal_isr", _stored_isr),
    "min.insync is not looked at before the append": Canary(Acknowledgements, "require_replicas", _never_too_few),
    "the high watermark advances below min.insync": Canary(Replicas, "high_watermark", _whatever_the_minimum),
    "an unclean restart keeps its in-sync place": Canary(server, "give_up_in_sync_places", _kept_in_sync_places),
    "producers are not known to a new leader": Canary(Partition, "become_leader", _unknown_producers),
    "compaction counts what is above the high watermark": Canary(cleaner, "cleanable", _above_high_watermark),
    "a follower is sent what is appended where its log parts": Canary(FollowerReading, "_take", _stays_where_logs_part),
    "acknowledged before the high watermark": Canary(Acknowledgements, "replicated", _not_replicated),
    "a wake-up is missed between look and wait": Canary(Progress, "reach", _late),
    "an older store is known by its revision alone": Canary(lineage, "_lacks", _by_revision_alone),
    "deleted records are answered before the followers know": Canary(Deletions, "held_by_all", answered_alone),
    "a replica joins with records that were deleted": Canary(Replicas, "may_join", any_start),
    "a reassignment completes with one in sync": Canary(reassignment, "may_complete", one_is_enough),
    "a change is answered before it is stored": Canary(MetadataChange, "apply", not_stored_yet),
    "a clean stop leaves logs as they are": Canary(LogDurability, "begin", closed_as_it_is),
    "a directory is taken by its name": Canary(data_directory, "read_partition_metadata", of_any_topic),
    "new topics have replicas on live brokers alone": Canary(topic_plans, "place", on_live_ones),
    "a coordinator answers before the high watermark": Canary(Commits, "appended", replied_at_once),
    "a coordinator reads above the high watermark": Canary(Commits, "reply", read_at_once),
    "a coordinator begins without its log": Canary(shards, "load", not_loaded),
    "commits of any generation are taken": Canary(ClassicGroup, "validate_commit", any_generation),
    "commits of any member epoch are taken": Canary(ConsumerGroup, "validate_commit", any_epoch),
    "a coordinator answers though it may be fenced": Canary(Registration, "require_unfenced", lease_alone),
    "the last stable offset passes open transactions": Canary(Producers, "first_undecided_offset", past_open_ones),
    "read_committed reads up to the high watermark": Canary(PartitionReader, "end_offset", up_to_the_high_watermark),
    "a marker of an older coordinator is taken": Canary(Producers, "check_marker", any_coordinator),
    "markers leave before their prepare is committed": Canary(Shard, "when_committed", not_committed_yet),
    "a transaction is complete before all markers": Canary(MarkerSender, "_write", once_is_enough),
    "what the log refuses of a transaction stays": Canary(Shard, "append", stays_though_refused),
    "aborted transactions are passed over out of order": Canary(fetched._Aborted, "__init__", as_they_come),  # pyright: ignore
    "a consumer commits beside its transaction": Canary(GroupCalls, "offsets_for_transaction", committed_beside),
}


@contextmanager
def sung(canary: Canary) -> Generator[None]:
    """Within it the mistake is made. Raises AttributeError where there is no such function."""
    real = getattr(canary.owner, canary.function)
    setattr(canary.owner, canary.function, canary.make(real))
    try:
        yield
    finally:
        setattr(canary.owner, canary.function, real)
