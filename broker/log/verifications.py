"""Which transactions a coordinator was asked about before their first batch (KIP-890; Kafka's VerificationStateEntry).

A partition takes the first batch of a transaction where the coordinator has said that the transaction is under way and
includes the partition. The answer is of the past when it arrives: the transaction may have ended meanwhile, by a
time-out or by the producer's successor. So the question is remembered before it is sent, a marker forgets it, and a
batch is appended only if its question still stands.

What is remembered is in no file: a leader that starts asks again. Pure.
"""

from typing import Final, NamedTuple


class Verification:
    """A question that stands."""

    __slots__ = ("begun_ms", "epoch", "lowest_sequence")

    def __init__(self, epoch: int, sequence: int, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        """The first batch that is appended must not be behind another one that waits, too."""
        self.begun_ms = now_ms


class Verifications:
    """Of one partition, by producer id."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def begin(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Verification:
        """A batch of this producer waits for the coordinator's answer. All of one transaction share one."""
        found = self._by_producer.get(producer_id)
        if found is None or epoch > found.epoch:
            found = self._by_producer[producer_id] = Verification(epoch, sequence, now_ms)
        elif epoch == found.epoch:
            found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def stands(self, producer_id: int, verification: Verification) -> bool:
        return self._by_producer.get(producer_id) is verification

    def end(self, producer_id: int, *, before_epoch: int | None = None) -> None:
        """The transaction is open now, or has ended; with `before_epoch`, if its epoch is an earlier one."""
        found = self._by_producer.get(producer_id)
        if found is not None and (before_epoch is None or found.epoch < before_epoch):
            del self._by_producer[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forgets those that nobody can wait for any more."""
        idle = [each for each, found in self._by_producer.items() if now_ms - found.begun_ms >= expiration_ms]
        for producer_id in idle:
            del self._by_producer[producer_id]


class Proof(NamedTuple):
    """What whoever appends a producer's batch knows of it, beside the header."""

    verification: Verification | None = None
    """Of a batch that may be the first of its transaction here (verifications.py)."""
    is_coordinators: bool = False
    """Whether a coordinator of groups has made it for the producer: it has no sequence."""
    transaction_version: int = 0
    """Of the transaction that a marker ends."""


NO_PROOF: Final = Proof()
