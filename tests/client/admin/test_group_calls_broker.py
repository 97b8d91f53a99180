"""Admin's calls about groups against our own broker, with a member that joins by raw messages."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.admin.groups import GroupListing
from odradek.client.errors.client_errors import BrokerError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from tests.broker.wire import RawClient, connected, create_topic, running_broker
from tests.client.raw_member import heartbeat, joined

OPTIONS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@asynccontextmanager
async def asking() -> AsyncGenerator[tuple[Admin, RawClient]]:
    """An admin client of a broker with a topic, and a connection for a member."""
    async with running_broker(OPTIONS) as broker, connected(broker) as client:
        await create_topic(client, "orders", 2)
        endpoint = next(iter(broker.bound.values()))
        async with Admin(f"{endpoint.host}:{endpoint.port}", default_api_timeout_ms=10_000) as admin:
            yield admin, client


async def test_a_group_with_a_member_is_listed_described_and_protected() -> None:
    async with asking() as (admin, client):
        member_id, generation = await joined(client, "billing", {"orders": [0, 1]}, instance_id="one")
        assert await admin.list_groups() == [GroupListing("billing", "consumer", "Stable", "classic")]
        assert await admin.list_groups(states=["Empty"]) == []
        found = await admin.describe_group("billing")
        assert (found.state, found.protocol, found.protocol_type, found.coordinator_id) == (
            "Stable", "range", "consumer", 0,
        )  # fmt: skip
        (its,) = found.members
        assert (its.member_id, its.instance_id, its.client_id) == (member_id, "one", "raw")
        assert its.partitions == (P0, P1)
        assert its.subscribed_topics == ("orders",)
        assert its.host == "127.0.0.1"
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_group_offsets("billing", {P0: 5})
        assert "stop them, and ask again" in str(caught.value.errors[P0])
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_groups(["billing"])
        assert caught.value.errors["billing"].code is ErrorCode.NON_EMPTY_GROUP
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_group_offsets("billing", [P0])
        assert caught.value.errors[P0].code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        await admin.remove_group_members("billing", found.members, reason="a test")
        assert (await admin.describe_group("billing")).state == "Empty"
        assert await heartbeat(client, "billing", member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID.value


async def test_offsets_are_set_read_and_deleted_with_the_group() -> None:
    async with asking() as (admin, _):
        await admin.alter_group_offsets("billing", {P0: 5, P1: CommittedOffset(6, "a note", 0)})
        assert await admin.group_offsets("billing") == {P0: CommittedOffset(5), P1: CommittedOffset(6, "a note", 0)}
        await admin.delete_group_offsets("billing", [P1])
        assert await admin.list_group_offsets({"billing": None, "typo": [P0]}) == {
            "billing": {P0: CommittedOffset(5)},
            "typo": {},
        }
        assert (await admin.describe_group("billing")).protocol_type == ""
        await admin.delete_groups(["billing"])
        assert await admin.list_groups() == []
        assert await admin.group_offsets("billing") == {}
        for asked in (admin.describe_group("billing"), admin.delete_groups(["billing"])):
            with pytest.raises((BrokerError, ItemsFailed)) as caught:
                await asked
            errors = caught.value.errors.values() if isinstance(caught.value, ItemsFailed) else [caught.value]
            assert [error.code for error in errors] == [ErrorCode.GROUP_ID_NOT_FOUND]
