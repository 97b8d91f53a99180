"""What requests are charged, what their answers say, and when their connection is muted: through dispatch, without
sockets, with a clock that stands still unless a test moves it."""

import asyncio
from typing import Any

import pytest

from odradek.broker.access.access import Access, Asker
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import Resource
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.handling.context import Call, Context
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.messages.envelope import EnvelopeRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from odradek.protocol.principal_data import encode_principal
from tests.broker.api import fetching, producing
from tests.broker.support import append, batch
from tests.broker.throttled import LARGE, VERSION, Client, create, limited, set_quotas


def produce(acks: int = 1, records: bytes = LARGE) -> Any:
    return producing.request((0, records), acks=acks)


class Refusing(Access):
    """Nobody may do ClusterAction."""

    is_enforced = True

    def permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
        return operation is not Operation.CLUSTER_ACTION


# -- producers --------------------------------------------------------------------------------------------------------
async def test_a_produce_is_charged_by_its_size_and_its_answer_says_how_long() -> None:
    async with limited({"producer_byte_rate": 2_000.0}) as (context, _):
        client = Client(context)
        told = await client.throttle_ms(produce(), VERSION)
        assert 0 < told < 1_000
        assert client.muted_ms == told
        other = Client(context, user="bob")
        assert await other.throttle_ms(produce(), VERSION) == 0
        assert other.muted_ms == 0


async def test_a_produce_mutes_before_it_is_answered() -> None:
    """Those behind it begin while it waits for replicas: muted later, a client would evade by pipelining."""
    async with limited({"producer_byte_rate": 100.0}) as (context, _):
        client = Client(context)
        seen: list[float] = []
        mute = client.caller.mute

        def note(until_ms: float) -> None:
            seen.append(context.partitions.leader("orders", 0).log.log_end_offset)
            mute(until_ms)

        client.caller.mute = note
        await client.ask(produce(), VERSION)
        assert seen[0] == 0, "nothing is appended yet"


async def test_a_produce_without_an_answer_mutes_as_well() -> None:
    async with limited({"producer_byte_rate": 100.0}) as (context, _):
        client = Client(context)
        assert await client.ask(produce(acks=0), VERSION) is None
        assert client.muted_ms > 1_000


async def test_what_is_refused_is_charged() -> None:
    async with limited({"producer_byte_rate": 100.0}) as (context, _):
        client = Client(context)
        answer: Any = await client.ask(produce(acks=7), VERSION)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert answer.throttle_time_ms > 1_000


async def test_connections_of_a_user_share_its_quota_whatever_they_call_themselves() -> None:
    async with limited({"producer_byte_rate": 20_000.0}) as (context, _):
        small = batch(b"x" * 10_000)
        clients = [Client(context, client_id=f"app-{number}") for number in range(40)]
        for client in clients:  # none of them is new
            client.caller.charged = frozenset({"producer_byte_rate"})
        told = [await client.throttle_ms(produce(records=small), VERSION) for client in clients]
        assert told[:15] == [0] * 15
        assert all(told[21:])


async def test_the_first_produce_of_a_new_connection_waits_for_the_silence_of_others() -> None:
    """Else a client would go on by another connection each time."""
    async with limited({"producer_byte_rate": 1_900.0}) as (context, _):
        first, second = Client(context), Client(context, client_id="another")
        assert 0 < await first.throttle_ms(produce(), VERSION) < 2_000
        begun = asyncio.get_running_loop().time()
        await second.ask(produce(), VERSION)
        assert asyncio.get_running_loop().time() - begun >= first.muted_ms / 1000 - 0.01
        begun = asyncio.get_running_loop().time()
        await second.ask(produce(), VERSION)
        assert asyncio.get_running_loop().time() - begun < first.muted_ms / 1000, "later ones are for its own mute"


async def test_a_wait_for_the_silence_of_others_ends_with_the_broker() -> None:
    async with limited({"producer_byte_rate": 10.0}) as (context, _):
        await Client(context).ask(produce(), VERSION)
        waiting = asyncio.get_running_loop().create_task(Client(context).ask(produce(), VERSION))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        context.stop()
        async with asyncio.timeout(5):
            await waiting


# -- consumers --------------------------------------------------------------------------------------------------------
async def test_a_fetch_that_is_too_much_is_empty_and_not_charged() -> None:
    async with limited({"consumer_byte_rate": 3_000.0}) as (context, clock):
        append(context.partitions.leader("orders", 0), LARGE)
        client = Client(context)
        asked = fetching.request(fetching.wanted())
        first: Any = await client.ask(asked, fetching.BY_NAME)
        assert (first.throttle_time_ms, len(first.responses[0].partitions[0].records) > 20_000) == (0, True)
        second: Any = await client.ask(asked, fetching.BY_NAME)
        assert second.responses == []
        assert 0 < second.throttle_time_ms == client.muted_ms
        assert context.quotas is not None
        [use] = context.quotas.quotas.consumer.uses(1, int(clock.ms))
        assert use.amount * 10 < 21_000, "once, over the ten seconds that count"
        clock.ms += 12_000
        third: Any = await client.ask(asked, fetching.BY_NAME)
        assert third.responses, "what was not sent has cost nothing"
        assert third.throttle_time_ms == 0


async def test_a_session_goes_on_behind_an_empty_answer() -> None:
    async with limited({"consumer_byte_rate": 3_000.0}) as (context, clock):
        append(context.partitions.leader("orders", 0), LARGE)
        client = Client(context)
        first: Any = await client.ask(fetching.request(fetching.wanted(), session=(0, 0)), fetching.BY_NAME)
        assert first.session_id > 0
        again = fetching.request(fetching.wanted(), session=(first.session_id, 1))
        second: Any = await client.ask(again, fetching.BY_NAME)
        assert (second.session_id, second.error_code, second.responses) == (first.session_id, 0, [])
        clock.ms += 12_000
        third: Any = await client.ask(fetching.request(session=(first.session_id, 2)), fetching.BY_NAME)
        assert third.responses[0].partitions[0].records


async def test_an_answer_is_no_larger_than_a_client_may_have_at_once() -> None:
    async with limited({"consumer_byte_rate": 500.0}) as (context, _):
        for _ in range(20):
            append(context.partitions.leader("orders", 0), batch(b"y" * 1_000))
        answer: Any = await Client(context).ask(fetching.request(fetching.wanted()), fetching.BY_NAME)
        assert answer.throttle_time_ms == 0
        assert 3_000 < len(answer.responses[0].partitions[0].records) <= 5_000


async def test_a_batch_that_is_larger_than_that_is_sent_to_who_has_had_nothing() -> None:
    """In Kafka such a consumer gets nothing ever after."""
    async with limited({"consumer_byte_rate": 100.0}) as (context, clock):
        append(context.partitions.leader("orders", 0), LARGE)
        client = Client(context)
        asked = fetching.request(fetching.wanted())
        first: Any = await client.ask(asked, fetching.BY_NAME)
        assert first.responses[0].partitions[0].records
        assert first.throttle_time_ms > 100_000
        second: Any = await client.ask(asked, fetching.BY_NAME)
        assert second.responses == []
        clock.ms += client.muted_ms
        third: Any = await client.ask(asked, fetching.BY_NAME)
        assert third.responses[0].partitions[0].records


# -- time of the loop's thread ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (MetadataRequest(topics=None), 9),
        (FindCoordinatorRequest(key="g"), 1),
        (OffsetForLeaderEpochRequest(topics=[]), 4),
        (ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3),
        (create("new"), 5),
        (produce(records=batch(b"x")), VERSION),
        (fetching.request(fetching.wanted()), fetching.BY_NAME),
    ],
)
async def test_every_api_counts_for_the_time_it_takes(request_: Request[Any], version: int) -> None:
    async with limited({"request_percentage": 1.0}) as (context, clock):
        clock.look_s = 0.05
        client = Client(context)
        told = [await client.throttle_ms(request_, version) for _ in range(3)]
        assert max(told) == 1_000, "one window at most"
        assert client.muted_ms == 1_000


async def test_a_produce_without_an_answer_counts_for_its_time() -> None:
    """In Kafka it does not."""
    async with limited({"request_percentage": 1.0}) as (context, clock):
        clock.look_s = 0.05
        client = Client(context)
        for _ in range(3):
            await client.ask(produce(acks=0, records=batch(b"x")), VERSION)
        assert client.muted_ms == 1_000


async def test_the_time_after_an_answer_was_made_is_charged_to_the_next_request() -> None:
    async with limited({"request_percentage": 100.0}) as (context, clock):
        clock.look_s = 1.0
        client = Client(context)
        await client.ask(MetadataRequest(topics=None), 9)
        assert context.quotas is not None
        [use] = context.quotas.quotas.request.uses(1, int(clock.ms))
        [api] = [metrics for name, metrics in context.metrics.apis.items() if name == "Metadata"]
        assert use.amount * 10 == pytest.approx(api.local.sum * 100), "all of the handler's time, in percent"


async def test_what_has_failed_is_charged() -> None:
    async with limited({"request_percentage": 1.0}) as (context, clock):
        clock.look_s = 0.05
        client = Client(context)
        unknown = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
        told = [await client.throttle_ms(unknown, 12) for _ in range(3)]
        assert max(told) == 1_000


async def test_nobody_is_charged_before_it_is_known_who_asks() -> None:
    async with limited({"request_percentage": 1.0}, "ANONYMOUS") as (context, clock):
        clock.look_s = 0.05
        client = Client(context, user="ANONYMOUS")
        client.caller.protocol = SecurityProtocol.SASL_SSL
        asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        assert [await client.throttle_ms(asked, 3) for _ in range(3)] == [0] * 3
        client.caller.protocol = SecurityProtocol.PLAINTEXT
        assert max([await client.throttle_ms(asked, 3) for _ in range(3)]) == 1_000


# -- brokers ----------------------------------------------------------------------------------------------------------
def heartbeat(context: Context) -> BrokerHeartbeatRequest:
    epoch = context.metadata.image.brokers[1].epoch
    return BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=0)


async def test_brokers_are_not_charged() -> None:
    async with limited({"request_percentage": 1.0}, None) as (context, clock):
        clock.look_s = 0.05
        broker = Client(context, user="broker", client_id="broker-1")
        hello = ApiVersionsRequest(client_software_name="odradek", client_software_version="1")
        assert await broker.throttle_ms(hello, 3) == 0
        assert [await broker.throttle_ms(heartbeat(context), 0) for _ in range(5)] == [0] * 5
        assert broker.muted_ms == 0
        assert max([await broker.throttle_ms(hello, 3) for _ in range(3)]) == 1_000, "it has greeted already"


@pytest.mark.parametrize("client_id", ["broker-1", "broker-0"])
async def test_who_merely_calls_himself_like_a_broker_is_charged(client_id: str) -> None:
    async with limited({"request_percentage": 1.0}, None, access=Refusing()) as (context, clock):
        clock.look_s = 0.05
        client = Client(context, user="broker-1", client_id=client_id)
        told = [await client.throttle_ms(heartbeat(context), 0) for _ in range(3)]
        assert max(told) == 1_000
        told = [await client.throttle_ms(MetadataRequest(topics=None), 9) for _ in range(3)]
        assert max(told) == 1_000


async def test_who_asks_on_another_listener_is_no_broker() -> None:
    async with limited({"request_percentage": 1.0}, None) as (context, clock):
        clock.look_s = 0.05
        client = Client(context, client_id="broker-1")
        client.caller.listener = "EXTERNAL"
        hello = ApiVersionsRequest(client_software_name="odradek", client_software_version="1")
        assert max([await client.throttle_ms(hello, 3) for _ in range(3)]) == 1_000
        clock.ms += 60_000
        for _ in range(3):
            await client.ask(WriteTxnMarkersRequest(markers=[]), 1)
        assert client.muted_ms == 1_000


async def test_what_a_broker_sends_on_is_charged_to_its_client_and_mutes_nobody() -> None:
    async with limited({"request_percentage": 1.0}) as (context, clock):
        clock.look_s = 0.05
        broker = Client(context, user="broker", client_id="broker-1")
        frame = b"".join(
            request_frame(RequestHeader(64, 0, 3, "app"), True, encode_parts(UnregisterBrokerRequest(broker_id=9), 0))
        )[4:]
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal("User", "alice"),
            client_host_address=bytes((192, 0, 2, 1)),
        )
        told: list[int] = []
        for _ in range(3):
            answer = await broker.ask(envelope, 0)
            assert answer is not None and answer.response_data is not None
            body = bytes(answer.response_data)
            _, position = read_response_header(body, True)
            told.append(decode(UnregisterBrokerRequest.response_type, 0, body, position).throttle_time_ms)
        assert max(told) == 1_000
        assert broker.muted_ms == 0


async def test_what_another_broker_says_of_a_quota_is_passed_on() -> None:
    """The controller has charged it, and its answer is handed to the client by this broker."""
    async with limited({"producer_byte_rate": 1.0}) as (context, clock):
        assert context.quotas is not None
        client = Client(context)
        answer = MetadataRequest.response_type(brokers=[], topics=[], throttle_time_ms=250)
        given: Any = context.quotas.answered(call_of(client), answer)
        assert given.throttle_time_ms == 250
        assert client.muted_until_ms == clock.ms + 250


def call_of(client: Client) -> Call:
    times = RequestTimes(0.0, 0)
    times.understood("Metadata", 9, 0.0)
    return Call(client.caller, 9, 7, client.client_id, times)


# -- what is set ------------------------------------------------------------------------------------------------------
async def test_without_quotas_nothing_is_there() -> None:
    async with limited({"producer_byte_rate": 1.0}) as (context, _):
        assert context.quotas is not None
        await set_quotas(context, {}, "alice")
        assert context.quotas is None
        client = Client(context)
        assert await client.throttle_ms(produce(), VERSION) == 0
        assert client.muted_ms == 0


async def test_answers_of_before_that_field_are_sent_and_their_connection_muted() -> None:
    async with limited({"request_percentage": 1.0}) as (context, clock):
        clock.look_s = 0.05
        client = Client(context)
        for _ in range(3):
            assert await client.ask(MetadataRequest(topics=[]), 1) is not None
        assert client.muted_ms == 1_000
