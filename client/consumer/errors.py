"""Errors of a consumer alone; the others are those of every client (`odradek.client.errors.client_errors`)."""

from collections.abc import Collection

from odradek.client.errors.client_errors import ClientClosed, ClientError, ClientNotStarted, WrongUse
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["ConsumerClosed", "ConsumerNotStarted", "GroupFailed", "NoGroup", "NotAssigned", "PositionMissing"]
__all__ += ["TakenAway"]


class ConsumerNotStarted(ClientNotStarted):
    """The consumer was used before `start()`."""

    def __init__(self) -> None:
        super().__init__("consumer")


class ConsumerClosed(ClientClosed):
    """The consumer is closed."""

    def __init__(self, why: str = "") -> None:
        super().__init__("consumer", why)


class NotAssigned(WrongUse):
    """A partition that this consumer does not read, or no longer."""

    hint = "Assign the partition first; those of a group may be taken away at any time."

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} is not assigned to this consumer")
        self.partition = partition


class PositionMissing(WrongUse):
    """A partition has no position, and `auto_offset_reset` is "none". (Source: NoOffsetForPartitionException.java.)"""

    hint = "Seek to an offset before records are asked for, or set auto_offset_reset to earliest or latest."

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} has no offset to begin at")
        self.partition = partition


class NoGroup(WrongUse):
    """A call about a group, of a consumer without one."""

    hint = "Set group_id."

    def __init__(self) -> None:
        super().__init__("this consumer has no group_id")


class GroupFailed(ClientError):
    """The consumer is in its group no more, and will not come back: another member has its instance id, the group has
    another protocol, a right is missing, or the like."""

    hint = "Close it; look at the settings of this consumer, and at the other members of its group."

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.fatal = True


class TakenAway(ClientError):
    """Partitions were taken away while the program worked on records of them: no transaction can commit these."""

    hint = "Begin another transaction: who has the partition now reads them again."

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        super().__init__(f"{', '.join(map(str, sorted(partitions)))} was taken away while its records were in work")
