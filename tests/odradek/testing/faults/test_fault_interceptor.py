"""What a broker does with faults, in the test's own loop: whom they spare, in which order they come, and that a request
that waits is not overtaken, and does not hold up the end of its broker."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from odradek import Admin, Consumer, Producer, TopicPartition
from odradek.broker.handling.interceptors import Proceed
from odradek.broker.server import STOP_S
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.testing import AsyncKafka, RecordedRequest, UnexpectedRequests, cluster, now_s


@pytest.fixture
async def kafka() -> AsyncIterator[AsyncKafka]:
    async with cluster(brokers=2, topics={"orders": 2}) as kafka:
        yield kafka


async def ask(kafka: AsyncKafka, node_id: int, request: Request[Any], version: int | None = None) -> Any:
    """Asks one broker, whoever the controller is."""
    async with Admin(bootstrap_servers=kafka.bootstrap_servers, client_id="app") as admin:
        connection = await admin.cluster.connection_to(node_id, 1000.0 * (asyncio.get_running_loop().time() + 5))
        return await connection.ask(request, version=version)


async def test_brokers_are_spared_unless_they_are_meant(kafka: AsyncKafka) -> None:
    with kafka.faults.fail(api="Fetch", error="UNKNOWN_SERVER_ERROR") as fault:
        await kafka.produce("orders", [{"value": b"a", "partition": 0}, {"value": b"b", "partition": 1}])
        assert fault.count == 0, "followers fetch"
    with kafka.faults.delay(api="Fetch", ms=1, brokers_too=True) as fault:
        await fault.wait_for_count(1)


async def test_what_is_forwarded_is_met_once(kafka: AsyncKafka) -> None:
    """One of the brokers is the controller, to which the other one sends it on."""
    for node_id in kafka.brokers:
        with kafka.faults.delay(api="UnregisterBroker", ms=1) as fault:
            answer = await ask(kafka, node_id, UnregisterBrokerRequest(broker_id=77))
            assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
            assert fault.count == 1
    kafka.requests(api="UnregisterBroker").at_least(2).at_most(2)


async def test_an_error_in_a_fetch_is_told_at_once(kafka: AsyncKafka) -> None:
    """The other partition has nothing to read, for which the Fetch would wait."""
    await kafka.move_leader("orders", 0, 1)
    await kafka.move_leader("orders", 1, 1)
    partitions = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in (0, 1)]
    topics = [FetchTopic(topic="orders", partitions=partitions)]
    fetch = FetchRequest(max_wait_ms=5000, min_bytes=1, topics=topics)
    with kafka.faults.fail(api="Fetch", error="NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0):
        begin_s = now_s()
        answer = await ask(kafka, 1, fetch, 12)
        assert now_s() - begin_s < 4
    codes = {each.partition_index: each.error_code for topic in answer.responses for each in topic.partitions}
    assert codes == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER, 1: 0}


async def test_the_oldest_fault_is_the_outermost(kafka: AsyncKafka) -> None:
    order: list[str] = []

    def noting(name: str) -> Any:
        async def note(request: RecordedRequest, proceed: Proceed) -> Any:
            order.append(f"{name} before")
            answer = await proceed(request.request)
            order.append(f"{name} after")
            return answer

        return note

    kafka.faults.intercept(noting("first"), api="Produce")
    kafka.faults.intercept(noting("second"), api="Produce")
    async with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        await (await producer.send("orders", b"a"))
    assert order == ["first before", "second before", "second after", "first after"]


async def test_a_produce_that_is_held_is_not_overtaken_by_the_next(kafka: AsyncKafka) -> None:
    """Of an idempotent producer the second batch would be refused as out of order."""
    async with Producer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=0) as producer:
        await (await producer.send("orders", b"0", partition=0))
        fault = kafka.faults.hold(api="Produce", times=1)
        sent = [await producer.send("orders", b"1", partition=0)]
        await fault.wait_until_held()
        sent.append(await producer.send("orders", b"2", partition=0))
        await asyncio.sleep(0.02)  # so long the second one could have overtaken
        assert await kafka.records("orders", 1) and not any(each.done() for each in sent)
        fault.release()
        assert [(await each).offset for each in sent] == [1, 2]
    produced = kafka.requests(api="Produce", topic="orders")
    assert [len(each.request.topic_data) for each in produced] == [1, 1, 1], "nothing was sent again"


async def test_a_broker_that_stops_does_not_wait_for_what_is_held(kafka: AsyncKafka) -> None:
    async with Producer(bootstrap_servers=kafka.brokers[1].address, linger_ms=0) as producer:
        fault = kafka.faults.hold(api="Produce", broker=1)
        sent = [await producer.send("orders", b"a", partition=index) for index in (0, 1)]
        await fault.wait_until_held()
        began_s = now_s()
        await kafka.brokers[1].stop()
        assert now_s() - began_s < STOP_S / 2, "it would wait so long for requests that run"
        assert fault.held == 0
        for each in sent:
            await each
        await kafka.brokers[1].start()


async def test_without_a_topic_the_whole_request_fails(kafka: AsyncKafka) -> None:
    async with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        with kafka.faults.fail(api=0, error=ErrorCode.REQUEST_TIMED_OUT, times=1) as fault:
            assert (await (await producer.send("orders", b"a"))).offset == 0
        assert fault.count == 1


async def test_of_a_commit_one_partition_fails(kafka: AsyncKafka) -> None:
    both = {TopicPartition("orders", index): 1 for index in (0, 1)}
    async with Consumer(bootstrap_servers=kafka.bootstrap_servers, group_id="billing") as consumer:
        consumer.assign(both)
        with kafka.faults.fail(
            api="OffsetCommit", error="OFFSET_METADATA_TOO_LARGE", topic="orders", partition=1, group="billing"
        ):
            with pytest.raises(Exception, match="OFFSET_METADATA_TOO_LARGE"):
                await consumer.commit(both)
            assert await kafka.group("billing").committed() == {TopicPartition("orders", 0): 1}


async def test_metadata_says_that_a_topic_has_no_leader(kafka: AsyncKafka) -> None:
    with kafka.faults.fail(api="Metadata", error="LEADER_NOT_AVAILABLE", topic="orders", partition=0, times=1) as fault:
        async with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            assert (await (await producer.send("orders", b"a", partition=0))).offset == 0
        assert fault.count == 1


async def test_requests_are_recorded_with_what_they_are_about(kafka: AsyncKafka) -> None:
    begin_s = now_s()
    async with Producer(bootstrap_servers=kafka.bootstrap_servers, client_id="app") as producer:
        await (await producer.send("orders", b"abc", partition=1))
    [produced] = kafka.requests(api="Produce", client_id="a*", since=begin_s)
    assert produced.topics == (("orders", 1),)
    assert produced.request.topic_data[0].partition_data[0].records[57:61] == (1).to_bytes(4, "big"), "one record"
    kafka.requests(api="Metadata").happened_before(kafka.requests(api="Produce"))
    with pytest.raises(UnexpectedRequests, match=r"Produce v.* of client 'app' .* of orders-1"):
        kafka.requests(api="Produce").none()
    assert not kafka.requests(api="Fetch"), "followers'"
    await kafka.produce("orders", ["by the kit"])
    assert not kafka.requests(since=produced, api="Produce")
