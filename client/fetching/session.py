"""One broker's incremental fetch session, from the asking side (KIP-227). Pure.

A reader of a thousand quiet partitions does not name them all in each request and read them all in each answer. The
first request of a session is full; the later ones name what has changed: partitions that are new or wanted otherwise,
and those that are `forgotten`. The broker answers the partitions of which it has something to tell.

    full Fetch ──> `next_request` ──> what is sent ──> `answered` | `lost`

The rules of FetchSessionHandler.java:
- Session id 0 in the answer to a full request: the broker keeps no session, and the next request is full again.
- A lost request may have been carried out, so epochs may differ by one: the next request is full, and names the session
  that it replaces.
- FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH and FETCH_SESSION_TOPIC_ID_ERROR say nothing of partitions:
  the next request is full, and is made at once.
- A session names all its topics by id, or all by name: where that changes, it begins again (KIP-516). A topic that was
  deleted and created again is forgotten under its old id.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from odradek.client.fetching.request import LAST_VERSION_WITH_NAMES
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

__all__ = ["SESSION_ERRORS", "FetchSession"]

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1
SINCE: Final = 7
"""The first version of Fetch with sessions."""
SESSION_ERRORS: Final = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)


class _Named(NamedTuple):
    """What a session knows of a partition."""

    topic_id: bytes
    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    partition_max_bytes: int


class FetchSession:
    """See the module. `is_full`: the request that was made last names everything."""

    __slots__ = ("_by_id", "_epoch", "_id", "_known", "is_full")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: dict[TopicPartition, _Named] = {}
        self._by_id = True
        self.is_full = True

    def next_request(self, full: FetchRequest, version: int) -> FetchRequest:
        """What to send at this version in place of a request that stands for itself.

        After it comes `answered` or `lost`.
        """
        if version < SINCE:
            self.is_full = True
            return full
        by_id = version > LAST_VERSION_WITH_NAMES
        if by_id is not self._by_id:
            self._epoch = INITIAL_EPOCH
        self._by_id = by_id
        wanted = _named(full.topics)
        self.is_full = self._epoch == INITIAL_EPOCH
        if self.is_full:
            self._known = wanted
            return self._with(full, full.topics, [])
        changed = {partition for partition, named in wanted.items() if self._known.get(partition) != named}
        gone = {
            partition: known.topic_id
            for partition, known in self._known.items()
            if partition not in wanted or wanted[partition].topic_id != known.topic_id
        }
        self._known = wanted
        return self._with(full, _only(full.topics, changed), _forgotten(gone))

    def answered(self, response: FetchResponse) -> None:
        """Takes over the session that an answer names."""
        if response.error_code:
            # As for a session that is not there, it is not named again.
            is_gone = code_of(response.error_code) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._begin_again(NO_SESSION if is_gone else self._id)
        elif self.is_full:
            self._id = response.session_id
            self._epoch = INITIAL_EPOCH if response.session_id == NO_SESSION else INITIAL_EPOCH + 1
        elif response.session_id == self._id:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        else:
            self._begin_again(self._id)  # an answer to another session than ours

    def lost(self) -> None:
        """There is no answer."""
        self._begin_again(self._id)

    def _with(self, full: FetchRequest, topics: list[FetchTopic], forgotten: list[ForgottenTopic]) -> FetchRequest:
        return FetchRequest(
            replica_id=full.replica_id,
            max_wait_ms=full.max_wait_ms,
            min_bytes=full.min_bytes,
            max_bytes=full.max_bytes,
            isolation_level=full.isolation_level,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
            rack_id=full.rack_id,
        )

    def _begin_again(self, replaced_id: int) -> None:
        self._id = replaced_id
        self._epoch = INITIAL_EPOCH
        self._known = {}


def _named(topics: Iterable[FetchTopic]) -> dict[TopicPartition, _Named]:
    return {
        TopicPartition(topic.topic, each.partition): _Named(
            topic.topic_id,
            each.fetch_offset,
            each.current_leader_epoch,
            each.last_fetched_epoch,
            each.partition_max_bytes,
        )
        for topic in topics
        for each in topic.partitions
    }


def _only(topics: Iterable[FetchTopic], wanted: set[TopicPartition]) -> list[FetchTopic]:
    found: list[FetchTopic] = []
    for topic in topics:
        parts: list[FetchPartition] = [
            each for each in topic.partitions if TopicPartition(topic.topic, each.partition) in wanted
        ]
        if parts:
            found.append(FetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=parts))
    return found


def _forgotten(gone: Mapping[TopicPartition, bytes]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], list[int]] = {}
    for (topic, partition), topic_id in gone.items():
        topics.setdefault((topic, topic_id), []).append(partition)
    return [
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in topics.items()
    ]
