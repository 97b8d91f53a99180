"""Which offsets of its group a consumer gives to a transaction. Pure."""

from collections.abc import Callable, Mapping

from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.errors import TakenAway
from odradek.client.consumer.group.offsets import OffsetAndMetadata
from odradek.client.consumer.membership.membership import Identity
from odradek.client.errors.client_errors import ClientError
from odradek.client.offset_commit import OffsetsToCommit
from odradek.client.topic_partition import TopicPartition

__all__ = ["offsets_to_commit"]


def offsets_to_commit(
    core: ConsumerCore,
    identity: Identity,
    committed: Mapping[TopicPartition, int],
    wanted: Mapping[TopicPartition, OffsetAndMetadata] | None,
    is_behind: Callable[[TopicPartition, int], bool],
    *,
    is_member: bool,
) -> OffsetsToCommit:
    """All that the program has got, done or not, and that is not committed; or what is `wanted` of what it has got.

    `is_behind`: whether the group had come further than an offset when its partition was assigned. Raises TakenAway
    where another member may have read the records again; ClientError while a member has no place in its group.
    """
    lost = set(core.taken_away)
    if wanted is not None:
        lost |= {each for each in wanted if core.token(each) is None or is_behind(each, wanted[each].offset)}
    if lost:
        raise TakenAway(lost)
    offsets = _handed_out(core, committed) if wanted is None else wanted
    if offsets and is_member and identity.generation < 0:
        why = f"the consumer has no place in the group {identity.group_id} at the moment"
        raise ClientError(why, hint="Begin another transaction: what is not committed is read again.")
    return OffsetsToCommit(identity, offsets)


def _handed_out(core: ConsumerCore, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        partition: OffsetAndMetadata(each.offset, "", each.leader_epoch)
        for partition, each in core.handed_out().items()
        if each.offset != committed.get(partition)
    }
