"""What a history is made of: how many brokers, what their topic promises, who sends and reads, and what goes wrong.

    scenario = Scenario.of(seed=7)

A quarter of the seeds have one broker with a metadata store of its own, the others three that share one. Times are
scaled down, for a history is short, but for one seed in twenty. Most seeds keep to the loss model
(docs/guarantees.md), so that whatever is lost is a finding; the others leave it, and then what is lost has to be
announced. In half of the seeds operators act, too.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from odradek.testing.sim.checking.expectations import Rules, TopicRules
from odradek.testing.sim.cluster.group_member import Protocol, Seat, Strategy
from odradek.testing.sim.cluster.group_members import BROKER_OPTIONS, DARK_MS
from odradek.testing.sim.cluster.transactor import Desk
from odradek.testing.sim.cluster.transactors import BROKER_OPTIONS as TRANSACTION_OPTIONS
from odradek.testing.sim.cluster.transactors import Desks
from odradek.testing.sim.cluster.workload import CLIENT_SETTINGS, ProducerAcks
from odradek.testing.sim.directed.alone import STORIES_ALONE
from odradek.testing.sim.directed.clusters import STORIES
from odradek.testing.sim.directed.groups import GROUP_STORIES
from odradek.testing.sim.directed.operators import CLEAN_STOP, OPERATOR_STORIES
from odradek.testing.sim.directed.transactions import TRANSACTION_STORIES

TOPIC: Final = "orders"
ALL_ACKS: Final = (ProducerAcks(-1, is_idempotent=True), ProducerAcks(-1), ProducerAcks(1), ProducerAcks(0))
LAG_MS: Final = (1_000, 2_000)
LEASE_MS: Final = (2_000, 4_000)
DEFAULT_LEASE_MS: Final = 2_000
STORY_OF_COMPACTION: Final = "followers out, then lose the leader"
"""It holds the high watermark up, and compaction must not go beyond it."""
STORIES_OFTEN: Final = (*STORIES, *("back with a tail of its own",) * 2)
"""That one needs more chance than the others."""
OPERATOR_STORIES_OFTEN: Final = (*OPERATOR_STORIES, "records deleted, then lose the leader")
STORY_S: Final = 8.0
WORK_MS: Final = 300.0
"""And whoever writes works within its transactions for so long at least, on average, now and then."""
UNDISTURBED_S: Final = 22.0
"""A story of transactions waits for its moment, and for two elections."""
NOBODY: Final = Desks()


@dataclass(frozen=True, slots=True)
class Scenario:
    """See the module."""

    brokers: int = 1
    partitions: int = 3
    replication_factor: int = 1
    min_insync_replicas: int = 1
    is_synced: bool = True
    """Each record is synced before it is acknowledged."""
    may_elect_uncleanly: bool = False
    """`unclean.leader.election.enable`."""
    retention_bytes: int | None = None
    """The topic keeps about so many bytes of each partition."""
    is_compacted: bool = False
    """Its records have keys, and of each key the newest stays."""
    directories: tuple[int, ...] = (1,)
    """How many data directories each broker has."""
    lag_ms: int | None = None
    """`replica.lag.time.max.ms`; None: its default, 30 s."""
    lease_ms: int = DEFAULT_LEASE_MS
    producers: tuple[ProducerAcks, ...] = ALL_ACKS[:2]
    readers: int = 1
    interval_ms: float = 100.0
    """Between two records of a producer."""
    safety_s: float = 20.0
    faults: int = 8
    """How many by chance."""
    stories: tuple[str, ...] = ()
    """And those that are told on purpose (directed.py), one after the other."""
    operations: int = 0
    """How many things operators do by chance (operator_plan.py)."""
    operator_stories: tuple[str, ...] = ()
    """And those that are told of them on purpose (directed_operators.py), beside the others."""
    seats: tuple[Seat, ...] = ()
    """The members of a consumer group."""
    member_moves: int = 0
    """How often one of them goes and comes, by chance."""
    member_cuts: int = 0
    """How often one of them reaches no broker for a while."""
    group_stories: tuple[str, ...] = ()
    """And those that are told of its coordinator (directed/groups.py), beside the others."""
    desks: Desks = NOBODY
    """Who has transactions."""
    desk_moves: int = 0
    """How often one of them goes and comes, by chance."""
    desk_cuts: int = 0
    """How often one of them reaches no broker for a while."""
    transaction_stories: tuple[str, ...] = ()
    """And those that are told of their coordinator (directed/transactions.py), beside the others."""
    keeps_to_loss_model: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the brokers, besides those that follow from the rest."""

    @property
    def has_store(self) -> bool:
        """The brokers share a metadata store; else the one has its own, in its data directory."""
        return self.brokers > 1

    @property
    def has_default_times(self) -> bool:
        return self.has_store and self.lag_ms is None

    @property
    def has_operators(self) -> bool:
        return bool(self.operations or self.operator_stories)

    @property
    def topic_configs(self) -> dict[str, str]:
        configs = {"min.insync.replicas": str(self.min_insync_replicas)}
        if self.may_elect_uncleanly:
            configs["unclean.leader.election.enable"] = "true"
        if self.retention_bytes is not None:
            configs |= {"retention.bytes": str(self.retention_bytes), "segment.ms": "1000"}
        if self.is_compacted:
            policy = "compact" if self.retention_bytes is None else "compact,delete"
            configs |= {"cleanup.policy": policy, "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
        return configs

    @property
    def broker_options(self) -> dict[str, str]:
        options = {
            "log.flush.interval.messages": "1" if self.is_synced else str(2**62),
            "log.segment.bytes": str(1024**2),
            "log.initial.task.delay.ms": "1000",
            "metadata.lease.ms": str(self.lease_ms),
        }
        if self.lag_ms is not None:
            options["replica.lag.time.max.ms"] = str(self.lag_ms)
            options["socket.connection.setup.timeout.ms"] = "2000"
        if self.retention_bytes is not None:
            options["log.retention.check.interval.ms"] = "1000"
        if self.is_compacted:
            options["log.cleaner.backoff.ms"] = "1000"
        if self.has_operators:
            options["log.retention.check.interval.ms"] = "1000"
            options["auto.create.topics.enable"] = "false"
        replicas = str(min(3, self.brokers))
        if self.seats or self.has_transactions:
            options |= {**BROKER_OPTIONS, "offsets.topic.replication.factor": replicas}
        if self.has_transactions:
            options |= TRANSACTION_OPTIONS
            options |= {"transaction.state.log.replication.factor": replicas}
            options |= {"transaction.state.log.min.isr": str(self.min_insync_replicas)}
        return {**options, **self.options}

    def rules(self, broker_ids: Mapping[str, int]) -> Rules:
        """What the checker is to hold the history to."""
        topic = TopicRules(
            self.min_insync_replicas,
            is_synced=self.is_synced,
            has_one_replica=self.replication_factor == 1,
            is_compacted=self.is_compacted,
            keeps_records=self.retention_bytes is None,
            may_elect_uncleanly=self.may_elect_uncleanly,
        )
        within_ms = 0.0 if self.has_store else float("inf")
        stale_ms = float(self.lease_ms)
        rules = Rules({TOPIC: topic}, topic, broker_ids, stale_reads_ms=stale_ms, seen_within_ms=within_ms)
        return replace(rules, dark_ms=DARK_MS, request_timeout_ms=CLIENT_SETTINGS["request_timeout_ms"])

    @classmethod
    def of(cls, seed: int) -> "Scenario":
        """What the seed says."""
        rng = random.Random(f"{seed}/scenario")
        scenario = cls._of_one(rng) if rng.random() < 0.25 else cls.of_cluster(rng)
        scenario = scenario.compacted() if rng.random() < 0.15 else scenario
        # A stream of its own: the others are what they would be without operators.
        rng = random.Random(f"{seed}/operators")
        scenario = scenario.with_operators(rng) if rng.random() < 0.5 else scenario
        rng = random.Random(f"{seed}/groups")
        scenario = scenario.with_group(rng) if scenario.may_have_group and rng.random() < 0.7 else scenario
        # These streams leave alone the seeds by which mistakes were found before there were transactions, or stories
        # without other faults.
        rng = random.Random(f"{seed}/transactions 1923")
        chance = 0.1 if scenario.seats else 0.6
        scenario = scenario.with_transactions(rng) if scenario.keeps_all and rng.random() < chance else scenario
        rng = random.Random(f"{seed}/undisturbed 23")
        return scenario.undisturbed() if scenario.may_be_undisturbed and rng.random() < 0.3 else scenario

    @property
    def has_transactions(self) -> bool:
        return bool(self.desks.writers)

    @property
    def keeps_all(self) -> bool:
        """Nothing goes, but for what operators delete."""
        is_kept = self.keeps_to_loss_model if self.has_store else self.is_synced
        return is_kept and not (self.is_compacted or self.may_elect_uncleanly or self.retention_bytes is not None)

    @property
    def may_have_group(self) -> bool:
        """Of a group it is judged whether it has processed everything: so nothing may go."""
        return self.keeps_all and not self.has_operators

    def with_transactions(self, rng: random.Random) -> "Scenario":
        """The same, and some write in transactions; mostly others copy that, exactly once."""
        is_one_id = rng.random() < 0.2
        is_old = rng.random() < 0.4 and all(seat.protocol == "classic" for seat in self.seats)
        """Clients are told nothing of transaction version 2, nor of the groups of KIP-848."""
        protocol: Protocol = "classic" if is_old else rng.choice(("classic", "consumer"))

        def desk(transactional_id: str) -> Desk:
            return Desk(
                transactional_id,
                abort_share=rng.choice((0.0, 0.1, 0.4)),
                work_ms=rng.choice((0.0, 100.0, 1_500.0)),
                interval_ms=rng.choice((50.0, 200.0)),
                protocol=protocol,
                is_static=rng.random() < 0.2,
            )

        writers = tuple(desk("writers" if is_one_id else f"writer{number}") for number in range(rng.choice((1, 2))))
        copiers = tuple(desk(f"copier{number}") for number in range(rng.choice((0, 1, 1, 2))))
        moves, cuts = rng.choice((0, 1, 3, 6)), rng.choice((0, 0, 1, 2)) if self.has_store else 0
        told = (rng.choice(tuple(TRANSACTION_STORIES)),) if self.has_store and rng.random() < 0.7 else ()
        options = {"act.as": "3.9", **self.options} if is_old else self.options
        return replace(
            self,
            desks=Desks(writers, copiers),
            desk_moves=moves,
            desk_cuts=cuts,
            transaction_stories=told,
            options=options,
        )

    @property
    def may_be_undisturbed(self) -> bool:
        """It has a story of transactions, which takes seconds, and not minutes."""
        return bool(self.transaction_stories) and not self.has_default_times

    def undisturbed(self) -> "Scenario":
        """The same, and the story of transactions is all that goes wrong. Clients have transaction version 1 where they
        can: a marker of it does not say which of its producer's transactions it ends."""
        desks = Desks(
            tuple(replace(desk, work_ms=max(desk.work_ms, WORK_MS)) for desk in self.desks.writers),
            tuple(replace(desk, protocol="classic") for desk in self.desks.copiers),
        )
        is_old = all(seat.protocol == "classic" for seat in self.seats)
        return replace(
            self,
            safety_s=max(self.safety_s, UNDISTURBED_S),
            faults=0,
            stories=(),
            operations=0,
            operator_stories=(),
            member_moves=0,
            member_cuts=0,
            group_stories=(),
            desks=desks if is_old else self.desks,
            desk_moves=0,
            desk_cuts=0,
            options={**self.options, "act.as": "3.9"} if is_old else self.options,
        )

    def with_group(self, rng: random.Random) -> "Scenario":
        """The same, and a consumer group reads: of classic members, of those of KIP-848, or of both."""
        strategies: tuple[Strategy, ...] = ("range", "roundrobin", "sticky", "cooperative-sticky")
        strategy = rng.choice(strategies)
        every: tuple[tuple[Protocol, ...], ...] = (("classic",), ("consumer",), ("classic", "consumer"))
        protocols = rng.choice(every)
        seats = tuple(
            Seat(
                rng.choice(protocols), strategy, is_static=rng.random() < 0.2, work_ms=rng.choice((0.0, 100.0, 1_000.0))
            )
            for _ in range(rng.choice((1, 2, 2, 3)))
        )
        moves = rng.choice((0, 1, 3, 6))
        cuts = rng.choice((0, 0, 1, 2)) if self.has_store else 0
        told = (rng.choice(tuple(GROUP_STORIES)),) if self.has_store and rng.random() < 0.7 else ()
        return replace(self, seats=seats, member_moves=moves, member_cuts=cuts, group_stories=told)

    def with_operators(self, rng: random.Random) -> "Scenario":
        """The same, and operators act."""
        stories, told = (OPERATOR_STORIES_OFTEN, (0, 1, 1, 2)) if self.has_store else ((CLEAN_STOP,), (0, 0, 1))
        count = rng.choice(told)
        return replace(
            self,
            operations=rng.choice((1, 2, 3)) if count else rng.choice((2, 3, 5)),
            operator_stories=tuple(rng.choice(stories) for _ in range(count)),
        )

    def compacted(self) -> "Scenario":
        """The same with a compacted topic."""
        if not self.has_store:
            return replace(self, is_compacted=True)
        stories = (*self.stories, STORY_OF_COMPACTION)
        return replace(self, is_compacted=True, stories=stories, safety_s=self.safety_s + STORY_S)

    @classmethod
    def _of_one(cls, rng: random.Random) -> "Scenario":
        """Without any sync whatever power takes is outside the loss model, and announced."""
        return cls(
            partitions=rng.choice((1, 2, 4)),
            is_synced=rng.random() < 0.7,
            producers=tuple(rng.choice(ALL_ACKS) for _ in range(rng.choice((1, 2, 3)))),
            readers=rng.choice((1, 2)),
            interval_ms=rng.choice((40.0, 100.0, 300.0)),
            safety_s=rng.choice((10.0, 20.0, 30.0)),
            faults=rng.choice((1, 3, 6, 10)),
            stories=tuple(rng.choice(tuple(STORIES_ALONE)) for _ in range(rng.choice((0, 1, 2)))),
        )

    @classmethod
    def of_cluster(cls, rng: random.Random) -> "Scenario":
        """Three brokers; mostly three replicas, of which two have to be in sync."""
        has_default_times = rng.random() < 0.05
        replication_factor = 3 if rng.random() < 0.85 else 2
        min_insync = 2 if rng.random() < 0.85 else 1
        told = 0 if rng.random() < 0.2 else rng.choice((1, 1, 2))
        return cls(
            brokers=3,
            partitions=rng.choice((1, 1, 2, 3, 4)),
            replication_factor=replication_factor,
            min_insync_replicas=min_insync,
            is_synced=rng.random() < 0.2,
            may_elect_uncleanly=rng.random() < 0.1,
            retention_bytes=200_000 if rng.random() < 0.1 else None,
            directories=tuple(rng.choice((1, 2)) for _ in range(3)),
            lag_ms=None if has_default_times else rng.choice(LAG_MS),
            lease_ms=DEFAULT_LEASE_MS if has_default_times else rng.choice(LEASE_MS),
            producers=(rng.choice(ALL_ACKS[:2]), *(rng.choice(ALL_ACKS) for _ in range(rng.choice((0, 1, 2))))),
            readers=rng.choice((1, 1, 2)),
            interval_ms=rng.choice((50.0, 100.0, 300.0)),
            safety_s=60.0 if has_default_times else rng.choice((8.0, 12.0, 20.0)) + 6.0 * told,
            faults=rng.choice((0, 1, 3)) if told else rng.choice((2, 5, 8)),
            stories=tuple(rng.choice(STORIES_OFTEN) for _ in range(told)),
            keeps_to_loss_model=rng.random() < 0.85,
        )
