"""Drives the idempotence state in tests as the sender does, with batches that are nothing but their numbers."""

from dataclasses import dataclass

from odradek.client.producer.idempotence.idempotence import Idempotence, Key
from odradek.protocol.errors import ErrorCode, Reaction

KEY: Key = ("orders", 3)
OTHER: Key = ("orders", 4)
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
UNKNOWN_ID = ErrorCode.UNKNOWN_PRODUCER_ID


@dataclass(eq=False)
class Batch:
    count: int = 10
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    in_flight: bool = False

    def renumber(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        assert not self.in_flight
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence

    @property
    def identity(self) -> tuple[int, int, int]:
        return self.producer_id, self.producer_epoch, self.base_sequence


class Driver:
    """Drains, answers and requeues as the sender does."""

    def __init__(self, epoch: int = 0, *, in_transactions: bool = False) -> None:
        self.allowed: set[Key] = {KEY, OTHER}
        """Partitions that the transaction, if there is one, lets records go to."""
        self.state = Idempotence(self.allowed.__contains__ if in_transactions else None)
        if in_transactions:
            self.state.start_over(7, epoch)
        else:
            self.state.set_producer_id(7, epoch)

    def drains(self, batch: Batch, key: Key = KEY) -> bool:
        self.state.advance()
        if not self.state.may_drain(key, batch):
            return False
        if batch.base_sequence < 0:
            self.state.assign(key, batch)
        batch.in_flight = True
        return True

    def sent(self, *counts: int, key: Key = KEY) -> list[Batch]:
        batches = [Batch(count) for count in counts]
        for batch in batches:
            assert self.drains(batch, key)
        return batches

    def succeeds(self, batch: Batch, base_offset: int = -1, key: Key = KEY) -> None:
        batch.in_flight = False
        self.state.completed(key, batch, base_offset)

    def begun(self, key: Key = KEY) -> "Driver":
        """Has the first batch of a partition acknowledged: sequences 0 to 9."""
        (batch,) = self.sent(10, key=key)
        self.succeeds(batch, 100, key)
        return self

    def refuses(self, batch: Batch, code: ErrorCode = OUT_OF_ORDER, log_start: int = 0, key: Key = KEY) -> Reaction:
        batch.in_flight = False
        return self.state.decide(key, batch, code, log_start)

    def is_lost(self, batch: Batch) -> None:
        """Its connection was closed: nobody knows whether it was appended."""
        batch.in_flight = False

    def fails(self, batch: Batch, code: ErrorCode, *, is_certain: bool) -> None:
        batch.in_flight = False
        self.state.failed(KEY, batch, code, is_certain)
