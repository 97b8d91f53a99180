"""Where a reader's log and its leader's part, told by leader epochs and by nothing else (KIP-101, KIP-279, KIP-595).

The log knows the epochs in which something was appended, and the partition the one that it leads in. What a follower
makes of the answer stands in follower_state.py.
"""

from broker.replication.partition import Partition
from protocol.errors import ErrorCode, KafkaError

UNKNOWN_EPOCH = -1


def end_offset_for_epoch(partition: Partition, leader_epoch: int) -> tuple[int, int]:
    """The largest epoch that is at most `leader_epoch`, and the offset at which it ended; (-1, -1) when unknown.

    Epochs behind the log's latest one, up to the partition's, were begun and nothing was appended in them: they end at
    the log's end, as the current one does.
    """
    epochs, log_end_offset = partition.log.epochs, partition.log.log_end_offset
    if leader_epoch == partition.leader_epoch:
        return leader_epoch, log_end_offset
    if epochs.latest < leader_epoch < partition.leader_epoch:
        return (leader_epoch if epochs.latest < 0 else epochs.latest), log_end_offset
    return epochs.end_offset_for(leader_epoch, log_end_offset)


def diverging(partition: Partition, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
    """Where the two part, if they do: the largest epoch common to both, and where it ends here. Consumers give -1 and
    are never told.

    Raises KafkaError OFFSET_OUT_OF_RANGE for an epoch older than the log.
    """
    if last_fetched_epoch < 0:
        return None
    epoch, end_offset = end_offset_for_epoch(partition, last_fetched_epoch)
    if epoch == UNKNOWN_EPOCH:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"leader epoch {last_fetched_epoch} is older than the log")
    return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < fetch_offset else None
