"""How connections come and go: backoff, idleness, addresses that change, brokers that are gone, authentication, end."""

import asyncio
import logging
from typing import cast

import pytest

from odradek.client.cluster.topic_metadata import Node
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import (
    AuthenticationFailed,
    ClientError,
    ConfigError,
    ConnectionFailed,
    UnsupportedVersion,
)
from odradek.client.network.connection import Connection
from tests.client.nodes_scene import FakeConnection, Scene, gaps, scene
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time


# ------------------------------------------------------------------------------------------------- coming into being
async def test_a_connection_is_opened_once_and_kept() -> None:
    async with scene() as found:
        found.name(1, 2)
        assert found.nodes.get(1) is None
        assert found.nodes.get(1) is None
        assert found.nodes.retry_at_ms(1) == float("inf")
        await asyncio.sleep(0.01)
        connection = found.nodes.get(1)
        assert connection is not None
        assert [each[1:] for each in found.opener.attempts] == [(1, "h1", 9092, 10_000)]
        assert (found.changes, found.losses) == (1, 0)
        assert found.nodes.retry_at_ms(1) <= found.now_ms()


async def test_the_backoff_doubles_with_each_failure_up_to_its_maximum() -> None:
    async with scene() as found:
        found.name(1)
        found.opener.failures[1] = ConnectionFailed("broker 1", "refused")
        times = await found.insist(1, 5_000)
        # 1 ms for the attempt, and up to 1 ms until the sender looks again.
        assert gaps(times)[:7] == pytest.approx([51, 101, 201, 401, 801, 1001, 1001], abs=1.5)
        assert found.losses == found.changes == len(times)
        assert found.nodes.retry_at_ms(1) > found.now_ms() or found.nodes.retry_at_ms(1) == float("inf")
        assert "refused" in found.nodes.problems()


async def test_the_time_to_connect_doubles_too() -> None:
    async with scene(socket_connection_setup_timeout_max_ms=35_000) as found:
        found.name(1)
        found.opener.failures[1] = ConnectionFailed("broker 1", "timed out")
        await found.insist(1, 1_000)
        assert [each[4] for each in found.opener.attempts][:4] == pytest.approx([10_000, 20_000, 35_000, 35_000])
        found.opener.failures.clear()
        (await found.open(1)).lose()
        await found.insist(1, 2_000)
        assert found.opener.attempts[-1][4] == 10_000


async def test_failures_are_forgotten_once_a_connection_has_lasted_a_while_not_when_opened() -> None:
    async with scene() as found:
        found.name(1)
        waits: list[float] = []
        for _ in range(4):
            (await found.open(1)).lose()
            lost_ms = found.now_ms()
            await asyncio.sleep(0.001)
            waits.append(found.nodes.retry_at_ms(1) - lost_ms)
        connection = await found.open(1)
        await asyncio.sleep(1)
        connection.lose()
        lost_ms = found.now_ms()
        await asyncio.sleep(0.001)
        waits.append(found.nodes.retry_at_ms(1) - lost_ms)
        assert waits == pytest.approx([50, 100, 200, 400, 50], abs=0.1)


async def test_a_connection_that_is_lost_while_it_is_opened_is_a_failure() -> None:
    async with scene() as found:
        found.name(1)

        async def opener(*_: object) -> Connection:
            connection = FakeConnection(1, "h1", found.now_ms())
            connection.lose()
            return cast(Connection, connection)

        found.nodes._opener = opener  # pyright: ignore[reportPrivateUsage]
        times = await found.insist(1, 200)
        assert times == []
        assert found.losses > 1
        assert "as soon as it was open" in found.nodes.problems()


async def test_an_opener_that_breaks_off_is_a_failure_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async with scene() as found:
        found.name(1)

        async def opener(*_: object) -> Connection:
            raise LookupError("a mistake of ours")

        found.nodes._opener = opener  # pyright: ignore[reportPrivateUsage]
        await found.insist(1, 100)
        assert found.losses == 2
        assert "a mistake of ours" in caplog.text


async def test_the_first_second_fourth_failure_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "odradek.client.cluster.nodes")
    async with scene() as found:
        found.name(1)
        found.opener.failures[1] = ConnectionFailed("broker 1", "refused")
        await found.insist(1, 10_000)
        levels = [each.levelno for each in caplog.records if "in a row" in each.message][:9]
        warned = [index + 1 for index, level in enumerate(levels) if level == logging.WARNING]
        assert warned == [1, 2, 4, 8]


async def test_a_connection_lost_once_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "odradek.client.cluster.nodes")
    async with scene() as found:
        found.name(1)
        for _ in range(3):
            (await found.open(1)).lose()
            await asyncio.sleep(0.001)
        levels = [each.levelno for each in caplog.records if "in a row" in each.message]
        assert levels == [logging.INFO, logging.WARNING, logging.DEBUG]


async def test_there_are_no_connections_to_strangers() -> None:
    async with scene() as found:
        found.name(1)
        assert found.nodes.get(2) is None
        assert found.nodes.get(-1) is None
        assert found.nodes.retry_at_ms(2) == float("inf")
        await asyncio.sleep(1)
        assert found.opener.attempts == []


# ---------------------------------------------------------------------------------------------------------- throttled
async def test_the_end_of_a_silence_is_told_to_who_has_asked() -> None:
    async with scene() as found:
        found.name(1)
        connection = await found.open(1)
        connection.throttled_until_ms = found.now_ms() + 500
        changes = found.changes
        await asyncio.sleep(0.6)
        assert found.changes == changes, "nobody has asked"
        connection.throttled_until_ms = until_ms = found.now_ms() + 500
        assert found.nodes.get(1) is None
        assert found.nodes.get(1) is None
        assert found.nodes.retry_at_ms(1) == until_ms
        assert found.nodes.next_chance_ms() == until_ms
        await asyncio.sleep(0.6)
        assert found.changes == changes + 1
        connection.throttled_until_ms = found.now_ms() + 500
        assert found.nodes.get(1) is None
        connection.lose()
        await asyncio.sleep(0.6)
        assert found.changes == changes + 2, "once for its end, and not for that of the silence"


async def test_a_connection_that_has_ended_but_was_not_reported_is_none() -> None:
    async with scene() as found:
        found.name(1)
        connection = await found.open(1)
        connection.lose()
        assert found.nodes.get(1) is None
        assert found.nodes.retry_at_ms(1) == float("inf")
        await asyncio.sleep(0.001)
        assert found.nodes.retry_at_ms(1) < float("inf")


# ------------------------------------------------------------------------------------------- brokers come, move, and go
async def test_a_broker_that_moved_is_dropped_and_connected_to_anew_without_backoff() -> None:
    async with scene() as found:
        found.name(1, 2)
        connection = await found.open(1)
        other = await found.open(2)
        connection.in_flight = 5
        changes, losses = found.changes, found.losses
        found.name(Node(1, "h1", 9093), 2)
        assert not connection.is_open
        assert "it is at h1:9093 now" in str(connection.why)
        assert other.is_open
        await found.open(1)
        assert found.opener.attempts[-1][1:4] == (1, "h1", 9093)
        assert (found.changes - changes, found.losses) == (1, losses), "that is no failure"


async def test_an_attempt_at_an_old_address_is_given_up() -> None:
    async with scene() as found:
        found.opener.takes_ms = 5_000
        found.name(1)
        found.nodes.get(1)
        await asyncio.sleep(1)
        found.name(Node(1, "new", 1))
        found.nodes.get(1)
        await asyncio.sleep(0)
        assert found.opener.cancelled == 1
        await asyncio.sleep(5.1)
        assert [each.host for each in found.opener.opened] == ["new"]
        assert found.losses == 0


async def test_a_broker_that_is_gone_is_left_when_nothing_is_in_flight_any_more() -> None:
    async with scene() as found:
        found.name(1, 2)
        busy, idle = await found.open(1), await found.open(2)
        busy.in_flight = 1
        found.name(3)
        assert not idle.is_open
        assert busy.is_open
        await asyncio.sleep(3)
        assert busy.is_open
        busy.in_flight = 0
        busy.last_used_ms = found.now_ms()
        await asyncio.sleep(0.3)
        assert not busy.is_open
        assert found.losses == 0
        await asyncio.sleep(1)
        assert found.nodes.get(1) is None
        await asyncio.sleep(0.1)
        assert len(found.opener.attempts) == 2


async def test_a_broker_that_is_back_in_time_keeps_its_connection_and_its_backoff() -> None:
    async with scene() as found:
        found.name(1, 2)
        connection = await found.open(1)
        connection.in_flight = 1
        found.opener.failures[2] = ConnectionFailed("broker 2", "refused")
        await found.insist(2, 2_000)
        found.name(3)
        found.name(1, 2)
        connection.in_flight = 0
        await asyncio.sleep(0.5)
        assert connection.is_open
        last_ms = found.opener.attempts[-1][0]
        assert (await found.insist(2, 1_000))[0] - last_ms == pytest.approx(1_001, abs=1.5)


async def test_a_broker_that_is_gone_is_neither_asked_nor_connected_to_nor_blamed() -> None:
    async with scene() as found:
        found.name(1, 2)
        (await found.open(1)).in_flight = 1
        found.opener.failures[2] = ConnectionFailed("broker 2", "refused")
        await found.insist(2, 2_000)
        found.name(3)
        link = found.nodes.least_loaded()
        assert link is not None
        assert link.node_id == 3
        assert found.nodes.retry_at_ms(2) == float("inf")
        assert found.nodes.problems() == ""
        assert 2 in found.nodes._links, "with its backoff"  # pyright: ignore[reportPrivateUsage]
        assert await found.insist(2, 1_500) == []
        found.name(3)
        assert 2 not in found.nodes._links, "and forgotten after that"  # pyright: ignore[reportPrivateUsage]


async def test_a_broker_that_is_connected_to_is_no_problem_any_more() -> None:
    async with scene() as found:
        found.name(1)
        found.opener.failures[1] = ConnectionFailed("broker 1", "refused")
        await found.insist(1, 100)
        found.opener.failures.clear()
        found.opener.takes_ms = 200
        await found.insist(1, 150)
        assert "has not been reached for" in found.nodes.problems()
        await found.open(1)
        assert found.nodes.problems() == ""


async def test_an_attempt_at_a_broker_that_is_gone_is_given_up() -> None:
    async with scene() as found:
        found.opener.takes_ms = 5_000
        found.name(1)
        found.nodes.get(1)
        await asyncio.sleep(1)
        found.name(2)
        await asyncio.sleep(0.1)
        assert found.opener.cancelled == 1
        assert len(found.tasks) == 0


# --------------------------------------------------------------------------------------------------------- idleness
async def test_connections_that_nobody_uses_are_closed_without_fuss() -> None:
    async with scene(connections_max_idle_ms=10_000) as found:
        found.name(1, 2)
        used, unused = await found.open(1), await found.open(2)
        changes = found.changes
        for _ in range(9):
            await asyncio.sleep(1)
            used.last_used_ms = found.now_ms()
        await asyncio.sleep(1.01)
        assert used.is_open
        assert not unused.is_open
        assert "not used for 10000 ms" in str(unused.why)
        await asyncio.sleep(7.9)
        assert used.is_open
        used.in_flight = 1
        await asyncio.sleep(30)
        assert used.is_open
        used.in_flight = 0
        used.last_used_ms = found.now_ms()
        await asyncio.sleep(9.9)
        assert used.is_open
        await asyncio.sleep(0.4)
        assert not used.is_open
        assert (found.changes, found.losses) == (changes, 0)
        await found.open(1)


async def test_each_connection_is_idle_for_itself() -> None:
    async with scene(connections_max_idle_ms=10_000) as found:
        found.name(1, 2)
        first = await found.open(1)
        await asyncio.sleep(6)
        second = await found.open(2)
        await asyncio.sleep(4.01)
        assert (first.is_open, second.is_open) == (False, True)
        await asyncio.sleep(6)
        assert not second.is_open


async def test_connections_can_be_kept_for_ever() -> None:
    async with scene(connections_max_idle_ms=-1) as found:
        found.name(1)
        connection = await found.open(1)
        await asyncio.sleep(3_000)
        assert connection.is_open


# ------------------------------------------------------------------------------------------------ bootstrap servers
async def test_bootstrap_servers_are_listed_until_brokers_are_named() -> None:
    async with scene(servers=["b1:1", "b2:2", "b3:3"]) as found:
        assert found.nodes.least_loaded() is None
        assert found.nodes.bootstrap()
        assert not found.nodes.bootstrap()
        asked: set[int] = set()
        for seed in range(30):
            found.environment.rng.seed(seed)
            link = found.nodes.least_loaded()
            assert link is not None
            asked.add(link.node_id)
        connection = await found.open(-2)
        assert connection.host == "b2"
        found.name(1)
        assert not connection.is_open
        assert found.nodes.get(-1) is None
        assert found.nodes.bootstrap(), "again"
        link = found.nodes.least_loaded()
        assert link is not None


async def test_which_bootstrap_server_is_first_is_chance() -> None:
    environment = VirtualEnvironment()
    found = Scene(environment, ClientConfig(["b1:1", "b2:2", "b3:3"], client_id="test"))
    found.nodes.bootstrap()
    first = {link.node_id for link in (found.nodes.least_loaded() for _ in range(100)) if link is not None}
    assert first == {-1, -2, -3}
    await found.nodes.close()


async def test_bootstrap_servers_keep_their_backoff_from_one_time_to_the_next() -> None:
    async with scene(servers=["b1:1"]) as found:
        found.nodes.bootstrap()
        found.opener.failures[-1] = ConnectionFailed("b1", "refused")
        await found.insist(-1, 3_000)
        last_ms = found.opener.attempts[-1][0]
        found.name(1)
        found.nodes.bootstrap()
        assert found.nodes.least_loaded() is not None, "broker 1 is free"
        assert (await found.insist(-1, 1_100))[0] - last_ms == pytest.approx(1_001, abs=1.5)


# ----------------------------------------------------------------------------------------------- authentication, end
@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("broker 1", "TLS", "unknown authority"),
        ConfigError("no such file", settings=("ssl_cafile",)),
    ],
)
async def test_what_no_new_attempt_can_cure_is_fatal(error: ClientError) -> None:
    async with scene() as found:
        found.name(1, 2)
        found.opener.failures[1] = error
        await found.insist(1, 300)
        assert len(found.opener.attempts) == 1
        assert found.nodes.fatal_error is error
        assert found.changes == 1
        assert found.nodes.get(2) is None
        assert found.nodes.retry_at_ms(2) == float("inf")
        assert found.nodes.least_loaded() is None
        await asyncio.sleep(10)
        assert len(found.opener.attempts) == 1


async def test_a_broker_that_is_too_old_or_new_is_no_reason_to_leave_the_others() -> None:
    async with scene() as found:
        found.name(1, 2)
        found.opener.failures[1] = UnsupportedVersion("Metadata", "broker 1", (0, 12), None)
        await found.insist(1, 1_000)
        assert found.nodes.fatal_error is None
        await found.open(2)


async def test_a_session_that_cannot_be_renewed_is_fatal() -> None:
    async with scene() as found:
        found.name(1)
        connection = await found.open(1)
        connection.close(AuthenticationFailed("broker 1", "SASL PLAIN", "the password has changed"))
        await asyncio.sleep(1)
        assert isinstance(found.nodes.fatal_error, AuthenticationFailed)
        assert found.nodes.get(1) is None


async def test_drop_all_closes_connections_and_attempts_as_no_failure() -> None:
    async with scene() as found:
        found.name(1, 2)
        connection = await found.open(1)
        found.opener.takes_ms = 1_000
        found.nodes.get(2)
        await asyncio.sleep(0.1)
        found.nodes.drop_all("a reason")
        assert not connection.is_open
        assert "a reason" in str(connection.why)
        await asyncio.sleep(0.1)
        assert found.opener.cancelled == 1
        assert found.losses == 0
        found.opener.takes_ms = 1
        await found.open(1)


async def test_close_waits_until_connections_and_attempts_are_gone() -> None:
    async with scene() as found:
        found.name(1, 2, 3)
        connection, lost = await found.open(1), await found.open(3)
        found.opener.takes_ms = 1_000
        found.opener.gives_up_ms = 50
        found.nodes.get(2)
        lost.lose()
        await asyncio.sleep(0.001)
        await found.nodes.close()
        assert len(found.tasks) == 0
        assert connection.ended.is_set()
        assert lost.ended.is_set()
        assert found.opener.cancelled == 1
        assert found.nodes.get(1) is None
        await asyncio.sleep(10)
        assert len(found.opener.attempts) == 3
