"""What a coordinator's state machine is given, and what it gives back. Pure.

A machine holds the state that the records of one partition stand for. It is told what happens, and when; it changes its
state at once, and says by its `Outbox` which records have to be written and who is answered what:

    machine.join(request, waiting, now)   ->   outbox.append("billing", records, undo)
                                               outbox.reply("billing", waiting, answer)
                                               outbox.when_committed("billing", then)
    machine.tick(now)                     at `next_deadline_ms`, or later
    machine.replay(key, value, producer_id), … loaded(now) while the partition is loaded, in the order of the log

What it says is in order: a reply depends on all records that were given before it for the same entity (a group, a
transactional id), and leaves when they are committed. A reply may be given later than its request: by another request,
or by `tick`.

State is derived from records alone: what `replay` makes of the records is what the requests made when they gave them.
What is in no record (sessions, who waits for whom) is gone when another broker leads, and its docstring says so.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from odradek.broker.log.verifications import Proof
from odradek.protocol.errors import KafkaError

R = TypeVar("R")


class Now(NamedTuple):
    """A moment, by two clocks."""

    monotonic_ms: int
    """For deadlines and durations; never goes back."""
    unix_ms: int
    """For what is stored: commit timestamps, expiry. It may jump."""


class StoredRecord(NamedTuple):
    """A record of an internal topic: key and value with their versions in front, as Kafka has them."""

    key: bytes
    value: bytes | None
    """None: a tombstone, which deletes the key."""


class TransactionBatch(NamedTuple):
    """What a batch says of its producer, where it belongs to a transaction (KIP-98)."""

    producer_id: int
    producer_epoch: int
    is_marker: bool = False
    """Whether it ends the transaction: a control batch, of one record (log/markers.py)."""
    proof: Proof = Proof(is_coordinators=True)


class Waiting(Generic[R]):
    """Who waits for an answer. A machine keeps it and gives it back with the answer; what is in it is the shard's."""

    __slots__ = ()


class Outbox(Protocol):
    """Takes what a machine says, in order."""

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        """These records have to be written: in one batch, behind those given before. Records of a transaction stand in
        a batch with others of the same one alone, a marker in a batch of its own.

        If the log refuses that batch, nothing of it is written. Then every `undo` of the batch is called, the last one
        first: it takes back what these records stand for, whatever has happened to the entity since; and what was
        given with `reply` and `when_committed` since, for the same entity, fails or is dropped instead.
        """
        ...

    def also_of(self, entity_id: str) -> None:
        """What was given with `append` last is of this entity, too."""
        ...

    def reply(self, entity_id: str | None, waiting: Waiting[R], answer: R | KafkaError) -> None:
        """Answers once everything that was given for this entity before is committed; None: at once. Of the records of
        a transaction, the first answer behind them is that of who asked for them: nobody else is told what the log
        finds wrong with it.

        Nobody is answered twice; one who has gone away is not answered, and the machine need not know.
        """
        ...

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> None:
        """Calls `then` once everything that was given for this entity before is committed, however long that takes: at
        once, if it is. Never if it comes to nothing, or another broker coordinates before: that one finds the records
        in its log.

        For what leaves the coordinator without having been asked for.
        """
        ...
