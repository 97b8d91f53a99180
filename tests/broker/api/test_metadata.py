"""Metadata: which topics are answered, whose addresses, which errors, and that a missing topic is created at once."""

import asyncio

import pytest

from odradek.broker.cluster.keys import BrokerState
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.broker.support import CLUSTER_ID, HERE, ask, make_topic, running_broker

NOT_ASKED = -(2**31)
TOPIC_OPERATIONS = 3576
CLUSTER_OPERATIONS = 8096
"""As Apache Kafka 4.3.1 answers without an authorizer."""
UNKNOWN_ID = bytes(range(16))
NO_AUTO_CREATION = {"auto.create.topics.enable": "false"}


def by_name(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def by_id(*ids: bytes) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]


async def asked(
    context: Context,
    topics: list[MetadataRequestTopic] | None,
    version: int = 12,
    *,
    auto_create: bool = False,
    listener: str = "PLAINTEXT",
) -> MetadataResponse:
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create)
    return await ask(context, request, version, listener=listener)


def codes(answer: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in answer.topics]


# -- which topics ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(14))
async def test_a_topic_in_every_version(version: int) -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders", 1)
        answer = await asked(context, by_name("orders"), version)
    assert answer.brokers == [MetadataResponseBroker(node_id=0, host="127.0.0.1", port=9092)]
    assert answer.cluster_id == (CLUSTER_ID if version >= 2 else None)
    assert answer.controller_id == (0 if version >= 1 else -1)
    assert answer.topics == [
        MetadataResponseTopic(
            name="orders",
            topic_id=topic_id if version >= 10 else ZERO_UUID,
            partitions=[
                MetadataResponsePartition(
                    partition_index=0,
                    leader_id=0,
                    leader_epoch=0 if version >= 7 else -1,
                    replica_nodes=[0],
                    isr_nodes=[0],
                )
            ],
        )
    ]


async def test_null_means_all_and_an_empty_list_none() -> None:
    async with running_broker() as context:
        for name in ("b", "a", "c"):
            await make_topic(context, name)
        assert [name for name, _ in codes(await asked(context, None))] == ["a", "b", "c"]
        assert codes(await asked(context, [])) == []
        assert codes(await asked(context, [], 1)) == []


async def test_in_version_0_an_empty_list_means_all() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        assert codes(await asked(context, [], 0)) == [("orders", 0)]


async def test_topics_come_in_the_order_asked_for_and_each_once() -> None:
    async with running_broker(NO_AUTO_CREATION) as context:
        await make_topic(context, "a")
        await make_topic(context, "b")
        answer = await asked(context, by_name("b", "nowhere", "a", "b"))
    assert codes(answer) == [("b", 0), ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("a", 0)]


async def test_a_name_that_no_topic_can_have() -> None:
    async with running_broker(NO_AUTO_CREATION) as context:
        answer = await asked(context, by_name("a b", "", "x" * 250, "."))
    assert [code for _, code in codes(answer)] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 4


async def test_topics_are_found_by_id_since_version_12() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        answer = await asked(context, [*by_id(topic_id, UNKNOWN_ID), *by_name("orders")])
    assert codes(answer) == [("orders", 0), (None, ErrorCode.UNKNOWN_TOPIC_ID), ("orders", 0)]
    assert [topic.topic_id for topic in answer.topics] == [topic_id, UNKNOWN_ID, topic_id]


async def test_where_both_are_given_the_id_counts() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        wanted = [MetadataRequestTopic(name="something else", topic_id=topic_id)]
        assert codes(await asked(context, wanted)) == [("orders", 0)]


@pytest.mark.parametrize("version", [10, 11])
async def test_before_version_12_a_request_with_a_topic_id_or_a_null_name_is_refused(version: int) -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        by_both = await asked(context, [MetadataRequestTopic(name="orders", topic_id=topic_id)], version)
        by_nothing = await asked(context, by_name(None), version)
    assert codes(by_both) == [("orders", ErrorCode.INVALID_REQUEST)]
    assert codes(by_nothing) == [("", ErrorCode.INVALID_REQUEST)]
    assert by_both.brokers == by_nothing.brokers == []


@pytest.mark.parametrize(("version", "whole"), [(12, ErrorCode.NONE), (13, ErrorCode.INVALID_REQUEST)])
async def test_neither_name_nor_id_is_refused(version: int, whole: ErrorCode) -> None:
    async with running_broker() as context:
        answer = await asked(context, by_name(None), version)
    assert (answer.error_code, codes(answer)) == (whole, [("", ErrorCode.INVALID_REQUEST)])


async def test_internal_topics_are_marked() -> None:
    async with running_broker() as context:
        await make_topic(context, "__consumer_offsets")
        await make_topic(context, "_schemas")
        answer = await asked(context, None)
    assert [topic.is_internal for topic in answer.topics] == [True, False]


# -- authorized operations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(14))
async def test_authorized_operations_are_told_where_they_are_asked_for(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        request = MetadataRequest(
            topics=by_name("orders"),
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        answer = await ask(context, request, version)
        silent = await asked(context, by_name("orders"), version)
    assert answer.topics[0].topic_authorized_operations == (TOPIC_OPERATIONS if version >= 8 else NOT_ASKED)
    assert answer.cluster_authorized_operations == (CLUSTER_OPERATIONS if 8 <= version <= 10 else NOT_ASKED)
    assert silent.topics[0].topic_authorized_operations == NOT_ASKED
    assert silent.cluster_authorized_operations == NOT_ASKED


async def test_of_an_unknown_id_no_operations_are_told() -> None:
    """Unlike of a name, for which a right may be given before the topic exists."""
    async with running_broker() as context:
        topics = [MetadataRequestTopic(topic_id=b"0123456789abcdef", name=None), MetadataRequestTopic(name="nowhere")]
        answer = await ask(context, MetadataRequest(topics=topics[:1], include_topic_authorized_operations=True), 12)
        named = await ask(
            context,
            MetadataRequest(
                topics=topics[1:], allow_auto_topic_creation=False, include_topic_authorized_operations=True
            ),
            12,
        )
    assert (answer.topics[0].error_code, answer.topics[0].topic_authorized_operations) == (
        ErrorCode.UNKNOWN_TOPIC_ID,
        NOT_ASKED,
    )
    assert (named.topics[0].error_code, named.topics[0].topic_authorized_operations) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        TOPIC_OPERATIONS,
    )


# -- listeners and leaders ------------------------------------------------------------------------------------------


async def test_addresses_are_those_of_the_listener_that_was_asked() -> None:
    async with running_broker() as context:
        answer = await asked(context, [], listener="EXTERNAL")
    assert [(broker.host, broker.port) for broker in answer.brokers] == [("broker.example", 19092)]


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
async def test_a_leader_without_an_address_on_the_listener(version: int, code: ErrorCode) -> None:
    elsewhere = BrokerState(1, {"INTERNAL": ("127.0.0.1", 1)})
    async with running_broker(brokers=(HERE, elsewhere)) as context:
        await make_topic(context, "orders", replicas=(1, 0), leader=1)
        answer = await asked(context, by_name("orders"), version)
    assert [broker.node_id for broker in answer.brokers] == [0]
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (code, -1)
    assert (partition.replica_nodes, partition.offline_replicas) == ([1, 0], [1])


@pytest.mark.parametrize("version", [1, 6, 12])
@pytest.mark.parametrize("leader", [-1, 5])
async def test_a_partition_without_a_leader_or_led_by_a_broker_that_is_gone(version: int, leader: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", replicas=(5, 0), leader=leader)
        answer = await asked(context, by_name("orders"), version)
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert answer.topics[0].error_code == ErrorCode.NONE
    assert partition.offline_replicas == ([5] if version >= 5 else [])


async def test_version_0_leaves_out_replicas_that_are_out_of_reach() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", replicas=(0, 5), isr=(0, 5))
        (old,) = (await asked(context, by_name("orders"), 0)).topics[0].partitions
        (new,) = (await asked(context, by_name("orders"), 1)).topics[0].partitions
    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, [0], [0])
    assert (new.error_code, new.replica_nodes, new.isr_nodes) == (ErrorCode.NONE, [0, 5], [0, 5])


async def test_the_controller_is_always_a_broker_of_the_list() -> None:
    """Admin clients send what is for the controller to the node with this id, and know only those listed."""
    elsewhere = BrokerState(3, {"INTERNAL": ("127.0.0.1", 1)})
    async with running_broker(brokers=(HERE, elsewhere)) as context:
        assert (await asked(context, [], listener="INTERNAL")).controller_id == 3
        assert (await asked(context, [])).controller_id == 0
        nobody = await asked(context, [], listener="NOWHERE")
    assert (nobody.brokers, nobody.controller_id) == ([], -1)


# -- auto-creation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3, 4, 12])
async def test_a_missing_topic_is_there_when_the_answer_is_out(version: int) -> None:
    async with running_broker({"num.partitions": "3"}) as context:
        answer = await asked(context, by_name("orders"), version, auto_create=True)
        assert context.partitions.leader("orders", 2)
    assert codes(answer) == [("orders", 0)]
    assert [partition.leader_id for partition in answer.topics[0].partitions] == [0, 0, 0]


@pytest.mark.parametrize(("settings", "auto_create"), [(NO_AUTO_CREATION, True), ({}, False)])
async def test_nothing_is_created_unless_both_sides_want_it(settings: dict[str, str], auto_create: bool) -> None:
    async with running_broker(settings) as context:
        answer = await asked(context, by_name("orders"), auto_create=auto_create)
        assert context.metadata.image.topics == {}
    assert codes(answer) == [("orders", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_what_cannot_be_created_says_why_and_does_not_hold_up_the_others() -> None:
    async with running_broker() as context:
        await make_topic(context, "b.c")
        answer = await asked(context, by_name("bad name", "b_c", "__cluster_metadata", "good"), auto_create=True)
    assert codes(answer) == [
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("b_c", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__cluster_metadata", ErrorCode.INVALID_REQUEST),
        ("good", ErrorCode.NONE),
    ]


async def test_a_default_replication_factor_above_the_brokers_is_told() -> None:
    async with running_broker({"default.replication.factor": "3"}) as context:
        answer = await asked(context, by_name("orders"), auto_create=True)
    assert codes(answer) == [("orders", ErrorCode.INVALID_REPLICATION_FACTOR)]


async def test_asking_for_ids_or_all_creates_nothing() -> None:
    async with running_broker() as context:
        await asked(context, by_id(UNKNOWN_ID), auto_create=True)
        await asked(context, None, auto_create=True)
        assert context.metadata.image.topics == {}


async def test_two_clients_that_want_the_same_missing_topic_both_get_it() -> None:
    async with running_broker() as context:
        answers = await asyncio.gather(*(asked(context, by_name("orders"), auto_create=True) for _ in range(5)))
    assert [codes(answer) for answer in answers] == [[("orders", 0)]] * 5
    assert len({answer.topics[0].topic_id for answer in answers}) == 1


async def test_a_store_that_fails_is_an_error_at_which_clients_ask_again() -> None:
    class FullStore(MemoryStore):
        async def commit(self, txn: Txn) -> int:
            if any(key.startswith("/topics/") for key in txn.put):
                raise OSError("no room")
            return await super().commit(txn)

    async with running_broker(store=FullStore()) as context:
        answer = await asked(context, by_name("orders"), auto_create=True)
    assert codes(answer) == [("orders", ErrorCode.LEADER_NOT_AVAILABLE)]
