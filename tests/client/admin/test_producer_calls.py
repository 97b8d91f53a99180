"""Admin's calls about the producers of partitions, on a scripted cluster in memory and virtual time."""

import pytest

from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.producer_states import MarkerUncertain, ProducerState
from odradek.client.errors.client_errors import BrokerError, ClientError, ConnectionFailed, InvalidPartition
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.client.broker_faults import disconnect_after, edited, never
from tests.client.groups_scene import codes
from tests.client.transactions_scene import P0, P1, P2, TOPIC, asking

pytestmark = pytest.mark.virtual_time


# ---------------------------------------------------------------------------------------------------------- describing
async def test_producers_are_described_by_the_leaders() -> None:
    async with asking() as (admin, scripted, served):
        served.open(TOPIC, 0, 7, at=5)
        idle = served.open(TOPIC, 2, 8, at=-1, timestamp_ms=2_000)
        idle.coordinator_epoch = 6
        assert await admin.describe_producers([P0, P1, P2]) == {
            P0: (ProducerState(7, 3, 4, 1_000, None, 5),),
            P1: (),
            P2: (ProducerState(8, 3, 4, 2_000, 6, None),),
        }
        assert [scripted.count(DescribeProducersRequest, node=node) for node in range(3)] == [1, 1, 1]


async def test_the_new_leader_is_asked_when_a_partition_has_moved() -> None:
    async with asking() as (admin, scripted, served):
        served.open(TOPIC, 0, 7, at=5)
        assert len((await admin.describe_producers([P0]))[P0]) == 1
        scripted.move_leader(TOPIC, 0, to=2)
        assert len((await admin.describe_producers([P0]))[P0]) == 1


async def test_partitions_that_cannot_be_described_are_told_with_the_others() -> None:
    async with asking() as (admin, _, served):
        served.partition_errors[P1] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        missing = TopicPartition(TOPIC, 9)
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_producers([P0, P1, missing])
        errors = caught.value.errors
        assert codes(caught.value)[P1] is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert errors[P1].broker_message == "it says why"
        assert isinstance(errors[missing], InvalidPartition)
        assert caught.value.results == {P0: ()}


# ------------------------------------------------------------------------------------------------------------ aborting
async def test_a_marker_is_written_by_the_leader_with_the_numbers_given() -> None:
    async with asking() as (admin, scripted, served):
        served.open(TOPIC, 1, 7, at=5)
        await admin.abort_transaction(P1, 7, 3, 2)
        (marker,) = served.markers
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 2)
        assert not marker.transaction_result, "it aborts"
        assert marker.transaction_version == 0
        assert scripted.count(WriteTxnMarkersRequest, node=1) == scripted.count(WriteTxnMarkersRequest) == 1
        assert (await admin.describe_producers([P1]))[P1][0].transaction_start_offset is None


async def test_an_older_broker_takes_a_marker_without_a_version() -> None:
    async with asking({WriteTxnMarkersRequest: 1}) as (admin, _, served):
        served.open(TOPIC, 1, 7, at=5)
        await admin.abort_transaction(P1, 7, 3, 2)
        assert len(served.markers) == 1


async def test_a_marker_goes_to_the_leader_that_there_is_now() -> None:
    async with asking() as (admin, _, served):
        served.open(TOPIC, 1, 7, at=5)
        served.partition_errors[P1] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await admin.abort_transaction(P1, 7, 3, 2)
        assert len(served.markers) == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ],
)
async def test_a_marker_that_is_refused_says_why(code: ErrorCode) -> None:
    async with asking() as (admin, scripted, served):
        served.open(TOPIC, 1, 7, at=5)
        served.partition_errors[P1] = [code]
        with pytest.raises(BrokerError) as caught:
            await admin.abort_transaction(P1, 7, 3, 2)
        assert caught.value.code is code
        assert "WriteTxnMarkers in orders-1" in str(caught.value)
        assert scripted.count(WriteTxnMarkersRequest) == 1


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
async def test_a_marker_that_may_stand_is_not_written_again(code: ErrorCode) -> None:
    async with asking() as (admin, scripted, served):
        served.open(TOPIC, 1, 7, at=5)
        served.partition_errors[P1] = [code]
        with pytest.raises(MarkerUncertain, match="not known"):
            await admin.abort_transaction(P1, 7, 3, 2)
        assert scripted.count(WriteTxnMarkersRequest) == 1


@pytest.mark.parametrize("how", [disconnect_after, never])
async def test_a_marker_whose_answer_is_lost_is_not_written_again(how: type) -> None:
    """It stands already, and the producer may have begun its next transaction since."""
    async with asking(default_api_timeout_ms=5_000, request_timeout_ms=1_000) as (admin, scripted, served):
        served.open(TOPIC, 1, 7, at=5)
        scripted.on(WriteTxnMarkersRequest, how())
        with pytest.raises(MarkerUncertain) as caught:
            await admin.abort_transaction(P1, 7, 3, 2)
        assert caught.value.partition == P1
        assert "if the transaction is still open there" in str(caught.value)
        assert len(served.markers) == scripted.count(WriteTxnMarkersRequest) == 1


async def test_a_leader_that_cannot_be_reached_is_tried_again() -> None:
    async with asking() as (admin, scripted, served):
        served.open(TOPIC, 1, 7, at=5)
        scripted.brokers[1].stop()
        scripted.network.loop.call_later(2.0, scripted.brokers[1].start)
        await admin.abort_transaction(P1, 7, 3, 2)
        assert len(served.markers) == 1
        scripted.brokers[1].stop()
        with pytest.raises(ClientError) as caught:
            await admin.abort_transaction(P1, 7, 3, 2, timeout_ms=1_000)
        assert isinstance(caught.value, ConnectionFailed), "nothing was sent"


async def test_an_answer_without_the_partition_is_an_error() -> None:
    async with asking() as (admin, scripted, served):
        served.open(TOPIC, 1, 7, at=5)
        scripted.on(WriteTxnMarkersRequest, edited(lambda response: response.markers.clear()))
        with pytest.raises(BrokerError, match="whose answer lacks orders-1"):
            await admin.abort_transaction(P1, 7, 3, 2)
