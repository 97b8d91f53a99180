"""Mistakes of transactions, put in on purpose (canaries.py)."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from odradek.broker.coordinator.shard import Shard
from odradek.broker.log.markers import Marker
from odradek.broker.log.producers import Producers
from odradek.broker.replica.isolation import Isolation
from odradek.broker.replica.partition_reader import PartitionReader
from odradek.broker.txn.marker_sender import FENCED, MarkerSender
from odradek.broker.txn.marker_writer import MarkerOrder, Written
from odradek.client.consumer.group_calls import GroupCalls
from odradek.client.fetching import fetched
from odradek.protocol.batches.batch import BatchHeader

Function = Callable[..., Any]
NEWEST: Final = 2**31 - 1


def any_coordinator(check_marker: Function) -> Function:
    """A partition takes the marker of a coordinator before the last one."""

    def check(producers: Producers, header: BatchHeader, marker: Marker, transaction_version: int) -> None:
        check_marker(producers, header, marker._replace(coordinator_epoch=NEWEST), transaction_version)

    return check


def past_open_ones(first_undecided_offset: Any) -> Any:
    """The last stable offset passes transactions that are open."""
    del first_undecided_offset
    return property(lambda producers: None)


def up_to_the_high_watermark(end_offset: Function) -> Function:
    """Readers of read_committed get all that is committed in the log's sense."""

    def end(reader: PartitionReader[Any], isolation: Isolation) -> Any:
        is_committed = isolation is Isolation.TXN_COMMITTED
        return end_offset(reader, Isolation.HIGH_WATERMARK if is_committed else isolation)

    return end


def once_is_enough(write: Function) -> Function:
    """A transaction is complete when each partition was asked once, whatever it answered."""

    async def asked(sender: MarkerSender, broker_id: int, order: MarkerOrder) -> Written:
        written: Written = await write(sender, broker_id, order)
        return {place: error if error is None or error.code in FENCED else None for place, error in written.items()}

    return asked


def not_committed_yet(when_committed: Function) -> Function:
    """Markers leave when their prepare is in the leader's log."""
    del when_committed

    def at_once(shard: Shard[Any], entity_id: str, then: Callable[[], None]) -> None:
        del entity_id
        shard._environment.loop.call_soon(then)  # pyright: ignore

    return at_once


def stays_though_refused(append: Function) -> Function:
    """What the log refuses is not taken back: an epoch is the next one, a transaction is prepared."""

    def without_undo(
        shard: Shard[Any], entity_id: str, records: Sequence[Any], undo: Callable[[], None], *more: Any
    ) -> None:
        del undo
        append(shard, entity_id, records, lambda: None, *more)

    return without_undo


def as_they_come(make: Function) -> Function:
    """A reader passes over aborted records in the order in which the broker names their transactions."""
    del make

    def of(aborted: fetched._Aborted, transactions: Sequence[Any]) -> None:  # pyright: ignore
        aborted._coming = deque(transactions)  # pyright: ignore
        aborted._producers = set()  # pyright: ignore

    return of


def committed_beside(offsets_for_transaction: Function) -> Function:
    """A consumer commits what it gives to a transaction."""

    def both(consumer: GroupCalls, last: object | None = None) -> Any:
        found = offsets_for_transaction(consumer, last)
        if found.offsets:
            offsets = {partition: each.offset for partition, each in found.offsets.items()}
            commit = consumer._tasks.start(consumer.commit(offsets), "commit beside")  # pyright: ignore
            commit.add_done_callback(lambda commit: commit.cancelled() or commit.exception())
        return found

    return both
