"""The consumer: reads partitions of any Kafka broker, one record at a time or many, alone or as a member of a group.

    async with Consumer("localhost:9092", group_id="billing", topics=["orders"]) as consumer:
        async for record in consumer: ...                                  # asking for the next one marks this one done
        batch = await consumer.get_batch(max_records=10_000, timeout_ms=500)

Records are fetched ahead, `prefetch_bytes` over all partitions, and decoded in runs; while there are some, `async for`
does not wait and gives the event loop a turn after each run. What the program is done with is what it had when it asked
for more (`async for`, `get_batch`): a `break` or an error does not ask. With `manual_done`, and of what `by_partition`
yields, only `done(record)` counts. A call that is cancelled has taken nothing: the next one gets it.

A consumer belongs to the event loop it was started in: any other use (before start, after close, from another loop,
another thread or a forked child) raises at once.

(Source: KafkaConsumer.java; `get_batch` is like confluent's `consume`, but returns as soon as there is something.)
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Any, Final, cast, overload

from odradek.client.arguments import (
    require_all,
    require_iterable,
    require_kind,
    require_partitions,
    require_timeout,
    require_topic,
)
from odradek.client.configuration.signatures import config_of, configured_by
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.core import RUN_RECORDS
from odradek.client.consumer.group_calls import GroupCalls
from odradek.client.consumer.partition_streams import partition_streams
from odradek.client.consumer.records import ConsumerBatch, ConsumerRecord
from odradek.client.errors.client_errors import RequestTimedOut, WrongUse
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.list_offsets import EARLIEST, LATEST, ListedOffset
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.tasks import breathe

__all__ = ["Consumer"]

logger = logging.getLogger(__name__)

NOWHERE: Final = 0
"""No thread's id."""
PARTITIONS: Final = "an iterable of TopicPartition objects"


class Consumer(GroupCalls):
    """Reads from any Kafka broker. The settings are those of `ConsumerConfig`, by name, or one ready `config`."""

    @overload
    @configured_by(ConsumerConfig)
    def __init__(self, config: ConsumerConfig) -> None: ...
    @overload
    def __init__(self, *, config: ConsumerConfig) -> None: ...
    def __init__(self, *values: Any, **settings: Any) -> None:
        super().__init__(config_of(ConsumerConfig, values, settings))

    # ----------------------------------------------------------------------------------------------- reading
    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """All records to come, until the consumer is closed. One `async for` at a time.

        Raises the ClientError that ends a partition, once, after its records before that; other partitions go on when
        the program asks again. Of what a deserializer refuses, see `skip_bad_records`.
        """
        self._check()
        if self._iteration is None:
            self._iteration = self._each()
        return self._iteration

    async def _each(self) -> AsyncGenerator[ConsumerRecord]:
        core = self._core
        try:
            while True:
                self._settle()
                await breathe()
                if self._state != "open":
                    return
                self._check_reading()
                part = core.take(RUN_RECORDS)
                if part is not None:
                    for record in core.hand_records(part):
                        yield record
                else:
                    await self._more()
        finally:
            self._iteration = None

    async def get_batch(self, max_records: int = 10_000, timeout_ms: float = 500) -> ConsumerBatch:
        """What has come, at most `max_records`; waits for something until `timeout_ms` have passed.

        The batch is empty where nothing came. Raises as `async for`; ConsumerClosed, also when it is closed meanwhile.
        """
        self._check()
        require_kind("max_records", max_records, int, "a whole number")
        if max_records < 1:
            raise ValueError(f"max_records must be 1 or more, not {max_records}")
        require_timeout("timeout_ms", timeout_ms)
        deadline_ms = self._environment.monotonic_ms() + timeout_ms
        core, fetcher = self._core, self._fetcher
        self._settle()
        await breathe()
        while True:
            self._check()
            self._check_reading()
            parts = core.gather(max_records)
            if parts or (self._environment.monotonic_ms() >= deadline_ms and not fetcher.is_packed(None)):
                core.hand_batch(parts)
                return ConsumerBatch(parts)
            await self._more(deadline_ms)

    def by_partition(self) -> AsyncIterator[tuple[TopicPartition, AsyncIterator[ConsumerRecord]]]:
        """Each partition as it is assigned, with an iterator over its records that ends when it is taken away.

        Only `done(record)` counts for what is read like this. Neither `async for` over the consumer nor `get_batch`
        should be used beside it: they take records of all partitions.
        """
        self._check()
        return partition_streams(self._core, self._fetcher, self._is_open, self._wait)

    def done(self, what: ConsumerRecord | ConsumerBatch) -> None:
        """The program is done with a record, or with a batch, in any order: a commit goes up to the first that is not.

        Of a partition that was taken away since, and of a consumer that was closed, nothing counts any more. It has no
        effect where transactions commit for this consumer: they do that for all that was handed out.
        """
        if self._state == "closed":
            return
        self._check(may_be_closing=True)
        require_kind("what", what, (ConsumerRecord, ConsumerBatch), "a record or a batch of this consumer")
        if self._binding is not None:
            return
        done = self._core.done
        if isinstance(what, ConsumerRecord):
            done.done(TopicPartition(what.topic, what.partition), what.offset)
        else:
            for part in what.parts:
                for offset in part.offsets:
                    done.done(part.partition, offset)
        if self._group is not None:
            self._group.done_more()

    def _settle(self) -> None:
        """The program asks for more."""
        self._core.settle()
        if self._group is not None:
            self._group.polled()

    def _check_reading(self) -> None:
        """Raises what keeps everything from being read."""
        self._fetcher.check()
        if self._group is not None:
            self._group.check()

    async def _more(self, deadline_ms: float = float("inf")) -> None:
        """Returns when there may be something."""
        if self._fetcher.is_packed(None):
            await self._fetcher.prepare(None)
        else:
            await self._wait(deadline_ms)

    async def _wait(self, deadline_ms: float = float("inf")) -> None:
        if self._group is None:
            await self._fetcher.wait(deadline_ms)
        else:
            with self._group.polling():
                self._group.check()
                await self._fetcher.wait(deadline_ms)

    # --------------------------------------------------------------------------------------------- what is read
    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int]) -> None:
        """Reads these partitions and no others, and leaves them to nobody: those that are new from the offsets of the
        mapping, from what the group has committed, if there is a group, or where `auto_offset_reset` says; those that
        were read before go on, where no offset is given. Raises WrongUse while topics are subscribed to."""
        self._check()
        require_iterable("partitions", partitions, PARTITIONS)
        wanted = list(dict.fromkeys(partitions))
        require_partitions("partitions", wanted)
        offsets: dict[TopicPartition, int] = {}
        if isinstance(partitions, Mapping):
            offsets.update(cast(Mapping[TopicPartition, int], partitions))
        require_all("partitions", offsets.values(), int, "offsets (whole numbers) by partition")
        if self._group is not None and self._group.is_member:
            raise WrongUse(
                "topics are subscribed to, so the group assigns partitions", hint="Call `unsubscribe` first."
            )
        before = self._core.partitions
        self._core.revoked(before.difference(wanted))
        self._core.assigned(offsets, {partition: Start.at_offset(offset) for partition, offset in offsets.items()})
        news = [partition for partition in wanted if partition not in offsets and partition not in before]
        if self._group is None:
            self._core.assigned(news, {})
        else:
            self._core.assigned_unplaced(news)
            self._group.place(news)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        self._check()
        return self._core.partitions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Goes on at this offset. What is in hand of the partition does not become done. Raises NotAssigned."""
        self._check()
        require_partitions("partition", (partition,))
        require_kind("offset", offset, int, "a whole number")
        if offset < 0:
            raise ValueError(f"an offset is 0 or more, not {offset}")
        self._seek(partition, Start.at_offset(offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Goes on at the first record of these partitions, of all without any. Raises NotAssigned."""
        self._seek_all(partitions, Start.earliest())

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Goes on behind the last record. With read_committed: where the first open transaction begins."""
        self._seek_all(partitions, Start.latest())

    def _seek_all(self, partitions: tuple[TopicPartition, ...], start: Start) -> None:
        for partition in self._named(partitions):
            self._seek(partition, start)

    def _seek(self, partition: TopicPartition, start: Start) -> None:
        self._core.seek(partition, start)
        if self._group is not None:
            self._group.sought(partition)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hands nothing out of these partitions (without any: of all) until `resume`. Raises NotAssigned."""
        for partition in self._named(partitions):
            self._core.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Ends `pause`. Raises NotAssigned."""
        for partition in self._named(partitions):
            self._core.resume(partition)

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        self._check()
        return self._core.paused

    def _named(self, partitions: tuple[TopicPartition, ...]) -> Iterable[TopicPartition]:
        self._check()
        require_partitions("the arguments", partitions)
        return partitions or self._core.partitions

    # ------------------------------------------------------------------------------------------------ questions
    async def position(self, partition: TopicPartition, *, timeout_ms: float | None = None) -> int:
        """The offset of the record that comes next; waits until it is known, `default_api_timeout_ms` by default.

        Raises NotAssigned, RequestTimedOut, ConsumerClosed.
        """
        deadline_ms = self._deadline_ms(timeout_ms)
        require_partitions("partition", (partition,))
        while (offset := self._core.position(partition)) < 0:
            now_ms = self._environment.monotonic_ms()
            if now_ms >= deadline_ms:
                given_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
                raise RequestTimedOut(f"the position of {partition}", "the cluster", given_ms)
            await self._fetcher.wait(deadline_ms)
            self._check(may_be_closing=True)
            self._fetcher.check()
        return offset

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record of each. Raises MetadataTimeout, InvalidPartition, ClientError."""
        return await self._ends(partitions, EARLIEST, timeout_ms)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record; with read_committed, where the first open transaction begins."""
        return await self._ends(partitions, LATEST, timeout_ms)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record of each partition that is not older than a time in milliseconds; None: there is none."""
        deadline_ms = self._deadline_ms(timeout_ms)
        require_kind("timestamps", timestamps, Mapping, "a mapping by TopicPartition objects")
        require_partitions("timestamps", timestamps)
        require_all("timestamps", timestamps.values(), int, "whole numbers by partition")
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise ValueError("timestamps are milliseconds since 1970, 0 or more")
        found = await self._lookup.find(timestamps, deadline_ms)
        return {partition: each if each.offset >= 0 else None for partition, each in found.items()}

    async def partitions_for(self, topic: str, *, timeout_ms: float | None = None) -> tuple[TopicPartition, ...]:
        """The partitions of a topic. Raises MetadataTimeout, InvalidTopic, AuthorizationError."""
        deadline_ms = self._deadline_ms(timeout_ms)
        require_topic("topic", topic)
        found = await self._cluster.wait_for_topic(topic, deadline_ms)
        return tuple(TopicPartition(topic, index) for index in range(found.partition_count))

    async def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        deadline_ms = self._deadline_ms(timeout_ms)
        require_iterable("partitions", partitions, PARTITIONS)
        wanted = list(partitions)
        require_partitions("partitions", wanted)
        found = await self._lookup.find(dict.fromkeys(wanted, timestamp), deadline_ms)
        return {partition: each.offset for partition, each in found.items()}
