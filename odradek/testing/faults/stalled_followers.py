"""Followers that get nothing of a partition, as one leader sees it: `stall_follower`.

| a follower's Fetch | what becomes of it while a stall is in force |
|---|---|
| names a stalled partition | that is taken out, and out of the follower's session: the leader hears of no progress |
| is answered with records of one, for it waited when the stall began | these are taken out of the answer |
| is the first one after the stall | refused as one of an unknown session, so that the follower names all partitions |

The other partitions of the Fetch are served. It waits for `WAIT_MS` at most, so often does the leader look at those who
are stalled. After `LAG_MS` it forgets what it knew of such a follower, which leaves the in-sync set by that, by the
leader's own write: whatever `replica.lag.time.max.ms` is, and whether anything was appended that it lacks or not.
"""

from collections.abc import Callable
from typing import Final

from odradek.broker.handling.context import Context
from odradek.broker.handling.interceptors import Proceed
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import NEVER_MS, UNKNOWN_OFFSET
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from odradek.testing.faults.fault import Fault, Kind
from odradek.testing.faults.fault_table import Entry, FaultTable
from odradek.testing.faults.partial_failures import changed

__all__ = ["StalledFollowers"]

LAG_MS: Final = 500.0
WAIT_MS: Final = 100

Key = tuple[bytes, int]
"""Topic id and partition index."""


class StalledFollowers:
    """Those of one leader."""

    def __init__(self, table: FaultTable, context: Callable[[], Context]) -> None:
        self._table = table
        self._context = context
        self._hidden: dict[int, set[Key]] = {}
        """By follower: what was taken out of its session here."""
        self._stalled_since_ms: dict[tuple[int, Key], float] = {}
        self._counted: set[tuple[int, Key]] = set()

    async def answer(self, proceed: Proceed, request: FetchRequest) -> FetchResponse:
        """A follower's Fetch. Raises KafkaError FETCH_SESSION_ID_NOT_FOUND, and what `proceed` does."""
        follower = -1 if request.replica_state is None else request.replica_state.replica_id
        keys, hidden = self._stalled(follower), self._hidden.get(follower, set())
        if back := hidden - keys:
            self._hidden[follower] = hidden & keys
            self._come_back(follower, back)
            if request.session_epoch > 0:
                raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "the follower was stalled, and begins again")
        if keys:
            self._look(follower, keys)
            self._hidden[follower] = keys
            request = _without(request, keys)
        answer: FetchResponse = await proceed(request)
        if keys := self._stalled(follower):  # perhaps since
            self._hidden[follower] = keys | self._hidden.get(follower, set())
            return _shortened(answer, keys)
        return answer

    def _stalls(self, follower: int) -> list[Entry]:
        return [each for each in self._table.entries if _is_stalled(each.fault, follower)]

    def _stalled(self, follower: int) -> set[Key]:
        """The partitions that this broker leads of those in which it is stalled."""
        stalls = self._stalls(follower)
        if not stalls:
            return set()
        return {
            (each.topic_id, each.index)
            for each in self._context().partitions
            if each.is_leader and any(_is_about(entry.fault, each) for entry in stalls)
        }

    def _look(self, follower_id: int, keys: set[Key]) -> None:
        """Has it leave the in-sync sets of those that have been stalled for long enough."""
        now_ms = self._context().environment.monotonic_ms()
        for partition in self._context().partitions:
            key = partition.topic_id, partition.index
            follower = partition.replicas.followers.get(follower_id)
            if key not in keys or follower is None:
                continue
            place = follower_id, key
            since_ms = self._stalled_since_ms.setdefault(place, now_ms)
            if now_ms - since_ms < LAG_MS or follower_id not in partition.replicas.isr:
                continue
            if place not in self._counted:
                self._counted.add(place)
                self._count(follower_id, partition)
            # What a leader knows of a follower from which it has never heard.
            follower.log_end_offset = UNKNOWN_OFFSET
            follower.last_caught_up_ms = NEVER_MS
            partition.acknowledgements.update()
            partition.listener.isr_outdated(partition)

    def _count(self, follower: int, partition: Partition) -> None:
        for entry in self._stalls(follower):
            if _is_about(entry.fault, partition):
                self._table.take(entry)

    def _come_back(self, follower_id: int, keys: set[Key]) -> None:
        """It is stalled in these no more. It has as long to catch up as a member of the set when its leader begins:
        else it would join with its first Fetch, and be found to lag by the next look at the others."""
        now_ms = self._context().environment.monotonic_ms()
        for partition in self._context().partitions:
            key = partition.topic_id, partition.index
            if key in keys and (follower := partition.replicas.followers.get(follower_id)) is not None:
                follower.was_caught_up(now_ms)
        for key in keys:
            self._stalled_since_ms.pop((follower_id, key), None)
            self._counted.discard((follower_id, key))


def _is_stalled(fault: Fault, follower: int) -> bool:
    return fault.kind is Kind.STALL_FOLLOWER and fault.follower in (None, follower)


def _is_about(fault: Fault, partition: Partition) -> bool:
    return fault.match.topic == partition.topic and fault.match.partition in (None, partition.index)


def _without(request: FetchRequest, keys: set[Key]) -> FetchRequest:
    forgotten = [ForgottenTopic(topic_id=topic_id, partitions=[index]) for topic_id, index in keys]
    topics: list[FetchTopic] = []
    for topic in request.topics:
        partitions = [each for each in topic.partitions if (topic.topic_id, each.partition) not in keys]
        if partitions:
            topics.append(changed(topic, partitions=partitions))
    return changed(
        request,
        topics=topics,
        forgotten_topics_data=[*request.forgotten_topics_data, *forgotten],
        max_wait_ms=min(request.max_wait_ms, WAIT_MS),
    )


def _shortened(answer: FetchResponse, keys: set[Key]) -> FetchResponse:
    topics = [
        changed(topic, partitions=left)
        for topic in answer.responses
        if (left := [each for each in topic.partitions if (topic.topic_id, each.partition_index) not in keys])
    ]
    return changed(answer, responses=topics)
