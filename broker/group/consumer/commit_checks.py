"""Who may commit and fetch offsets. Pure. Rules: Kafka's ConsumerGroup.validateOffset…, KIP-1251.

A commit with the member's epoch is good. One with an older epoch is good for a partition that the member has been given
in that epoch or before, and has not given up: the member has not heard of the newer epoch yet.
"""

from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import Current
from odradek.broker.group.consumer.member_checks import unknown_member
from odradek.protocol.errors import ErrorCode, KafkaError

COMMIT_VERSION_MIN = 9
"""Of OffsetCommit, for members that speak the consumer protocol."""


class CommitCheck:
    """Says for each partition of a commit whether it is good."""

    __slots__ = ("_current", "_epoch", "_refusal")

    def __init__(self, current: Current | None, epoch: int, refusal: ErrorCode) -> None:
        self._current = current
        self._epoch = epoch
        self._refusal = refusal

    def code(self, topic_id: bytes, partition: int) -> ErrorCode:
        """NONE, or what `check` raises."""
        try:
            self.check(topic_id, partition)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def check(self, topic_id: bytes, partition: int) -> None:
        """Raises KafkaError: STALE_MEMBER_EPOCH; ILLEGAL_GENERATION to those who know that alone."""
        if self._current is None:
            return
        for held in (self._current.assigned, self._current.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                if epoch <= self._epoch:
                    return
                raise KafkaError(
                    self._refusal, f"Epoch {self._epoch} is older than {epoch}, in which the partition was assigned."
                )
        raise KafkaError(self._refusal, f"The partition is not the member's, and epoch {self._epoch} is not current.")


NO_MEMBER = ("", None, -1)
"""Member id, instance id and epoch of a transactional commit whose producer knows no member (before KIP-447)."""

STALE_EPOCHS_TOLD_SINCE = 6
"""The version of TxnOffsetCommit."""

ALL_GOOD = CommitCheck(None, -1, ErrorCode.STALE_MEMBER_EPOCH)


def check_commit(
    state: GroupState, group_id: str, member_id: str, member_epoch: int, *, is_transactional: bool, version: int
) -> CommitCheck:
    """`version` is OffsetCommit's, or where `is_transactional` TxnOffsetCommit's.

    Without an epoch, offsets of a group without members may be committed. Raises KafkaError: UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH. Members that speak the classic protocol, and producers before KIP-1319,
    know ILLEGAL_GENERATION in its place (`OffsetMetadataManager.validateTransactionalOffsetCommit`).
    """
    if member_epoch < 0 and not state.members:
        return ALL_GOOD
    member = state.members.get(member_id)
    if member is None:
        raise unknown_member(group_id, member_id)
    is_classic = member.classic is not None
    if not is_transactional and not is_classic and version < COMMIT_VERSION_MIN:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Members of the consumer protocol commit with version {COMMIT_VERSION_MIN} of OffsetCommit, or later.",
        )
    current = state.current(member_id)
    refusal = _refusal(is_classic or (is_transactional and version < STALE_EPOCHS_TOLD_SINCE))
    if member_epoch == current.member_epoch:
        return ALL_GOOD
    if member_epoch > current.member_epoch:
        raise KafkaError(refusal, f"Epoch {member_epoch} is newer than {current.member_epoch}, which the group has.")
    return CommitCheck(current, member_epoch, refusal)


def check_fetch(state: GroupState, group_id: str, member_id: str | None, member_epoch: int) -> None:
    """Without a member id and an epoch, anybody may fetch. Raises KafkaError as `check_commit`."""
    if member_id is None and member_epoch < 0:
        return
    member_id = member_id or ""
    member = state.members.get(member_id)
    if member is None:
        raise unknown_member(group_id, member_id)
    current = state.current(member_id)
    if member_epoch != current.member_epoch:
        raise KafkaError(
            _refusal(member.classic is not None),
            f"Epoch {member_epoch} is not {current.member_epoch}, which the group has.",
        )


def _refusal(knows_generations: bool) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if knows_generations else ErrorCode.STALE_MEMBER_EPOCH
