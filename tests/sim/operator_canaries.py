"""Mistakes in what operators are told, for canaries.py: each answers too early, or counts what does not count."""

from collections.abc import Callable
from typing import Any

from odradek.broker.cluster.keys import PartitionState
from odradek.broker.cluster.reassignment import target_replicas
from odradek.broker.handling.metadata_change import Commit, MetadataChange
from odradek.broker.log.flush import Flush
from odradek.broker.log.log_durability import LogDurability
from odradek.broker.log.producers import Producers
from odradek.broker.replica.deletions import Deletions
from odradek.broker.replica.replicas import Replicas

Function = Callable[..., Any]


def answered_alone(held_by_all: Function) -> Function:
    del held_by_all

    async def at_once(deletions: Deletions, offset: int, deadline_ms: float) -> int:
        del deadline_ms
        return max(offset, deletions._log.log_start_offset)  # pyright: ignore

    return at_once


def any_start(may_join: Function) -> Function:
    def far_enough(replicas: Replicas, *more: Any) -> bool:
        promised, replicas.promised_log_start = replicas.promised_log_start, 0
        try:
            may: bool = may_join(replicas, *more)
            return may
        finally:
            replicas.promised_log_start = promised

    return far_enough


def one_is_enough(may_complete: Function) -> Function:
    """As it was once: all that are added, and any one of the target."""
    del may_complete

    def may(state: PartitionState, min_insync: int) -> bool:
        del min_insync
        is_under_way = bool(state.adding or state.removing)
        has_one = any(broker in target_replicas(state) for broker in state.isr)
        return is_under_way and has_one and all(broker in state.isr for broker in state.adding)

    return may


def not_stored_yet(make: Function) -> Function:
    async def begun(changes: MetadataChange, commit: Commit) -> None:
        """What becomes of it nobody hears."""

        async def work() -> None:
            await changes._apply(commit)  # pyright: ignore

        changes._context.tasks.start(work(), "a change that was answered")  # pyright: ignore

    del make
    return begun


def closed_as_it_is(begin: Function) -> Function:
    def nothing_to_flush(
        durability: LogDurability, log_end_offset: int, producers: Producers, *, settle: bool, with_active: bool
    ) -> Flush | None:
        """Of all of a log, which a stop asks for."""
        if settle and with_active:
            return None
        flush: Flush | None = begin(durability, log_end_offset, producers, settle=settle, with_active=with_active)
        return flush

    return nothing_to_flush


def of_any_topic(read_partition_metadata: Function) -> Function:
    del read_partition_metadata

    def unknown(disk: Any, directory: str) -> None:
        """Nobody knows which topic it is of."""
        del disk, directory

    return unknown


def on_live_ones(place: Function) -> Function:
    def live(partition_count: int, replication_factor: int, brokers: Any, *more: int) -> Any:
        return place(partition_count, replication_factor, [each for each in brokers if not each.is_fenced], *more)

    return live
