"""What is done to a cluster's contents by a client, where brokers run in processes of their own: topics are made, and
everything is emptied. (In this process, or one child, brokers do that from within: hosting/inside.py.)"""

from collections.abc import Mapping
from contextlib import suppress

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.topics import NewTopic
from odradek.client.errors.base import ClientError
from odradek.testing.contents import Contents
from odradek.testing.own_client import RESET_REASON
from odradek.testing.running_cluster import NewTopicRefused


async def create_topics(
    contents: Contents, topics: Mapping[str, int], replication_factor: int, config: Mapping[str, str] | None
) -> None:
    """Returns when each partition has a leader. Raises NewTopicRefused."""
    wanted = [NewTopic(name, count, replication_factor, {**(config or {})}) for name, count in topics.items()]
    try:
        await (await contents.admin()).create_topics(wanted)
    except ItemsFailed as failed:
        whys = (f"{name!r}: {error}" for name, error in failed.errors.items())
        raise NewTopicRefused(f"topics could not be made: {'; '.join(whys)}") from None


async def empty(contents: Contents, kept: Mapping[str, int]) -> None:
    """Ends open transactions, whose producers are fenced by that; deletes groups and topics, and makes those that are
    `kept`. Members that still run join again. Raises ItemsFailed, NewTopicRefused."""
    admin = await contents.admin()
    if ongoing := [each.transactional_id for each in await admin.list_transactions(["Ongoing"])]:
        await admin.fence_producers(ongoing)
    if topics := await contents.topics():
        await admin.delete_topics(topics)
    if kept:
        await create_topics(contents, kept, -1, None)
    await _delete_groups(admin)


async def _delete_groups(admin: Admin) -> None:
    groups = [each.group_id for each in await admin.list_groups()]
    for group_id in groups:
        with suppress(ItemsFailed, ClientError):  # who has just left by itself
            await admin.remove_group_members(group_id, reason=RESET_REASON)
    with suppress(ItemsFailed):  # a member that has joined again meanwhile has a new group
        await admin.delete_groups(groups)
