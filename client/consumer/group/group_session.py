"""`GroupSession`: a consumer's place in its group. It runs the pure membership, and commits.

    session.subscribe(Subscription.to_names(["orders"]))       joins the group
    session.polled()                                           the program asks for records
    with session.polling(): ...                                it waits for some
    await session.commit(offsets, deadline_ms)
    await session.close(deadline_ms)                           commits and leaves

It is a callback of the event loop, as the fetch loop is: `_advance` is called by a timer at the membership's next
deadline, at news of the cluster, and after every answer. So heartbeats go on while the program is slow. That the
program asks for records is also seen by how far it has walked those that it was given. Without a subscription, the
consumer assigns partitions itself, and commits from outside of the group.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from typing import Final

from odradek.client.cluster.cluster import Cluster
from odradek.client.cluster.waiters import Waiters
from odradek.client.consumer.assignment.assignor import NO_GENERATION, TopicLayout
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.errors import GroupFailed
from odradek.client.consumer.group.commits import Commits
from odradek.client.consumer.group.coordinator import Coordinator
from odradek.client.consumer.group.offsets import CommitFailed, CommitOutcome, OffsetAndMetadata
from odradek.client.consumer.group.partition_changes import Callbacks, PartitionChanges
from odradek.client.consumer.group.placing import Placing
from odradek.client.consumer.group.subscription import Subscription
from odradek.client.consumer.group.topic_watch import TopicWatch
from odradek.client.consumer.group.transaction_offsets import offsets_to_commit
from odradek.client.consumer.membership.actions import Action, Assigned, Failed, Lost, Noted, Revoke, Send
from odradek.client.consumer.membership.classic import ClassicMembership
from odradek.client.consumer.membership.consumer_membership import ConsumerMembership
from odradek.client.consumer.membership.membership import Identity, Membership
from odradek.client.errors.client_errors import ClientError
from odradek.client.fetching.fetch_settings import Start
from odradek.client.metrics.metrics import Metrics
from odradek.client.network.backoff import Backoff
from odradek.client.offset_commit import OffsetsToCommit
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

__all__ = ["GroupSession"]

logger = logging.getLogger(__name__)

NO_STARTS: Final[Mapping[TopicPartition, Start]] = {}
FROM_OUTSIDE: Final = object()
"""The token of every partition where partitions are assigned by hand."""
LOOK_EVERY_MS: Final = 1_000.0
"""So often the timer rings at least: to see whether the program has gone on, and to keep topics in use."""
POLL_EVERY_MS: Final = 50.0
"""The membership is told that often at most, but for a program that has to wait: an away member comes back by that."""
CLOSING_SHARE: Final = 0.7
"""Of the time for closing, so much is for callbacks and commits; the rest is for leaving the group."""
TIMER_SLACK_MS: Final = 0.001
"""Rounding may make `at_ms / 1000` seconds less than `at_ms` milliseconds."""


class GroupSession:
    """See the module. It is a `Committer`."""

    def __init__(
        self,
        config: ConsumerConfig,
        environment: Environment,
        cluster: Cluster,
        tasks: Tasks,
        core: ConsumerCore,
        metrics: Metrics,
    ) -> None:
        assert config.group_id is not None
        self._config = config
        self._name = config.client_id
        self._group_id = config.group_id
        self._environment = environment
        self._now_ms = environment.monotonic_ms
        self._tasks = tasks
        self._core = core
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, environment.random)
        self._coordinator = Coordinator(config.group_id, config, environment, cluster, tasks, metrics)
        self._commits = Commits(self._coordinator, self, environment, self._backoff, config.request_timeout_ms)
        self._placing = Placing(self._name, core, self._commits, environment, config.auto_offset_reset)
        self._changes = PartitionChanges(
            self._name,
            core,
            Callbacks(config.on_assigned, config.on_revoked, config.on_lost),
            environment,
            tasks,
            place=self.place,
            commit=self._commit_done,
            given_up=self._given_up,
            failed=self._callback_failed,
        )
        self._watch = TopicWatch(
            config,
            cluster,
            environment,
            tasks,
            on_topics=self._topics_changed,
            on_layouts=self._layouts_changed,
            on_error=self._tell,
        )
        self._membership: Membership | None = None
        self._waiting_count = 0
        self._progress: object = None
        self._polled_ms = float("-inf")
        self._failure: BaseException | None = None
        """What has ended it."""
        self._errors: list[BaseException] = []
        """What the program is told once, when it asks next."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._on_taken_away: Callable[[], None] | None = None
        """Of a consumer that is bound to transactions, which commit for it. Else None."""
        self._news = Waiters(environment)
        self._unsubscribe = cluster.subscribe(self._advance)
        self._unwatch = environment.watch_stalls(self._stood_still)
        self._committing: asyncio.Task[None] | None = None
        if config.enable_auto_commit:
            self._committing = tasks.start(self._commit_regularly(), f"{self._name}: commit regularly")

    # --------------------------------------------------------------------------------------------------- what is read
    @property
    def is_member(self) -> bool:
        return self._membership is not None and (self.is_subscribed or bool(self._membership.owned))

    @property
    def is_subscribed(self) -> bool:
        return not self._watch.subscription.is_empty

    @property
    def has_epoch(self) -> bool:
        return self.is_member and self._config.group_protocol == "consumer"

    @property
    def identity(self) -> Identity:
        if self._membership is None or not self.is_member:
            return Identity(self._group_id, "", NO_GENERATION, None)
        return self._membership.identity

    @property
    def settled(self) -> Identity:
        """As `Membership.settled`."""
        return self.identity if self._membership is None or not self.is_member else self._membership.settled

    @property
    def topics(self) -> frozenset[str]:
        return self._watch.topics

    def subscribe(self, subscription: Subscription, callbacks: Callbacks | None = None) -> None:
        """These topics from now on, and none with an empty one: then the member leaves the group."""
        if callbacks is not None:
            self._changes.callbacks = callbacks
        if self._membership is None and not subscription.is_empty:
            self._membership = self._made()
        self._changes.waits_for_work = not subscription.is_empty
        self._changes.wake()
        self._watch.subscribe(subscription)
        self._advance()

    def place(self, partitions: Collection[TopicPartition], starts: Mapping[TopicPartition, Start] = NO_STARTS) -> None:
        """Has it looked up where unplaced partitions begin. `starts`: where nothing is committed, if that is known."""
        if partitions:
            self._tasks.start(self._place(partitions, starts), f"{self._name}: find committed offsets")

    def _made(self) -> Membership:
        settings = self._config.membership_settings()
        if self._config.group_protocol == "classic":
            return ClassicMembership(settings, self._config.made_assignors(), self._backoff)
        return ConsumerMembership(settings, _uuid_text(self._environment.random_uuid()), self._backoff)

    async def _place(self, partitions: Collection[TopicPartition], starts: Mapping[TopicPartition, Start]) -> None:
        try:
            await self._placing.place(partitions, starts)
        except ClientError as error:
            if not self._is_closed:
                self._tell(error)

    # ------------------------------------------------------------------------------------------------- the program is
    def polled(self) -> None:
        """The program asks for records: so it may be done with others, and the member is alive."""
        self._changes.wake()
        if self._now_ms() - self._polled_ms >= POLL_EVERY_MS:
            self._poll()

    def _poll(self) -> None:
        if self._membership is not None:
            self._polled_ms = self._now_ms()
            self._progress = self._core.progress
            self._membership.polled(self._polled_ms)
            self._pump()

    @contextmanager
    def polling(self) -> Generator[None]:
        """The program waits for records."""
        self._waiting_count += 1
        self._changes.wake()
        self._poll()
        try:
            yield
        finally:
            self._waiting_count -= 1

    def done_more(self) -> None:
        """The program is done with more."""
        self._changes.wake()

    def check(self) -> None:
        """Raises what the program has to be told: once, or each time if nothing will come any more."""
        if self._errors:
            raise self._errors.pop(0)
        if isinstance(self._failure, ClientError):
            raise self._failure.fresh()
        if self._failure is not None:
            raise RuntimeError(f"the membership has failed: {self._failure!r}") from self._failure

    def runs_in_callback(self) -> bool:
        return self._changes.runs_in_callback()

    # -------------------------------------------------------------------------------------------------------- commits
    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline_ms: float
    ) -> dict[TopicPartition, CommitOutcome]:
        """See `Commits.commit`. What is committed is done."""
        outcomes = await self._commits.commit(offsets, deadline_ms)
        for partition, outcome in outcomes.items():
            if outcome is CommitOutcome.COMMITTED:
                self._core.done.done_below(partition, offsets[partition].offset)
        self._changes.wake()
        return outcomes

    async def committed(
        self, partitions: Collection[TopicPartition], deadline_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Raises ClientError."""
        return await self._commits.fetch(partitions, deadline_ms)

    def committable(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is done and has not been committed."""
        return {
            partition: OffsetAndMetadata(each.offset, "", each.leader_epoch)
            for partition, each in self._core.committable().items()
            if each.offset != self._commits.committed.get(partition)
        }

    def committed_elsewhere(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A transaction has committed these. What is committed is done."""
        for partition, offset in offsets.items():
            if self._core.token(partition) is not None:
                self._commits.committed[partition] = offset
                self._core.done.done_below(partition, offset)
        self._changes.wake()

    def is_behind(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the group had come further than this when the partition was assigned, and nothing before it was
        handed out since, as where the log was truncated: a commit would take the group back."""
        lowest = self._core.done.lowest(partition)
        return offset < self._placing.begun.get(partition, -1) and (lowest is None or offset <= lowest)

    def sought(self, partition: TopicPartition) -> None:
        """The program chose itself where to go on."""
        self._placing.begun.pop(partition, None)

    # --------------------------------------------------------------------------------------------------- transactions
    def bind(self, on_taken_away: Callable[[], None]) -> None:
        """It commits nothing from now on: transactions do. `on_taken_away` is called when partitions were."""
        self._on_taken_away = on_taken_away

    def offsets_to_commit(self, wanted: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> OffsetsToCommit:
        """By a transaction. See `transaction_offsets`."""
        return offsets_to_commit(
            self._core,
            self.identity,
            self._commits.committed,
            wanted,
            self.is_behind,
            is_member=self.is_member,
        )

    @property
    def commits_by_itself(self) -> bool:
        return self._config.enable_auto_commit and self._on_taken_away is None

    async def own_commits_ended(self, timeout_ms: float) -> bool:
        """Whether no commit is under way any more; waits for that until the time is over."""
        return await self._commits.ended(self._now_ms() + timeout_ms)

    def go_back(self) -> None:
        """Has everything read again from what the group has committed."""
        if self._is_closed:
            return
        starts = self._core.unplace()
        self.place(self._core.partitions, starts)
        self._changes.wake()

    async def _commit_done(self, partitions: Collection[TopicPartition], deadline_ms: float) -> None:
        """Before partitions are given up."""
        if self.commits_by_itself:
            offsets = {each: offset for each, offset in self.committable().items() if each in partitions}
            await self._commit_quietly(offsets, deadline_ms)

    async def _commit_regularly(self) -> None:
        interval_ms = self._config.auto_commit_interval_ms
        while True:
            await self._environment.sleep(interval_ms)
            if not self.commits_by_itself:
                return
            deadline_ms = self._now_ms() + self._config.request_timeout_ms
            await self._commit_quietly(self.committable(), deadline_ms, tries_max=2)

    async def _commit_quietly(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline_ms: float, tries_max: int = 2**31
    ) -> None:
        if not offsets:
            return
        try:
            await self._commits.commit(offsets, deadline_ms, tries_max)
        except CommitFailed as error:
            logger.warning("%s: %s", self._name, error)

    # ---------------------------------------------------------------------------------------------------- a committer
    def token(self, partition: TopicPartition) -> object | None:
        return self._core.token(partition) if self.is_member else FROM_OUTSIDE

    def refused(self, identity: Identity, code: ErrorCode) -> None:
        if self._membership is not None:
            self._membership.commit_refused(identity, code, self._now_ms())
            self._pump()

    def coordinator_lost(self, node_id: int) -> None:
        if self._membership is not None:
            self._membership.coordinator_lost(node_id, self._now_ms())
            self._pump()

    # ---------------------------------------------------------------------------------------------------- the machine
    def _advance(self) -> None:
        try:
            self._advance_now()
        except Exception as error:  # noqa: BLE001
            # Nobody awaits a callback: without this, a mistake here would be a member that is missed by its group.
            self._fail(error)

    def _advance_now(self) -> None:
        membership = self._membership
        if membership is None or self._is_closed:
            return
        now_ms = self._now_ms()
        progress = self._core.progress
        if self._waiting_count or progress != self._progress:
            self._progress = progress
            membership.polled(now_ms)
        self._watch.look(membership.watched_topics, now_ms)
        membership.advance(now_ms)
        self._pump()

    def _pump(self) -> None:
        """Does what the membership says, and sets the timer."""
        membership = self._membership
        if membership is None or self._is_closed:
            return
        while actions := membership.take_actions():
            for action in actions:
                self._do(membership, action)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._news.wake()
        if not membership.has_ended:
            now_ms = self._now_ms()
            at_ms = min(max(membership.next_deadline_ms, now_ms + 1.0), now_ms + LOOK_EVERY_MS)
            self._timer = self._environment.loop.call_at((at_ms + TIMER_SLACK_MS) / 1000.0, self._advance)

    def _do(self, membership: Membership, action: Action) -> None:
        match action:
            case Send():
                name = f"{self._name}: {type(action.request).__name__} of group {self._group_id}"
                self._tasks.start(self._send(membership, action), name)
            case Assigned():
                logger.info(
                    "%s: group %s, generation %d: %s added",
                    self._name,
                    self._group_id,
                    action.generation,
                    _listed(action.partitions),
                )
                self._changes.add(action)
            case Revoke() | Lost():
                what = "lost" if isinstance(action, Lost) else "given up"
                logger.info("%s: %s %s: %s", self._name, _listed(action.partitions), what, action.reason)
                if isinstance(action, Lost):
                    self._forget(action.partitions)
                self._changes.add(action)
                self._tell_of_taken_away()
            case Noted():
                logger.warning("%s: %s", self._name, action.text)
            case Failed():
                self._fail(GroupFailed(action.code, action.text))

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._commits.committed.pop(partition, None)
            self._placing.begun.pop(partition, None)

    async def _send(self, membership: Membership, action: Send) -> None:
        answer = await self._coordinator.answer(action.request, action.node_id)
        membership.answered(action.request, answer, self._now_ms())
        self._advance()

    def _tell_of_taken_away(self) -> None:
        if self._on_taken_away is not None:
            self._on_taken_away()

    def _given_up(self, partitions: Collection[TopicPartition]) -> None:
        self._tell_of_taken_away()
        self._forget(partitions)
        if self._membership is not None:
            self._membership.revoked(partitions, self._now_ms())
            self._pump()

    def _topics_changed(self, topics: frozenset[str]) -> None:
        if self._membership is not None:
            self._membership.subscribe(topics, self._now_ms())
            self._advance()

    def _layouts_changed(self, layouts: Mapping[str, TopicLayout]) -> None:
        if self._membership is not None:
            self._membership.topics_changed(layouts, self._now_ms())
            self._pump()

    # --------------------------------------------------------------------------------------------------- its failures
    def _tell(self, error: BaseException) -> None:
        self._errors.append(error)
        self._core.wake()

    def _fail(self, error: BaseException) -> None:
        logger.error("%s: %s", self._name, error)
        self._failure = self._failure or error
        self._core.wake()

    def _stood_still(self, stood_s: float, place: str) -> None:
        logger.warning(
            "%s: the event loop stood still for %.1f s, and no heartbeat went out; it was at %s. Run what blocks in a "
            "thread (asyncio.to_thread)",
            self._name,
            stood_s,
            place,
        )

    def _callback_failed(self, error: BaseException) -> None:
        logger.error("%s: a rebalance callback failed", self._name, exc_info=error)
        self._tell(error)

    # -------------------------------------------------------------------------------------------------------- its end
    async def close(self, deadline_ms: float) -> None:
        """Commits what is done, leaves the group, and ends, at the deadline at the latest."""
        if self._is_closed:
            return
        if self._committing is not None:
            self._committing.cancel()
        self._watch.close()
        now_ms = self._now_ms()
        self._changes.close(now_ms + (deadline_ms - now_ms) * CLOSING_SHARE)
        membership = self._membership
        if membership is None:
            if self.commits_by_itself:
                await self._commit_quietly(self.committable(), deadline_ms)
        else:
            membership.leave(self._now_ms())
            self._pump()
            while not membership.has_ended and self._now_ms() < deadline_ms:
                await self._news.wait(deadline_ms)
        self.end()

    def end(self) -> None:
        """At once, whatever is under way."""
        self._is_closed = True
        self._unsubscribe()
        self._unwatch()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._coordinator.close()


def _listed(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "nothing"


def _uuid_text(uuid: bytes) -> str:
    digits = uuid.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
