"""The controller: the broker that decides for the cluster, and how it comes to be that.

**Elected** is who puts `/controller` under its lease while nobody has it. The revision of that key guards everything
that it writes: a controller that was replaced, and does not know it yet, changes nothing.

**It decides** by comparing partitions with who is there (decisions.py), at its election all of them, then those that a
change concerns. Writes go one after the other, many partitions in a commit (cluster/partition_writes.py), each at the
revision on which the decision rests. One that conflicts, and one without an answer, is decided again once the image has
caught up.

**Who is dead** is for fencing.py to say; a broker that is fenced is one whose `/brokers/<id>` is gone.

A broker alone is its own controller, and decides before it opens its logs, so that it never leads at an old epoch.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from odradek.broker.cluster.features import to_finalize
from odradek.broker.cluster.image import NO_CONTROLLER, ClusterImage, Delta
from odradek.broker.cluster.keys import (
    CONTROLLER_KEY,
    FEATURES_KEY,
    NO_LEADER,
    MalformedMetadata,
    broker_key,
    encode_controller,
    encode_features,
    node_key,
    partition_key,
    stopping_key,
)
from odradek.broker.cluster.partition_changes import is_last, without
from odradek.broker.cluster.partition_writes import PartitionWrite, commits, with_epochs
from odradek.broker.cluster.store import CHUNK_SIZE, Conflict, LeaseLost, StoreClosed, Txn
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.cluster.topics import sweep_leftovers
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.controller.decisions import decided, preferred
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.registration import Registration
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import breathe

logger = logging.getLogger(__name__)

LOOKED_AT_TOGETHER = 1000
"""Partitions that are looked at before the loop gets a turn."""
WRITTEN_TOGETHER = 10_000
"""Changes that are found before any is written: elections among them come first, and commits are full."""
NAMED_MAX = 5
"""Partitions that an error names."""
RETRY_MS = 100.0
RETRY_MS_MAX = 1000.0
NOTHING_ELSE: Mapping[str, int] = {}


class Controller:
    """One broker as the controller that it is or may become."""

    def __init__(
        self, metadata: ImageFollower, config: BrokerConfig, registration: Registration, environment: Environment
    ) -> None:
        self._metadata = metadata
        self._config = config
        self._registration = registration
        self._environment = environment
        self._revision = 0  # of /controller, as we wrote it
        self._due: dict[str, None] = {}  # names of topics to look at
        self._is_swept = True
        self._changes = Signal()
        self.may_lead = True
        """False once the broker stops: somebody else should."""
        self._aside_until_ms = 0.0
        """It has given way, and stands for no election before."""
        self.on_elected: Callable[[], None] = _nothing
        """Called when this broker has become the controller."""
        metadata.subscribe(self._follow)

    # -- who ----------------------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        return self._revision != 0

    @property
    def guard(self) -> Mapping[str, int]:
        """What every write of the controller expects. Raises KafkaError NOT_CONTROLLER."""
        if not self._revision:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"broker {self._registration.node_id} is not the controller; refresh metadata"
            )
        return {CONTROLLER_KEY: self._revision}

    def require_active(self) -> None:
        """Raises KafkaError NOT_CONTROLLER."""
        _ = self.guard

    async def run(self) -> None:
        """Decides whenever there is something to decide, for as long as the broker runs."""
        delay_ms = RETRY_MS
        try:
            while True:
                seen = self._changes.count
                try:
                    await self.work()
                    await self._finalize()
                    await self._sweep()
                    delay_ms = RETRY_MS
                except (OSError, Conflict, LeaseLost, KafkaError) as error:
                    logger.log(logging.WARNING if isinstance(error, OSError) else logging.INFO, "controller: %s", error)
                    if isinstance(error, OSError):
                        await self._environment.sleep(delay_ms)
                        delay_ms = min(2 * delay_ms, RETRY_MS_MAX)
                    await self._catch_up()
                    continue
                with suppress(TimeoutError):
                    await self._changes.after(seen, self._aside_ms())
        except StoreClosed:
            return

    def _aside_ms(self) -> float | None:
        """For how long it stands for no election yet; None if it does."""
        left_ms = self._aside_until_ms - self._environment.monotonic_ms()
        return left_ms if left_ms > 0 else None

    async def resign(self, pause_ms: float, why: str) -> None:
        """Lets somebody else be elected, and stands for no election itself for a while. Raises Conflict, OSError,
        KafkaError NOT_CONTROLLER."""
        guard = self.guard
        self._aside_until_ms = self._environment.monotonic_ms() + pause_ms
        revision = await self._metadata.store.commit(Txn(expect=guard, delete=(CONTROLLER_KEY,)))
        logger.warning("broker %d gives way to another controller: %s", self._registration.node_id, why)
        await self._metadata.applied(revision)

    async def rebalance(self) -> None:
        """Gives leadership back to preferred leaders now and then (`auto.leader.rebalance.enable`)."""
        while True:
            await self._environment.sleep(self._config.leader_imbalance_check_interval_seconds * 1000.0)
            if self.is_active and self._config.auto_leader_rebalance_enable:
                try:
                    await self.prefer(self._metadata.image.topics.values())
                except (Conflict, OSError, KafkaError) as error:
                    logger.info("preferred leaders are looked for again later: %s", error)

    async def work(self) -> None:
        """Becomes the controller if nobody is, and decides what is due if it is.

        Raises Conflict, LeaseLost, OSError, and KafkaError NOT_CONTROLLER when another one is elected meanwhile; then
        it is to be called again, after `_catch_up`.
        """
        image, node_id = self._metadata.image, self._registration.node_id
        may_stand = self.may_lead and self._aside_ms() is None
        if not self._revision and may_stand and self._registration.lease is not None:
            if image.controller_id == NO_CONTROLLER:
                await self._campaign(0)
            elif image.controller_id == node_id:
                # By a commit without an answer, or of a former registration. Written anew it is ours for certain.
                await self._campaign(image.controller_revision)
        if self._revision:
            await self._decide()

    async def _campaign(self, revision: int) -> None:
        """Writes `/controller`, which is at this revision, 0 for absent. A conflict means that our image is behind, and
        comes again when that has moved."""
        registration = self._registration
        node_id = registration.node_id
        with suppress(Conflict):
            written = await self._metadata.store.commit(
                Txn(
                    expect={CONTROLLER_KEY: revision, broker_key(node_id): registration.epoch},
                    put={CONTROLLER_KEY: encode_controller(node_id)},
                    lease=registration.lease,
                )
            )
            await self._take_over(written)

    async def _take_over(self, revision: int) -> None:
        await self._metadata.applied(revision)
        image = self._metadata.image
        if (image.controller_id, image.controller_revision) == (self._registration.node_id, revision):
            self._revision = revision
            self._due = dict.fromkeys(image.topics)
            self._is_swept = False
            logger.info("broker %d is the controller now (revision %d)", self._registration.node_id, revision)
            self.on_elected()

    async def _catch_up(self) -> None:
        """Waits until the image has moved: it is behind what a commit has met. For a moment at most, for a commit that
        is unknown may have changed nothing."""
        with suppress(TimeoutError):
            await self._metadata.revision.reach(self._metadata.image.revision + 1, RETRY_MS)

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if self._revision and image.controller_revision != self._revision:
            logger.info("broker %d is not the controller any more", self._registration.node_id)
            self._revision = 0
            self._due = {}
        if self._revision:
            self._due |= dict.fromkeys(topic.name for topic in (*delta.created, *delta.changed))
            if delta.brokers or delta.broker_configs:  # each topic may inherit what has changed
                self._due |= dict.fromkeys(image.topics)
        self.wake()

    def wake(self) -> None:
        """Something may have to be decided."""
        self._changes.give()

    # -- what ---------------------------------------------------------------------------------------------------

    async def _decide(self) -> None:
        """Everything that is due, written."""
        looked_at = 0
        writes: list[PartitionWrite] = []
        due, self._due = self._due, {}
        try:
            for name in due:
                if (topic := self._metadata.image.topics.get(name)) is None:
                    continue
                writes += self._decisions(topic)
                looked_at += len(topic.partitions)
                if looked_at >= LOOKED_AT_TOGETHER:
                    looked_at = 0
                    if len(writes) >= WRITTEN_TOGETHER:
                        await self._write(writes)
                        writes = []
                    await breathe()
            await self._write(writes)
        except BaseException:
            self._due = due | self._due  # all of it again: what was written is found settled
            raise

    async def _finalize(self) -> None:
        """What all registered brokers can do by now is relied on from here on. Raises as `_write`."""
        image = self._metadata.image
        levels = to_finalize(image.registered, image.nodes, image.features, image.held_features)
        if not self._revision or levels == image.features:
            return
        nodes = {node_key(broker_id): image.nodes[broker_id].revision for broker_id in image.registered}
        expect = {**self.guard, FEATURES_KEY: image.features_revision, **dict(islice(nodes.items(), CHUNK_SIZE))}
        txn = Txn(expect=expect, put={FEATURES_KEY: encode_features(levels, image.held_features)})
        await self._metadata.applied(await self._metadata.store.commit(txn))
        level = logging.INFO if len(image.registered) > 1 else logging.DEBUG
        logger.log(level, "all brokers can do what follows, and rely on it from now on: %s", levels)

    def _decisions(self, topic: TopicImage) -> Iterator[PartitionWrite]:
        image = self._metadata.image
        config = self._config.topic(topic.configs)
        min_insync, unclean = config.min_insync_replicas, config.unclean_leader_election_enable
        for index, before in enumerate(topic.partitions):
            after = decided(before, image, min_insync, unclean=unclean)
            if after is not before:
                yield PartitionWrite(partition_key(topic.name, index), before, after)

    async def _write(self, writes: Sequence[PartitionWrite], expect: Mapping[str, int] = NOTHING_ELSE) -> int:
        """Returns the revision at which all of it is stored; `expect`: what it relies on, too.

        Raises Conflict, OSError, and KafkaError NOT_CONTROLLER.
        """
        metadata = self._metadata
        revision = metadata.image.revision
        by_key = {write.key: write for write in writes}
        for txn in commits(writes, metadata.image, {**self.guard, **expect}):
            for key in txn.put:
                _warn(by_key[key])
            revision = await metadata.store.commit(txn)
            for key in txn.put:
                _log(by_key[key])
            await metadata.applied(revision)
        return revision

    async def _sweep(self) -> None:
        """Removes what unfinished creations and deletions have left, once after each election: those who were at work
        may have died with the last controller. Raises OSError."""
        if not self._revision or self._is_swept:
            return
        try:
            count = await sweep_leftovers(self._metadata.store, self.guard)
        except (Conflict, MalformedMetadata) as error:
            logger.warning("what unfinished creations have left stays until the next election: %s", error)
        else:
            if count:
                logger.info("%d keys of unfinished creations and deletions were removed", count)
        self._is_swept = True

    async def fence(self, broker_id: int, broker_epoch: int, why: str) -> None:
        """Takes the registration of a broker away that is not heard of. Raises Conflict, OSError, KafkaError."""
        has_said_so = broker_id in self._metadata.image.stopping
        revision = await self._metadata.store.commit(
            Txn(
                expect={**self.guard, broker_key(broker_id): broker_epoch},
                delete=(broker_key(broker_id), stopping_key(broker_id)),
            )
        )
        logger.log(
            logging.INFO if has_said_so else logging.WARNING,
            "broker %d with epoch %d %s: %s",
            *(broker_id, broker_epoch, "has stopped and is fenced" if has_said_so else "is fenced", why),
        )
        await self._metadata.applied(revision)

    async def unregister(self, broker_id: int) -> int:
        """Forgets a broker that is not there, and that it was in sync. Raises Conflict, OSError, and KafkaError:
        NOT_CONTROLLER, INVALID_REQUEST where nobody else has all of a partition."""
        image = self._metadata.image
        _require_others(image, broker_id)
        is_gone = {broker_key(broker_id): 0}
        writes: list[PartitionWrite] = []
        for topic in image.topics.values():
            min_insync = self._config.topic(topic.configs).min_insync_replicas
            for index, state in enumerate(topic.partitions):
                after = without(state, broker_id, min_insync, lost_all=True)
                if after is not state:
                    writes.append(
                        PartitionWrite(partition_key(topic.name, index), state, with_epochs(state, after, image))
                    )
        await self._write(writes, is_gone)
        expect = {**self.guard, **is_gone, node_key(broker_id): image.nodes[broker_id].revision}
        return await self._metadata.store.commit(Txn(expect=expect, delete=(node_key(broker_id),)))

    async def change(self, writes: Sequence[PartitionWrite]) -> int:
        """Writes what somebody asked for. Raises KafkaError NOT_CONTROLLER, and what the store raises."""
        return await self._write(writes)

    async def prefer(self, topics: Iterable[TopicImage]) -> None:
        """Gives partitions to the first of their replicas where that is in sync. Raises as `change`."""
        image = self._metadata.image
        found = [
            PartitionWrite(partition_key(topic.name, index), state, after)
            for topic in topics
            for index, state in enumerate(topic.partitions)
            if (after := preferred(state, image)) is not state
        ]
        await self._write(found)


def _nothing() -> None: ...


def _require_others(image: ClusterImage, broker_id: int) -> None:
    """Raises KafkaError INVALID_REQUEST where the broker's replica is the only one that may be elected cleanly: once it
    is forgotten nobody could say any more that what was acknowledged is there, though it may have lost nothing."""
    last = [
        f"{topic.name}-{index}"
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if is_last(state, broker_id)
    ]
    if last:
        names = ", ".join(last[:NAMED_MAX]) + (", …" if len(last) > NAMED_MAX else "")
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"broker {broker_id} is the only one that has all of {len(last)} partition(s): {names}. Start it again; "
            "or, if it is lost, delete their topics, or let other replicas lead with what they have "
            "(`odradek partitions elect --unclean`, after `odradek partitions reassign` where there are none)",
        )


def _warn(write: PartitionWrite) -> None:
    """Before it is written, for the answer may be lost."""
    key, before, after = write
    if after.leader not in (NO_LEADER, *before.isr, *before.elr):
        logger.warning(
            "%s: broker %d is elected at epoch %d although it may lack what was acknowledged: in sync were %s, "
            "eligible %s",
            key,
            after.leader,
            after.leader_epoch,
            list(before.isr),
            list(before.elr),
        )


def _log(write: PartitionWrite) -> None:
    key, before, after = write
    if (before.leader, before.isr) != (after.leader, after.isr):
        logger.info(
            "%s: led by %d at epoch %d, in sync %s; was led by %d, in sync %s",
            key,
            after.leader,
            after.leader_epoch,
            list(after.isr),
            before.leader,
            list(before.isr),
        )
