"""The follower's side of an incremental fetch session (KIP-227, FetchSessionHandler.java). Pure.

The leader keeps what we asked for, partition by partition, and each request names only what is different from that. So
a quiet partition costs nothing: it is in no request and in no answer.

| our next request | says |
|---|---|
| first, and after anything went wrong | session epoch 0: all that we want; an old session is closed |
| then | session epoch n: what changed, and what we do not want at the moment |

A leader without room for another session answers session id 0. Then every request names everything.

A partition leaves the session with the leader's answer of an error, or of where the logs part, and records that were
sent are not sent again before the partition is named. So one whose answer was anything but applied is named by the next
request that wants it, though its position may be what it was (`name_again`).

`known` is what the leader has of us, hence also what an answer is an answer to.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from odradek.broker.fetching.consumer_sessions import INITIAL_EPOCH, NO_SESSION, next_epoch
from odradek.broker.replication.follower_state import FetchPosition

PartitionId = tuple[bytes, int]
"""Topic id, partition index."""

NOWHERE: Final = FetchPosition(-1, -1, -1, -1)
"""No position of a partition."""


class SessionChanges(NamedTuple):
    """What a request says beside the session's id and epoch."""

    wanted: dict[PartitionId, FetchPosition]
    forgotten: list[PartitionId]


class LeaderSession:
    """Our session at one leader."""

    __slots__ = ("epoch", "known", "session_id")

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.known: dict[PartitionId, FetchPosition] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request has to name everything."""
        return self.epoch == INITIAL_EPOCH

    def ask(self, positions: Mapping[PartitionId, FetchPosition | None]) -> SessionChanges:
        """What to say, when these are the positions that may have changed; None: not wanted now. For a new session all
        that are wanted must be among them. The request has to be sent."""
        wanted: dict[PartitionId, FetchPosition] = {}
        forgotten: list[PartitionId] = []
        known = self.known
        for partition, position in positions.items():
            before = known.get(partition)
            if position is None:
                if known.pop(partition, None) is not None:
                    forgotten.append(partition)
            elif position != before:
                wanted[partition] = known[partition] = position
        return SessionChanges(wanted, forgotten)

    def name_again(self, partition: PartitionId) -> None:
        """The leader waits to hear of it, or has it in the session no more."""
        if partition in self.known:
            self.known[partition] = NOWHERE

    def answered(self, session_id: int) -> None:
        """The leader has taken the request. `session_id` is the answer's."""
        if session_id == NO_SESSION:
            self.restart(is_closed=True)
        elif self.is_new:
            self.session_id, self.epoch = session_id, 1
        else:
            self.epoch = next_epoch(self.epoch)

    def restart(self, *, is_closed: bool = False) -> None:
        """Nobody knows what the leader knows of us: the next request names everything.

        It closes the old session, unless `is_closed`: the leader has none.
        """
        self.epoch = INITIAL_EPOCH
        if is_closed:
            self.session_id = NO_SESSION
        self.known = {}  # another one: what was asked before is what the last answer is for


def by_topic(partitions: Iterable[PartitionId]) -> dict[bytes, list[int]]:
    """Partition indexes by topic id, in the order in which they come."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in partitions:
        topics.setdefault(topic_id, []).append(index)
    return topics
