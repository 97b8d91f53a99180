"""What the metadata store held of the partitions, and what a log or an operator said of them: plain records, like those
of `history.py` and in the same virtual time, for the checker.

    stored = PartitionStored(at_ms=10.0, topic="t", partition=0, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1,
                             leader_epoch=0, partition_epoch=0)

Topics are named by their identities (topics.py).

A `PartitionStored` for each committed change, in the order of the commits, `UncleanElection` where a broker logged one
(the metadata alone does not always show it: the only member left of an in-sync set may have lost data), and
`RecordsDeleted` where somebody, or retention, took records away on purpose. `TopicStored`, `OptionsStored` and
`NodesStored` say what an operator's change has come to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class PartitionStored:
    """The state of one partition, as a commit wrote it."""

    at_ms: float
    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...] = ()
    writer: int | None = None
    """The broker that wrote it, where that is known."""
    controller: int | None = None
    """The broker that was the controller at that moment; None for nobody, or where that is not known."""
    adding: tuple[int, ...] = ()
    """Of the replicas, those that a reassignment under way adds,"""
    removing: tuple[int, ...] = ()
    """and those that it will take away."""
    live: tuple[int, ...] | None = None
    """The brokers that were there, not about to stop, and with a replica that could be used; None where that is not
    known."""


@dataclass(frozen=True, slots=True)
class UncleanElection:
    """It was logged that this leader may lack records."""

    at_ms: float
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class RecordsDeleted:
    """Whatever stands before `before_offset` may be gone from now on."""

    at_ms: float
    topic: str
    partition: int
    before_offset: int


@dataclass(frozen=True, slots=True)
class TopicStored:
    """The topic was created, or got partitions; or, with none, it was deleted."""

    at_ms: float
    topic: str
    partition_count: int


@dataclass(frozen=True, slots=True)
class OptionsStored:
    """These are the options of a topic from now on; with an empty name, those of all brokers."""

    at_ms: float
    topic: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodesStored:
    """These brokers are registered from now on, whether or not they are there."""

    at_ms: float
    nodes: tuple[int, ...]


ClusterRecord = PartitionStored | UncleanElection | RecordsDeleted | TopicStored | OptionsStored | NodesStored
