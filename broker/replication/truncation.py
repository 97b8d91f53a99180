"""Where a follower cuts its log, or begins it anew, for what its leader answers (AbstractFetcherThread.scala). Pure.

Where two logs part is told by leader epochs alone, never by the high watermark (KIP-101, KIP-279). The leader compares
with each fetch (KIP-595). It knows where our last epoch ends in its log, and answers the largest epoch up to it that it
has, with that epoch's end. From there on `truncation_offset` decides, and the next fetch compares again:

| we know the epoch that it names | cut at |
|---|---|
| yes | where that epoch ends here or there, whichever comes first |
| no | where the last epoch before it ends here: what we have of later ones, the leader does not have |

Each step takes at least one epoch off our log or ends the comparison, and nothing goes that the leader has.

What the leader answers stands in divergence.py.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.replication.follower_state import FetchPosition
from odradek.protocol.errors import ErrorCode, KafkaError

UNKNOWN_EPOCH = -1


def truncation_offset(
    leader_end: tuple[int, int], fetched: FetchPosition, end_offset_for: Callable[[int], tuple[int, int]]
) -> int:
    """Where to cut our log, when the leader says that what we have of our last epoch is not what it has.

    `leader_end`: the largest epoch at the leader up to our last one, and its end offset there. `end_offset_for`: the
    same question put to our log. At most the log's end: then only an epoch goes in which nothing was appended.

    Raises KafkaError CORRUPT_MESSAGE for what no leader answers to this fetch, lest we cut for it, or cut for ever.
    """
    epoch, end_offset = leader_end
    is_answer = 0 <= epoch <= fetched.last_fetched_epoch and end_offset >= 0
    if not is_answer or (epoch == fetched.last_fetched_epoch and end_offset >= fetched.fetch_offset):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the leader says that its epoch {epoch} ends at {end_offset}, and we were at {fetched.fetch_offset} in "
            f"epoch {fetched.last_fetched_epoch}",
        )
    own_epoch, own_end_offset = end_offset_for(epoch)
    assert own_end_offset >= 0, "our last epoch is known, and it is not before the leader's"
    if own_epoch == epoch:
        return min(own_end_offset, end_offset, fetched.fetch_offset)
    return min(own_end_offset, fetched.fetch_offset)


class Restart(NamedTuple):
    """Throw the log away and begin at this offset."""

    offset: int


class Truncate(NamedTuple):
    """Cut the log at this offset."""

    offset: int


def after_out_of_range(fetched: FetchPosition, leader_start_offset: int, leader_end_offset: int) -> Restart | Truncate:
    """What to do, now that it is known where the leader's log begins and ends.

    It has deleted all that we have, and perhaps more: then nothing here is of use to anybody. Or it ends before us:
    only where no epoch is known here, by which it could compare, its end is believed (an empty log that begins behind
    it; whoever has records has epochs). Otherwise the next fetch compares again.

    Raises KafkaError OFFSET_OUT_OF_RANGE where that does not explain it. It may have been so for a moment; or our last
    epoch is newer than all that the leader knows, and records are not thrown away for that: somebody has to look.
    """
    if leader_start_offset >= fetched.fetch_offset:
        return Restart(leader_start_offset)
    if fetched.last_fetched_epoch == UNKNOWN_EPOCH and leader_end_offset < fetched.fetch_offset:
        return Truncate(leader_end_offset)
    raise KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"the leader has the offsets {leader_start_offset} to {leader_end_offset}, and cannot answer for "
        f"{fetched.fetch_offset} behind epoch {fetched.last_fetched_epoch}",
    )
