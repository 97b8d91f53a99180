"""What the machine of transactions is asked, and what it answers. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from odradek.broker.txn.transaction import NO_TIME, ProducerIdentity, TopicPartition
from odradek.protocol.errors import ErrorCode


class InitProducerId(NamedTuple):
    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None
    """Who the producer says it is (KIP-360)."""
    new_producer_id: int
    """One that nobody has; it is used if the id is new, or its epochs are used up."""
    enable_two_phase_commit: bool = False
    """Another system decides how transactions end, however long that takes (KIP-939)."""


class Kept(NamedTuple):
    """What a successor is told that keeps what is under way (KIP-939)."""

    identity: ProducerIdentity
    """With what it goes on."""
    ongoing: ProducerIdentity | None
    """Whose transaction it is, which this one ends; None where none is under way."""


class AddPartitions(NamedTuple):
    transactional_id: str
    producer: ProducerIdentity
    partitions: frozenset[TopicPartition]
    version: int
    """The transaction version that the producer uses."""


class Verify(NamedTuple):
    """Whether the transaction is under way and includes these partitions (KIP-890)."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: frozenset[TopicPartition]


class EndTransaction(NamedTuple):
    transactional_id: str
    producer: ProducerIdentity
    is_commit: bool
    version: int
    new_producer_id: int
    """As in `InitProducerId`."""


Verified = Mapping[TopicPartition, ErrorCode]


class Ending(NamedTuple):
    """What has to be told to partitions: how a transaction ends."""

    transactional_id: str
    producer: ProducerIdentity
    is_commit: bool
    partitions: frozenset[TopicPartition]
    version: int
    prepared_ms: int = NO_TIME
    """When it was decided, in ms since 1970. No other ending of the id has the same: in version 0, the producer may."""
