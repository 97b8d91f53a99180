"""An outbox of which each batch is taken or refused at the end of a turn, as a shard does it."""

from collections.abc import Callable, Iterator, Sequence

from odradek.broker.coordinator.machine import StoredRecord, TransactionBatch, Waiting
from odradek.broker.coordinator.turn import Part, Turn
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.kept_outbox import KeptOutbox, R


class TurnOutbox(KeptOutbox):
    """Collects what a machine gives as a shard does, until the log takes or refuses each batch."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = Turn()

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        self._turn.append(entity_id, records, undo, transaction)

    def also_of(self, entity_id: str) -> None:
        self._turn.also_of(entity_id)

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> None:
        if not self._turn.when_committed(entity_id, then):
            then()

    def reply(self, entity_id: str | None, waiting: Waiting[R], answer: R | KafkaError) -> None:
        if entity_id is None or not self._turn.reply(entity_id, waiting, answer):
            super().reply(entity_id, waiting, answer)

    def flush(self, is_refused: Iterator[bool]) -> None:
        """`is_refused`: of each batch that is tried."""
        turn, self._turn = self._turn, Turn()
        refused: list[Part] = []
        for part in turn.parts(1_000_000):
            if part.left_by is not None:
                refused.append(part)
            elif next(is_refused):
                refused.append(part)
                turn.refuse(part, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
            else:
                self.batches.append((part.entities[0], part.records))
                self.transactions.append(part.transaction)
                self._answer(part, None)
        for part in reversed(refused):
            self._answer(part, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            for undo in reversed(part.undos):
                undo()

    def _answer(self, part: Part, error: KafkaError | None) -> None:
        for each in part.replies:
            super().reply(None, each.waiting, error or each.answer)
        if error is None:
            for then in part.thens:
                then()
