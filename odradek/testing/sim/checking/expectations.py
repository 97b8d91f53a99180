"""What a history may be held to: what its topics promise, and which losses were announced.

The loss model (`loss_model.py`) and the metadata records say when an acknowledged record may be gone all the same.
Every question here is answered with the excuse, or with None where there is none.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from odradek.testing.sim.checking.cluster_history import (
    NO_LEADER,
    ClusterRecord,
    NodesStored,
    OptionsStored,
    PartitionStored,
    RecordsDeleted,
    TopicStored,
    UncleanElection,
)
from odradek.testing.sim.checking.history import Answered, Asked, FaultKind, Happened, Record
from odradek.testing.sim.checking.loss_model import Minimum, losses_ms, wounds_of
from odradek.testing.sim.checking.topics import name_of

TopicPartition = tuple[str, int]

STALE_READS_MS: Final = 2_000.0
"""How long a leader that was cut off may go on serving consumers, and producers with acks=1: its lease."""
DARK_MS: Final = 30_000.0
"""For members with a session of 6 s, behind faults of 7 s, whose requests time out after some seconds more."""
UNCLEAN: Final = "unclean election"
UNAVAILABLE: Final = "declared unavailable"
OUTSIDE: Final = "outside the loss model"
ACKS_1: Final = "acks=1"
MADE_ANEW: Final = "topic made anew"
MINIMUM_OPTION: Final = "min.insync.replicas"
UNCLEAN_OPTION: Final = "unclean.leader.election.enable"
_HARMLESS: Final[frozenset[FaultKind]] = frozenset({"start", "continue", "heal", "clock jump", "slow machine"})
"""What cannot make a leader go."""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What one topic is configured for."""

    min_insync_replicas: int = 2
    is_synced: bool = False
    """`flush.messages=1`: what is acknowledged survives a power failure."""
    has_one_replica: bool = False
    """acks=1 says the same as acks=all then."""
    is_compacted: bool = False
    keeps_records: bool = False
    """Neither retention nor anybody else takes records away, unless operators want it."""
    may_elect_uncleanly: bool = False
    """`unclean.leader.election.enable`, or an operator who does so."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the checker cannot see in a history."""

    topics: Mapping[str, TopicRules] = field(default_factory=dict[str, TopicRules])
    default: TopicRules = TopicRules()
    broker_ids: Mapping[str, int] = field(default_factory=dict[str, int])
    """Machine -> broker id. Empty: the number that a machine's name ends with."""
    reads_everything: bool | None = None
    """Whether readers went on until they had everything. None: if the history has a phase `end`."""
    stale_reads_ms: float = STALE_READS_MS
    seen_within_ms: float = 0.0
    """So long after a change the metadata records tell of it: a broker that is alone has a store of its own, into which
    somebody looks now and then, while it serves."""
    dark_ms: float = DARK_MS
    """How long a member that has lost a partition may go on with it: its session's time-out, and what kept it from
    its coordinator."""
    request_timeout_ms: float = float("inf")
    """After so long without an answer a client gives a request up, and sends it again over another connection."""

    def of(self, topic: str) -> TopicRules:
        """`topic`: its identity."""
        return self.topics.get(name_of(topic), self.default)


class Request:
    """One thing that an operator wanted, and what it was told. Indexes are positions in the history."""

    __slots__ = ("answered", "answered_index", "asked", "asked_index")

    def __init__(self, asked: Asked, index: int) -> None:
        self.asked = asked
        self.asked_index = index
        self.answered: Answered | None = None
        self.answered_index = -1

    def take(self, answered: Answered, index: int) -> None:
        self.answered, self.answered_index = answered, index

    @property
    def done(self) -> Answered | None:
        """The answer that it was done; None where there is no such answer."""
        return self.answered if self.answered is not None and self.answered.is_done else None

    @property
    def deletes_before(self) -> float:
        """The offset, of a request to delete records. Infinity for all of them: whatever was answered, a leader that
        did not answer may have deleted more."""
        return float(self.asked.numbers[0]) if self.asked.numbers[0] >= 0 else float("inf")

    @property
    def known_before(self) -> float:
        """The part of that of which is known that it was asked for."""
        offset = self.asked.numbers[0] if self.done is None else max(*self.asked.numbers, *self.done.numbers)
        return float(offset)

    @property
    def settled_ms(self) -> float:
        """From then on it changes nothing any more, as far as is known."""
        return self.answered.at_ms if self.answered is not None and self.answered.is_done else float("inf")


class Expectations:
    """The rules, applied to one history. Everything is asked by virtual time."""

    def __init__(self, records: Iterable[Record], cluster: Iterable[ClusterRecord], rules: Rules) -> None:
        self.rules = rules
        self.stored: dict[TopicPartition, list[PartitionStored]] = {}
        self.logged: dict[TopicPartition, list[UncleanElection]] = {}
        self._deleted: dict[TopicPartition, list[RecordsDeleted]] = {}
        self.topics: dict[str, list[TopicStored]] = {}
        """By identity: created, enlarged, deleted."""
        self.options: dict[str, list[OptionsStored]] = {}
        """By identity; under an empty one those of all brokers."""
        self.nodes: list[NodesStored] = []
        for record in cluster:
            match record:
                case PartitionStored():
                    self.stored.setdefault((record.topic, record.partition), []).append(record)
                case UncleanElection():
                    self.logged.setdefault((record.topic, record.partition), []).append(record)
                case RecordsDeleted():
                    self._deleted.setdefault((record.topic, record.partition), []).append(record)
                case TopicStored():
                    self.topics.setdefault(record.topic, []).append(record)
                case OptionsStored():
                    self.options.setdefault(record.topic, []).append(record)
                case NodesStored():
                    self.nodes.append(record)
        self.happened: list[Happened] = []
        self.requests: dict[str, Request] = {}
        """What operators wanted, by the name of each request."""
        for index, each in enumerate(records):
            if isinstance(each, Happened):
                self.happened.append(each)
            elif isinstance(each, Asked):
                self.requests[each.operator] = Request(each, index)
            elif isinstance(each, Answered) and each.operator in self.requests:
                self.requests[each.operator].take(each, index)
        self._unclean_ms = {key: sorted(each.at_ms for each in logged) for key, logged in self.logged.items()}
        self._disturbed_ms = [each.at_ms for each in self.happened if each.kind not in _HARMLESS]
        self._epochs_ms = {
            key: [after.at_ms for before, after in pairwise(states) if after.leader_epoch > before.leader_epoch]
            for key, states in self.stored.items()
        }
        self._deletions: dict[TopicPartition, list[Request]] = {}
        self._models: dict[tuple[TopicPartition, bool], list[float]] = {}

    # -- excuses --------------------------------------------------------------------------------------------------

    def of_two_values(self, key: TopicPartition, last_ms: float, first_ms: float) -> str | None:
        """Why something else may be known from `first_ms` on than was known up to `last_ms`."""
        return self._of_change(key, last_ms - self.rules.stale_reads_ms, first_ms)

    def of_made_anew(self, one: TopicPartition, other: TopicPartition) -> str | None:
        """Why a record may be in both: they are partitions of two topics of the same name, of which at most one was
        there when its producer sent it again."""
        return MADE_ANEW if one[0] != other[0] and name_of(one[0]) == name_of(other[0]) else None

    def of_loss(self, key: TopicPartition, sent_ms: float) -> str | None:
        """Why a record with acks=all may be gone."""
        return self._of_change(key, sent_ms, float("inf"))

    def of_loss_before(self, key: TopicPartition, at_ms: float, since_ms: float = float("-inf")) -> str | None:
        """Why a replica may have gone back."""
        return self._of_change(key, since_ms, at_ms)

    def of_not_being_read(self, key: TopicPartition) -> str | None:
        """Why nobody may have read to the end."""
        states = self.stored.get(key)
        return UNAVAILABLE if states and states[-1].leader == NO_LEADER else None

    def of_loss_with_acks_1(self, key: TopicPartition, sent_ms: float) -> str | None:
        """Only a change of leaders excuses it; where those are not known, anything that may lead to one. A leader that
        is cut off from its cluster does not know at once that it is none any more, and until its lease is over it
        goes on acknowledging."""
        if self.rules.of(key[0]).has_one_replica:
            return self.of_loss(key, sent_ms)
        moments = self._epochs_ms.get(key, []) if self.stored else self._disturbed_ms
        return ACKS_1 if _any_between(moments, sent_ms - self.rules.stale_reads_ms, float("inf")) else None

    def is_deleted(self, key: TopicPartition, offset: int, by_ms: float = float("inf")) -> bool:
        """Whether it was taken away on purpose, or may have been: alone, or with its topic."""
        if (deleted_ms := self.deleted_ms(key[0])) is not None and deleted_ms <= by_ms:
            return True
        if any(offset < each.before_offset and each.at_ms <= by_ms for each in self._deleted.get(key, ())):
            return True
        return any(offset < request.known_before and request.asked.at_ms <= by_ms for request in self.deletions(key))

    def deletions(self, key: TopicPartition) -> list[Request]:
        """What operators asked to delete of it."""
        if key not in self._deletions:
            self._deletions[key] = [
                request
                for request in self.requests.values()
                if request.asked.action == "delete records"
                and (request.asked.topic, request.asked.partition) == (name_of(key[0]), key[1])
            ]
        return self._deletions[key]

    def deleted_ms(self, topic: str) -> float | None:
        """When the topic was deleted; None for one that was not."""
        return next((each.at_ms for each in self.topics.get(topic, ()) if not each.partition_count), None)

    def epochs_between(self, key: TopicPartition, from_ms: float, to_ms: float) -> bool:
        """Whether a leader epoch began between the two."""
        return _any_between(self._epochs_ms.get(key, []), from_ms, to_ms)

    # -- the loss model -------------------------------------------------------------------------------------------

    def outside_since_ms(self, key: TopicPartition) -> float | None:
        """When the partition left the loss model; None if it never did."""
        return next(iter(self._losses_ms(key)), None)

    def without_heirs_since_ms(self, key: TopicPartition) -> float | None:
        """From when on nobody may be left who can be elected cleanly; None: there always was somebody. Whoever has lost
        power gives its in-sync places up, even where all that it had acknowledged was synced: it cannot know that."""
        return next(iter(self._losses_ms(key, is_synced=False)), None)

    def minimums(self, topic: str) -> list[Minimum]:
        """How `min.insync.replicas` of the topic was changed."""
        return minimums_of(self.options.get(topic, ()), self.rules.of(topic).min_insync_replicas)

    def lowest_minimum(self, topic: str, by_ms: float) -> int:
        """The smallest that may be in force somewhere then: a broker may not have heard of the newest."""
        values = [value for at_ms, value in self.minimums(topic) if at_ms <= by_ms]
        return min([self.rules.of(topic).min_insync_replicas, *values])

    def may_elect_uncleanly(self, key: TopicPartition, by_ms: float) -> bool:
        """Whether the topic, or an operator, may have wanted that by then."""
        options = (*self.options.get(key[0], ()), *self.options.get("", ()))
        return (
            self.rules.of(key[0]).may_elect_uncleanly
            or any(each.options.get(UNCLEAN_OPTION) == "true" for each in options if each.at_ms <= by_ms)
            or any(
                request.asked.action == "elect uncleanly"
                and (request.asked.topic, request.asked.partition) == (name_of(key[0]), key[1])
                and request.asked.at_ms <= by_ms
                for request in self.requests.values()
            )
        )

    def _losses_ms(self, key: TopicPartition, *, is_synced: bool | None = None) -> list[float]:
        """`is_synced`: None for what the topic is configured for."""
        rules = self.rules.of(key[0])
        is_synced = rules.is_synced if is_synced is None else is_synced
        if (key, is_synced) not in self._models:
            wounds = wounds_of(self.happened, self.rules.broker_ids, is_synced=is_synced)
            self._models[key, is_synced] = losses_ms(
                wounds, self.stored.get(key, ()), rules.min_insync_replicas, self.minimums(key[0])
            )
        return self._models[key, is_synced]

    def _of_change(self, key: TopicPartition, from_ms: float, to_ms: float) -> str | None:
        """Where nothing is known of elections, a loss outside the model cannot be held against the cluster."""
        if _any_between(self._unclean_ms.get(key, []), from_ms, to_ms):
            return UNCLEAN
        return OUTSIDE if not self.stored and _any_between(self._losses_ms(key), from_ms, to_ms) else None


def minimums_of(stored: Iterable[OptionsStored], default: int) -> list[Minimum]:
    """The changes of `min.insync.replicas` among those of a topic's options."""
    return [(each.at_ms, int(each.options.get(MINIMUM_OPTION, default))) for each in stored]


def _any_between(moments: list[float], from_ms: float, to_ms: float) -> bool:
    return bisect_left(moments, from_ms) < bisect_right(moments, to_ms)
