"""A coordinator of transactions as a model, with what its transactions wrote: rules of Kafka's in few lines, no bytes.

It says what a real one would say to each request, in both transaction versions, and what `read_committed` would show of
records and offsets afterwards.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from odradek.client.producer.idempotence.idempotence import Key
from odradek.client.producer.idempotence.sequences import NOBODY, Identity
from odradek.protocol.errors import ErrorCode, KafkaError

PRODUCER_ID: Final = 1_000
FENCED: Final = KafkaError(ErrorCode.PRODUCER_FENCED)


class Written(NamedTuple):
    """A record, or the offset of a group, in a transaction."""

    where: Key
    value: object


class ModelCoordinator:
    """Of one transactional id. Each request returns what is answered, or raises KafkaError."""

    def __init__(self) -> None:
        self.identity = Identity(PRODUCER_ID, -1)
        self.previous = NOBODY
        """What the producer had before it was given `identity`, in answer to a request of its own."""
        self.state = "empty"
        self.partitions: set[Key] = set()
        self.open: list[Written] = []
        self.committed: list[Written] = []
        self.aborted: list[Written] = []
        self.decisions: list[bool] = []
        """Whether each transaction that has ended was committed."""

    def init(self, identity: Identity) -> Identity:
        """A producer begins, or (with an identity) wants another epoch."""
        if identity not in (NOBODY, self.identity):
            if identity == self.previous:
                return self.identity  # its answer was lost
            raise FENCED
        if self.state == "ongoing":
            self._end(is_commit=False)
        self._bump(identity)
        self.state = "empty"
        return self.identity

    def add(self, identity: Identity, partitions: Iterable[Key]) -> None:
        """Partitions, or a group under its name, are part of the transaction from now on."""
        self._check(identity)
        self.state = "ongoing"
        self.partitions |= set(partitions)

    def write(self, identity: Identity, where: Key, value: object, *, uses_v2: bool) -> None:
        """A record or an offset arrives: what was not named before is added, or refused."""
        if identity.epoch < self.identity.epoch:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if uses_v2:
            self.add(identity, [where])
        elif where not in self.partitions:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        self.open.append(Written(where, value))

    def end(self, identity: Identity, *, is_commit: bool, uses_v2: bool) -> Identity:
        """Commits or aborts. Asked again, it answers the same again."""
        decided = "committed" if is_commit else "aborted"
        if uses_v2 and identity == self.previous and self.state == decided:
            return self.identity
        self._check(identity)
        if self.state == "ongoing":
            self._end(is_commit=is_commit)
        elif not (uses_v2 and not is_commit) and not (not uses_v2 and self.state == decided):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        self.state = decided
        if uses_v2:
            self._bump(identity)
        return self.identity if uses_v2 else NOBODY

    def times_out(self) -> None:
        """The transaction was open for too long: it is aborted under an epoch that its producer does not know."""
        if self.state == "ongoing":
            self._end(is_commit=False)
            self.state = "aborted"
            self._bump(NOBODY)

    def _check(self, identity: Identity) -> None:
        if identity != self.identity:
            raise FENCED

    def _bump(self, before: Identity) -> None:
        self.previous = before
        self.identity = self.identity._replace(epoch=self.identity.epoch + 1)

    def _end(self, *, is_commit: bool) -> None:
        (self.committed if is_commit else self.aborted).extend(self.open)
        self.decisions.append(is_commit)
        self.open.clear()
        self.partitions.clear()
