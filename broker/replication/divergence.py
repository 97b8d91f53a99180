"""Where a reader's log and its leader's part, told by leader epochs and by nothing else (KIP-101, KIP-279, KIP-595).

The log knows the epochs in which something was appended, and the partition the one that it leads in. What a follower
makes of the answer stands in truncation.py.
"""

from odradek.broker.replica.partition import Partition
from odradek.broker.replication.truncation import UNKNOWN_EPOCH
from odradek.protocol.errors import ErrorCode, KafkaError


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


def require_comparable(
    partition: Partition, last_fetched_epoch: int, fetch_offset: int, follower_log_start_offset: int
) -> None:
    """That epochs can tell whether what a follower has was ever ours: for a fetch that does not diverge.

    They cannot once all that it has lies before the log's start, and was written in an epoch of which nothing is left
    here: our log may never have had it. Kafka has such a follower go on (LeaderEpochFileCache.endOffsetFor guesses).
    Its log start follows, so that nobody reads the rest; but it would answer producers out of what was never committed,
    and show it if its log start were lost. So it begins anew (`after_out_of_range`), as one that is further behind.

    Raises KafkaError OFFSET_OUT_OF_RANGE.
    """
    log = partition.log
    if last_fetched_epoch < 0 or not follower_log_start_offset < fetch_offset <= log.log_start_offset:
        return
    first_epoch = log.epochs.entries[0].epoch if log.epochs.entries else partition.leader_epoch
    if last_fetched_epoch < first_epoch:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the log starts at offset {log.log_start_offset}, with epoch {first_epoch}: nobody knows any more whether "
            f"it agreed with what epoch {last_fetched_epoch} wrote before",
        )
