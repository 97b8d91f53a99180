"""What a history may be held to: what its topics promise, and which losses were announced.

The loss model (`loss_model.py`) and the metadata records say when an acknowledged record may be gone all the same.
Every question here is answered with the excuse, or with None where there is none.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.sim.cluster_history import NO_LEADER, ClusterRecord, PartitionStored, RecordsDeleted, UncleanElection
from tests.sim.history import FaultKind, Happened, Record
from tests.sim.loss_model import losses_ms, wounds_of

TopicPartition = tuple[str, int]

STALE_READS_MS: Final = 2_000.0
"""How long a leader that was cut off may go on serving consumers, and producers with acks=1: its lease."""
UNCLEAN: Final = "unclean election"
UNAVAILABLE: Final = "declared unavailable"
OUTSIDE: Final = "outside the loss model"
ACKS_1: Final = "acks=1"
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

    def of(self, topic: str) -> TopicRules:
        return self.topics.get(topic, self.default)


class Expectations:
    """The rules, applied to one history. Everything is asked by virtual time."""

    def __init__(self, records: Iterable[Record], cluster: Iterable[ClusterRecord], rules: Rules) -> None:
        self.rules = rules
        self.stored: dict[TopicPartition, list[PartitionStored]] = {}
        self.logged: dict[TopicPartition, list[UncleanElection]] = {}
        self._deleted: dict[TopicPartition, list[RecordsDeleted]] = {}
        for record in cluster:
            key = record.topic, record.partition
            match record:
                case PartitionStored():
                    self.stored.setdefault(key, []).append(record)
                case UncleanElection():
                    self.logged.setdefault(key, []).append(record)
                case RecordsDeleted():
                    self._deleted.setdefault(key, []).append(record)
        self.happened = [record for record in records if isinstance(record, Happened)]
        self._unclean_ms = {key: sorted(each.at_ms for each in logged) for key, logged in self.logged.items()}
        self._disturbed_ms = [each.at_ms for each in self.happened if each.kind not in _HARMLESS]
        self._epochs_ms = {
            key: [after.at_ms for before, after in pairwise(states) if after.leader_epoch > before.leader_epoch]
            for key, states in self.stored.items()
        }
        self._models: dict[tuple[TopicPartition, bool], list[float]] = {}

    # -- excuses --------------------------------------------------------------------------------------------------

    def of_two_values(self, key: TopicPartition, last_ms: float, first_ms: float) -> str | None:
        """Why something else may be known from `first_ms` on than was known up to `last_ms`."""
        return self._of_change(key, last_ms - self.rules.stale_reads_ms, first_ms)

    def of_loss(self, key: TopicPartition, sent_ms: float) -> str | None:
        """Why a record with acks=all may be gone."""
        return self._of_change(key, sent_ms, float("inf"))

    def of_loss_before(self, key: TopicPartition, at_ms: float) -> str | None:
        """Why a replica may have gone back."""
        return self._of_change(key, float("-inf"), at_ms)

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
        """Whether it was taken away on purpose, or may have been."""
        return any(offset < each.before_offset and each.at_ms <= by_ms for each in self._deleted.get(key, ()))

    # -- the loss model -------------------------------------------------------------------------------------------

    def outside_since_ms(self, key: TopicPartition) -> float | None:
        """When the partition left the loss model; None if it never did."""
        return next(iter(self._losses_ms(key)), None)

    def without_heirs_since_ms(self, key: TopicPartition) -> float | None:
        """From when on nobody may be left who can be elected cleanly; None: there always was somebody. Whoever has lost
        power gives its seats up, even where all that it had acknowledged was synced: it cannot know that."""
        return next(iter(self._losses_ms(key, is_synced=False)), None)

    def _losses_ms(self, key: TopicPartition, *, is_synced: bool | None = None) -> list[float]:
        """`is_synced`: None for what the topic is configured for."""
        rules = self.rules.of(key[0])
        is_synced = rules.is_synced if is_synced is None else is_synced
        if (key, is_synced) not in self._models:
            wounds = wounds_of(self.happened, self.rules.broker_ids, is_synced=is_synced)
            self._models[key, is_synced] = losses_ms(wounds, self.stored.get(key, ()), rules.min_insync_replicas)
        return self._models[key, is_synced]

    def _of_change(self, key: TopicPartition, from_ms: float, to_ms: float) -> str | None:
        """Where nothing is known of elections, a loss outside the model cannot be held against the cluster."""
        if _any_between(self._unclean_ms.get(key, []), from_ms, to_ms):
            return UNCLEAN
        return OUTSIDE if not self.stored and _any_between(self._losses_ms(key), from_ms, to_ms) else None


def _any_between(moments: list[float], from_ms: float, to_ms: float) -> bool:
    return bisect_left(moments, from_ms) < bisect_right(moments, to_ms)
