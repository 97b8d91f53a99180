"""An `Outbox` before that of the shard: what is said inside of `whole` is appended as one batch, or not at all. Pure.

A request that changes the kind of a group says several things. Some of them alone in the log would be a group that is
neither the one kind nor the other.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from odradek.broker.coordinator.machine import Outbox, StoredRecord, TransactionBatch, Waiting
from odradek.protocol.errors import KafkaError

R = TypeVar("R")


class Whole:
    """What was said of one entity, and is kept until all is."""

    __slots__ = ("records", "replies", "undos")

    def __init__(self) -> None:
        self.records: list[StoredRecord] = []
        self.undos: list[Callable[[], None]] = []
        self.replies: list[tuple[Waiting[Any], Any]] = []

    def also(self, undo: Callable[[], None]) -> None:
        """Taken back with the rest, though nothing is written of it."""
        self.undos.append(undo)

    def drop(self) -> None:
        """Nothing of it is written, and all of it is taken back; answers are given nevertheless."""
        self.records = []
        self.undo()
        self.undos = []

    def undo(self) -> None:
        for each in reversed(self.undos):
            each()


class WholeOutbox:
    """Passes on what is said outside of `whole`."""

    __slots__ = ("_outbox", "_whole")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._whole: Whole | None = None

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        if self._whole is None:
            self._outbox.append(entity_id, records, undo, transaction)
        else:
            assert transaction is None, "what changes a group's kind belongs to no transaction"
            self._whole.records += records
            self._whole.undos.append(undo)

    def also_of(self, entity_id: str) -> None:
        assert self._whole is None, "a whole is of one entity"
        self._outbox.also_of(entity_id)

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> None:
        assert self._whole is None, "a whole waits for nothing"
        self._outbox.when_committed(entity_id, then)

    def reply(self, entity_id: str | None, waiting: Waiting[R], answer: R | KafkaError) -> None:
        if self._whole is None:
            self._outbox.reply(entity_id, waiting, answer)
        else:
            self._whole.replies.append((waiting, answer))

    @contextmanager
    def whole(self, entity_id: str) -> Generator[Whole, None, None]:
        """All that is said inside is of this entity. An exception drops it."""
        assert self._whole is None, "a whole has no parts that are wholes"
        whole = self._whole = Whole()
        try:
            yield whole
        except BaseException:
            self._whole = None
            whole.drop()
            raise
        finally:
            self._whole = None
            if whole.records:
                self._outbox.append(entity_id, whole.records, whole.undo)
            for waiting, answer in whole.replies:
                self._outbox.reply(entity_id, waiting, answer)
