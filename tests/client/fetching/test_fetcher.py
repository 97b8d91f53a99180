"""The plain Fetch loop on a scripted cluster in memory and virtual time: records, ends, errors, moves and limits."""

import traceback
from typing import Any, NoReturn

import pytest

from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import (
    AuthenticationFailed,
    AuthorizationError,
    BrokerError,
    ClientError,
    UnknownTopic,
    UnsupportedVersion,
)
from odradek.client.fetching.config import FetchConfig
from odradek.client.fetching.fetch_settings import FetchSettings, Start
from odradek.client.fetching.fetcher import settings_of
from odradek.client.fetching.positions import OffsetOutOfRange, Positions
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from tests.client.broker_faults import disconnect_after, disconnect_before, edited, garbage, late, never
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import P0, P1, P2, TOPIC, fetching, read, reading_cluster, values

pytestmark = pytest.mark.virtual_time


async def test_partitions_are_read_from_their_leaders_to_their_ends() -> None:
    async with reading_cluster() as (scripted, _):
        for index in range(3):
            fill(scripted, TOPIC, index, values(10), values(5, "w"))
        async with fetching(scripted) as fetcher:
            for partition in (P0, P1, P2):
                fetcher.assign(partition, Start.earliest(), 15)
            assert await read(fetcher) == dict.fromkeys(range(3), values(10) + values(5, "w"))
            assert fetcher.position(P1) == 15
        for node in range(3):
            topics = [topic for request in scripted.requests(FetchRequest, node=node) for topic in request.topics]
            assert {each.partition for topic in topics for each in topic.partitions} == {node}


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (Start.earliest(), 2),
        (Start.latest(), 10),
        (Start.at_offset(7), 7),
        (Start(None, 1_004), 4),
        (Start(None, 5_000), 10),
    ],
)
async def test_every_start_finds_its_offset(start: Start, first: int) -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(6), values(4))
        scripted.log(TOPIC).delete_before(2)
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, start, 11)
            if first < 10:
                batch = await fetcher.next(1_000)
                assert batch is not None
                assert batch.records[0].offset == first
            while await fetcher.next(1_000) is not None:
                assert fetcher.position(P0) <= 10
            fill(scripted, TOPIC, 0, [b"new"])
            assert await read(fetcher) == {0: [b"new"]}


async def test_new_records_come_to_who_waits_for_them() -> None:
    async with reading_cluster(1, 1) as (scripted, _), fetching(scripted) as fetcher:
        fetcher.assign(P0, Start.earliest())
        assert await fetcher.next(500) is None
        assert not fetcher.is_finished
        fill(scripted, TOPIC, 0, [b"later"])
        batch = await fetcher.next(500)
        assert batch is not None
        assert [record.value for record in batch.records] == [b"later"]


async def test_a_topic_is_fetched_by_its_id_where_known_and_under_its_leader_epoch() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        scripted.move_leader(TOPIC, 0, to=0)
        scripted.move_leader(TOPIC, 0, to=0)
        fill(scripted, TOPIC, 0, values(3))
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest(), 3)
            assert await read(fetcher) == {0: values(3)}
        [exchange] = scripted.exchanges_of(FetchRequest)
        assert exchange.version == FetchRequest.max_version
        [topic] = scripted.requests(FetchRequest)[0].topics
        assert (topic.topic, topic.topic_id) == ("", scripted.topics[TOPIC].topic_id)
        assert topic.partitions[0].current_leader_epoch == 2
        assert scripted.requests(ListOffsetsRequest)[0].topics[0].partitions[0].current_leader_epoch == 2


async def test_a_topic_without_an_id_is_named_by_its_name() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        scripted.brokers[0].versions[MetadataRequest] = (0, 9)
        fill(scripted, TOPIC, 0, values(3))
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest(), 3)
            assert await read(fetcher) == {0: values(3)}
        [exchange] = scripted.exchanges_of(FetchRequest)
        assert (exchange.version, scripted.requests(FetchRequest)[0].topics[0].topic) == (12, TOPIC)


async def test_a_moved_leader_is_followed_by_the_hint_at_once() -> None:
    async with reading_cluster(2, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.at_offset(0), 6)
            assert await fetcher.next(1_000) is not None
            metadata_before = scripted.count(MetadataRequest)
            scripted.brokers[0].freeze_metadata()
            scripted.brokers[1].freeze_metadata()
            scripted.move_leader(TOPIC, 0, to=1)
            fill(scripted, TOPIC, 0, values(3))
            assert await read(fetcher, 2_000) == {0: values(3)}
            assert scripted.count(FetchRequest, node=1) >= 1
            assert scripted.count(MetadataRequest) > metadata_before, "and metadata is asked for nevertheless"


@pytest.mark.parametrize("fault", [disconnect_before(), disconnect_after(), garbage(b"HTTP/1.1 400"), never()])
async def test_a_lost_answer_is_fetched_again(fault: Any) -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        scripted.on(FetchRequest, fault, times=2)
        scripted.on(ListOffsetsRequest, fault, times=2)
        async with fetching(scripted, request_timeout_ms=2_000) as fetcher:
            fetcher.assign(P0, Start.earliest(), 3)
            assert await read(fetcher) == {0: values(3)}


async def test_a_leader_that_comes_back_is_read_from_again() -> None:
    async with reading_cluster(2, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest(), 6)
            assert await fetcher.next(1_000) is not None
            scripted.brokers[0].stop(fenced=True)
            assert await fetcher.next(20_000) is None
            scripted.brokers[0].start()
            fill(scripted, TOPIC, 0, values(3))
            assert await read(fetcher) == {0: values(3)}


@pytest.mark.parametrize("code", [3, 6, 9, 56, 74, 75, 78, 100, 103, -1])
async def test_errors_that_pass_are_waited_for(code: int) -> None:
    async with reading_cluster(1, 2) as (scripted, reading):
        fill(scripted, TOPIC, 0, values(3))
        fill(scripted, TOPIC, 1, values(4))
        reading.errors[TOPIC, 0] = [0, code, code]
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest(), 3)
            fetcher.assign(P1, Start.earliest(), 4)
            assert await read(fetcher) == {0: values(3), 1: values(4)}
        assert reading.errors[TOPIC, 0] == []


async def test_an_error_that_stays_is_raised_once_and_other_partitions_go_on() -> None:
    async with reading_cluster(1, 2) as (scripted, reading):
        fill(scripted, TOPIC, 1, values(4))
        reading.errors[TOPIC, 0] = [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest(), 3)
            fetcher.assign(P1, Start.earliest(), 4)
            seen: list[str] = []
            while not fetcher.is_finished:
                try:
                    batch = await fetcher.next(5_000)
                    seen += ["records"] if batch is not None else []
                except AuthorizationError as error:
                    seen.append(str(error.code))
            assert sorted(seen) == sorted(["records", str(ErrorCode.TOPIC_AUTHORIZATION_FAILED)])


async def test_a_topic_that_is_not_there_is_an_error_after_the_time_that_is_given() -> None:
    async with reading_cluster(1, 1) as (scripted, _), fetching(scripted, retry_timeout_ms=3_000) as fetcher:
        fetcher.assign(TopicPartition("nowhere", 0), Start.earliest())
        began_ms = scripted.environment.monotonic_ms()
        with pytest.raises(UnknownTopic):
            await fetcher.next(60_000)
        assert 2_900 <= scripted.environment.monotonic_ms() - began_ms <= 4_500
        assert scripted.count(MetadataRequest) < 20


async def test_a_topic_that_is_deleted_meanwhile_is_an_error_too() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        async with fetching(scripted, retry_timeout_ms=3_000) as fetcher:
            fetcher.assign(P0, Start.earliest())
            assert await fetcher.next(1_000) is not None
            scripted.delete_topic(TOPIC)
            with pytest.raises(BrokerError) as caught:
                await fetcher.next(60_000)
            assert caught.value.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_a_topic_created_again_is_not_mistaken_for_the_old_one() -> None:
    """By its id (KIP-516): the old id is unknown, and metadata brings the new one, whose log is shorter."""
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(5))
        async with fetching(scripted, auto_offset_reset="earliest") as fetcher:
            fetcher.assign(P0, Start.earliest(), 7)
            assert await fetcher.next(1_000) is not None
            scripted.delete_topic(TOPIC)
            scripted.create_topic(TOPIC, 1)
            fill(scripted, TOPIC, 0, values(2, "new"))
            batch = await fetcher.next(10_000)
            assert batch is not None
            assert [record.value for record in batch.records] == values(2, "new")


async def test_an_offset_that_retention_has_taken_goes_by_the_policy(caplog: pytest.LogCaptureFixture) -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(4), values(4, "w"))
        scripted.log(TOPIC).delete_before(4)
        async with fetching(scripted, auto_offset_reset="earliest") as fetcher:
            fetcher.assign(P0, Start.at_offset(1), 8)
            assert await read(fetcher) == {0: values(4, "w")}
        assert "orders-0 has no offset 1: reading goes on at its earliest offset" in caplog.text
        async with fetching(scripted, auto_offset_reset="none") as fetcher:
            fetcher.assign(P0, Start.at_offset(1), 8)
            with pytest.raises(OffsetOutOfRange):
                await fetcher.next(1_000)


async def test_older_brokers_are_asked_by_names_and_without_epochs() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        scripted.brokers[0].versions |= {FetchRequest: (4, 4), ListOffsetsRequest: (1, 1), MetadataRequest: (0, 4)}
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest(), 3)
            assert await read(fetcher) == {0: values(3)}


async def test_a_broker_that_does_not_know_fetch_is_told() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        del scripted.brokers[0].versions[FetchRequest]
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.at_offset(0))
            with pytest.raises(ClientError, match="does not know Fetch"):
                await fetcher.next(5_000)


async def test_a_broker_that_cannot_say_where_open_transactions_begin_is_told() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        scripted.brokers[0].versions[ListOffsetsRequest] = (1, 1)
        async with fetching(scripted, isolation_level="read_committed") as fetcher:
            fetcher.assign(P0, Start.latest())
            with pytest.raises(UnsupportedVersion, match="ListOffsets"):
                await fetcher.next(5_000)


async def test_damaged_records_are_an_error_that_names_their_offset() -> None:
    def damage(response: Any) -> None:
        part = response.responses[0].partitions[0]
        part.records = bytes(part.records[:-1]) + bytes([part.records[-1] ^ 1])

    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        scripted.on(FetchRequest, edited(damage))
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest(), 3)
            with pytest.raises(ClientError, match="orders-0 from offset 0"):
                await fetcher.next(5_000)
            fetcher.assign(P0, Start.at_offset(0), 3)
            assert await read(fetcher) == {0: values(3)}


async def test_what_ends_all_reading_is_raised_by_every_call_in_a_copy_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with reading_cluster(1, 1) as (scripted, _), fetching(scripted) as fetcher:
        kept = AuthenticationFailed("broker 0", "SASL PLAIN", "wrong password")
        monkeypatch.setattr(Cluster, "fatal_error", kept)
        fetcher.assign(P0, Start.earliest())
        raised: list[ClientError] = [kept]
        for _ in range(3):
            with pytest.raises(AuthenticationFailed, match="wrong password") as caught:
                await fetcher.next(1_000)
            raised.append(caught.value)
        assert len({id(error) for error in raised}) == 4
        assert kept.__traceback__ is None


async def test_a_mistake_of_ours_is_raised_by_every_call_with_its_cause_and_does_not_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with reading_cluster(1, 1) as (scripted, _), fetching(scripted) as fetcher:
        mistake = KeyError("x")

        def unplaced(_: Positions, now_ms: float) -> NoReturn:
            raise mistake

        monkeypatch.setattr(Positions, "unplaced", unplaced)
        fetcher.assign(P0, Start.earliest())
        depths: set[int] = set()
        for _ in range(3):
            with pytest.raises(RuntimeError, match="KeyError") as caught:
                await fetcher.next(1_000)
            assert caught.value.__cause__ is mistake
            depths.add(len(list(traceback.walk_tb(mistake.__traceback__))))
        assert len(depths) == 1


async def test_closing_drops_what_is_under_way_and_frees_who_waits() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        scripted.on(FetchRequest, late(1_000), times=None)
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.earliest())
            scripted.environment.loop.call_later(0.5, fetcher.close)
            began_ms = scripted.now_ms()
            assert await fetcher.next(60_000) is None
            assert scripted.now_ms() - began_ms < 600
            await scripted.environment.sleep(3_000)
            assert scripted.count(FetchRequest) == 1


async def test_settings_come_from_a_configuration() -> None:
    config = FetchConfig("localhost:1", fetch_max_wait_ms=7, isolation_level="read_committed", default_api_timeout_ms=9)
    settings = settings_of(config, auto_offset_reset="none")
    assert (settings.fetch_max_wait_ms, settings.read_committed, settings.retry_timeout_ms) == (7, True, 9)
    assert settings.auto_offset_reset == "none"
    assert settings_of(config, retry_timeout_ms=5).retry_timeout_ms == 5
    assert settings_of(FetchConfig("localhost:1")) == FetchSettings()


async def test_why_partitions_give_nothing_is_told_meanwhile() -> None:
    """Those first that have failed for longest; an answer with records ends it."""

    def refuse(response: Any) -> None:
        for partition in (each for topic in response.responses for each in topic.partitions):
            partition.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            partition.records = None

    async with reading_cluster(1, 2) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        scripted.on(FetchRequest, edited(refuse), times=5)
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.at_offset(1), 3)
            assert await fetcher.next(200) is None
            [error] = fetcher.failing()
            assert error.message.startswith("Fetch of orders-0 at offset 1 failed with UNKNOWN_SERVER_ERROR")
            assert await read(fetcher) == {0: values(3)[1:]}
            assert fetcher.failing() == []
