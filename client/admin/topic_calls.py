"""The calls of Admin about topics and their partitions.

A controller answers before new partitions have leaders, and a broker may not have heard of them when the controller
has. `create_topics` and `create_partitions` wait for both, for what follows is usually a first record.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from odradek.client.admin.base import AdminBase, items_of, keys_of, only
from odradek.client.admin.calls import ControllerCall, Deadline
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.topics import (
    BROKERS_DEFAULT,
    DEFAULTS_SINCE,
    IDS_SINCE,
    CreatedTopic,
    NewTopic,
    TopicDescription,
    TopicListing,
    create_partitions_request,
    create_topics_request,
    created_partitions,
    created_topics,
    delete_topics_request,
    deleted_topics,
    describe_partitions_request,
    described_partitions,
    described_topics,
    listed_topics,
    topic_id_from_text,
)
from odradek.client.arguments import require_all, require_kind, require_topic, require_topics
from odradek.client.cluster.cluster import CONTROLLER
from odradek.client.errors.client_errors import ClientError, TopicExists, UnknownTopic, UnsupportedVersion, broker_error
from odradek.client.network.backoff import Backoff
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

__all__ = ["TopicCalls"]

LEADER_WAIT_MS: Final = 20.0
"""Between the first two looks for the leaders of a new topic; an election takes a few of them."""


class TopicCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def list_topics(
        self, *, include_internal: bool = False, timeout_ms: float | None = None
    ) -> list[TopicListing]:
        """All topics that the principal may describe, by name."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        response = await self._calls.ask_until(request, self._deadline(timeout_ms))
        return [topic for topic in listed_topics(response) if include_internal or not topic.is_internal]

    async def describe_topics(
        self, names: Iterable[str], *, eligible_leaders: bool = False, timeout_ms: float | None = None
    ) -> dict[str, TopicDescription]:
        """Topics with their partitions, by name. UnknownTopic for one that is not there.

        `eligible_leaders`: with those that may lead without being in sync, where the broker tells (KIP-966).
        """
        deadline = self._deadline(timeout_ms)
        wanted = await items_of("names", names, "topics' names")
        require_topics("names", wanted)
        if eligible_leaders:
            with suppress(UnsupportedVersion):  # by an older broker: what Metadata has is all that it can tell
                return await self._calls.complete(
                    "DescribeTopicPartitions", wanted, lambda some: self._describe_pages(some, deadline), deadline
                )
        return await self._calls.complete("Metadata", wanted, lambda some: self._describe(some, deadline), deadline)

    async def describe_topic(self, name: str, *, timeout_ms: float | None = None) -> TopicDescription:
        """One topic. Raises UnknownTopic."""
        require_topic("name", name)
        return await only(name, self.describe_topics([name], timeout_ms=timeout_ms))

    async def _describe(
        self, names: Collection[str], deadline: Deadline
    ) -> Mapping[str, TopicDescription | ClientError]:
        topics = [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return described_topics(await self._calls.ask(request, deadline))

    async def _describe_pages(
        self, names: Collection[str], deadline: Deadline
    ) -> Mapping[str, TopicDescription | ClientError]:
        """One broker after another may answer the pages: what they know may differ for a moment, as it may anyway."""
        pages: list[DescribeTopicPartitionsResponse] = []
        cursor: Cursor | None = None
        while True:
            page = await self._calls.ask(describe_partitions_request(names, cursor), deadline)
            pages.append(page)
            if page.next_cursor is None or page.next_cursor == cursor:
                return described_partitions(pages)
            cursor = page.next_cursor

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        wait_for_leaders: bool = True,
        timeout_ms: float | None = None,
    ) -> dict[str, CreatedTopic]:
        """Creates topics, and waits until each partition has a leader: Kafka itself answers before that.

        A topic that the principal may not describe is not waited for. Raises ClientError for numbers that Kafka's
        protocol cannot hold.

        `validate_only`: nothing is created, and the errors are those that there would be. TopicExists where a topic
        is there already; after a lost answer, by which it may be this call's own, the hint says so.
        """
        deadline = self._deadline(timeout_ms)
        given = await items_of("topics", topics, "NewTopic objects")
        for each in given:
            _check_new_topic(each)
        wanted = {topic.name: topic for topic in given}
        needs_defaults = any(each.needs_defaults for each in wanted.values())
        controller = ControllerCall(self._calls, deadline, DEFAULTS_SINCE if needs_defaults else 0)

        async def attempt(names: list[str]) -> Mapping[str, CreatedTopic | ClientError]:
            request = create_topics_request(
                [wanted[name] for name in names], self._timeout_ms(deadline), validate_only=validate_only
            )
            outcomes = created_topics(await controller.ask(request))
            for outcome in outcomes.values():
                if controller.answer_was_lost and isinstance(outcome, TopicExists):
                    outcome.hint = "The answer to an earlier attempt was lost: this call may have created it itself."
            return outcomes

        created = await self._calls.complete("CreateTopics", wanted, attempt, deadline)
        if wait_for_leaders and not validate_only:
            counts = {name: max(1, topic.partitions) for name, topic in created.items()}
            await self._wait_for_leaders("CreateTopics", counts, created, deadline)
        return created

    async def create_topic(
        self,
        name: str,
        partitions: int = BROKERS_DEFAULT,
        replication_factor: int = BROKERS_DEFAULT,
        configs: Mapping[str, str | None] | None = None,
        *,
        assignments: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
        wait_for_leaders: bool = True,
        timeout_ms: float | None = None,
    ) -> CreatedTopic:
        """Creates one topic; see `create_topics`. Raises TopicExists, BrokerError and other ClientErrors."""
        topic = NewTopic(name, partitions, replication_factor, configs or {}, assignments)
        creating = self.create_topics(
            [topic], validate_only=validate_only, wait_for_leaders=wait_for_leaders, timeout_ms=timeout_ms
        )
        return await only(name, creating)

    async def _wait_for_leaders(
        self, what: str, counts: Mapping[str, int], results: Mapping[str, object], deadline: Deadline
    ) -> None:
        """Until each topic is known to have so many partitions, and all have leaders, or cannot be observed.

        Raises ItemsFailed.
        """
        backoff = Backoff(LEADER_WAIT_MS, self.config.retry_backoff_max_ms, self._environment.random)
        waiting = list(counts)
        looks = 0
        while waiting:
            outcomes = await self._seen(waiting, deadline)
            waiting = [name for name in waiting if not _has_ended(outcomes.get(name), counts[name])]
            left_ms = deadline.at_ms - LEADER_WAIT_MS - self._environment.monotonic_ms()  # with time for a last look
            if waiting and left_ms <= 0:
                failed = {name: _leaderless(what, name) for name in waiting}
                others = {name: result for name, result in results.items() if name not in failed}
                raise ItemsFailed(what, failed, others)
            if waiting:
                await self._environment.sleep(min(backoff.after_ms(looks), left_ms))
                looks += 1

    async def _seen(self, names: Collection[str], deadline: Deadline) -> Mapping[str, TopicDescription | ClientError]:
        """What a broker knows of topics that exist; nothing, if none can be asked at the moment."""
        try:
            return await self._describe(names, deadline)
        except ClientError as error:
            if not error.retriable:
                raise
            return {}

    async def delete_topics(
        self, names: Iterable[str] = (), *, topic_ids: Iterable[str] = (), timeout_ms: float | None = None
    ) -> None:
        """Deletes topics, by name or by id (from Kafka 2.8 on). UnknownTopic for one that is not there.

        A topic that is gone after a lost answer counts as deleted. Brokers may describe it for a moment longer. Raises
        ClientError for a text that is no id, before anything is deleted.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await items_of("names", names, "topics' names")
        require_topics("names", wanted)
        ids = await items_of("topic_ids", topic_ids, "topic ids")
        require_all("topic_ids", ids, str, "topic ids (str)")
        by_id = {topic_id: topic_id_from_text(topic_id) for topic_id in ids}
        controller = ControllerCall(self._calls, deadline, IDS_SINCE if by_id else 0)

        async def attempt(keys: list[str]) -> Mapping[str, ClientError | None]:
            request = delete_topics_request(
                [key for key in keys if key not in by_id],
                [by_id[key] for key in keys if key in by_id],
                self._timeout_ms(deadline),
            )
            outcomes = deleted_topics(await controller.ask(request))
            if controller.answer_was_lost:
                return {key: None if isinstance(each, UnknownTopic) else each for key, each in outcomes.items()}
            return outcomes

        await self._calls.complete("DeleteTopics", [*wanted, *by_id], attempt, deadline)

    async def delete_topic(self, name: str, *, timeout_ms: float | None = None) -> None:
        """Deletes one topic. Raises UnknownTopic, AuthorizationError and others."""
        require_topic("name", name)
        try:
            await self.delete_topics([name], timeout_ms=timeout_ms)
        except ItemsFailed as failed:
            raise failed.errors[name] from None

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        wait_for_leaders: bool = True,
        timeout_ms: float | None = None,
    ) -> None:
        """Adds partitions to topics, and waits until they have leaders, where the principal may describe them.

        `counts` says how many each topic shall have then, more than it has; `assignments`, by topic, the brokers of
        each new partition, the preferred leader first. Raises ClientError for numbers that Kafka's protocol cannot
        hold.
        """
        deadline = self._deadline(timeout_ms)
        require_topics("counts", keys_of("counts", counts, "topics' names"))
        require_all("counts", counts.values(), int, "whole numbers by topic")

        async def attempt(names: list[str]) -> Mapping[str, ClientError | None]:
            request = create_partitions_request(
                {name: counts[name] for name in names},
                assignments or {},
                self._timeout_ms(deadline),
                validate_only=validate_only,
            )
            return created_partitions(await self._calls.ask(request, deadline, node=CONTROLLER))

        done = await self._calls.complete("CreatePartitions", counts, attempt, deadline)
        if wait_for_leaders and not validate_only:
            await self._wait_for_leaders("CreatePartitions", counts, done, deadline)


def _check_new_topic(topic: object) -> None:
    """Raises TypeError."""
    require_all("topics", [topic], NewTopic, "NewTopic objects")
    assert isinstance(topic, NewTopic)
    require_topic("the name of a NewTopic", topic.name)
    require_kind("the partitions of a NewTopic", topic.partitions, int, "a whole number")
    require_kind("the replication_factor of a NewTopic", topic.replication_factor, int, "a whole number")
    require_kind("the configs of a NewTopic", topic.configs, Mapping, "a mapping of texts")


def _has_ended(topic: TopicDescription | ClientError | None, partition_count: int) -> bool:
    """Whether there is nothing to wait for any more: it has its leaders, or the principal may not see them."""
    if isinstance(topic, ClientError):
        return not topic.retriable
    return topic is not None and topic.has_leaders and len(topic.partitions) >= partition_count


def _leaderless(what: str, name: str) -> ClientError:
    waiting = f"waiting for the leaders of {name}, after {what} was done in time,"
    return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "", waiting)
