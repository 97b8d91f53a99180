"""Connections with SASL over sockets: how clients come in, what is served when, and what ends a connection."""

import asyncio
import gc
import logging
import time
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from odradek.broker.access.principal import ANONYMOUS, Principal
from odradek.broker.authentication.password_hash import hashed, written
from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_state import ConnectionState
from odradek.broker.served import SERVED
from odradek.broker.server import Broker
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import RequestHeader, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.api.scram_requests import upsertion
from tests.broker.authentication.listeners import ALICE, PASSWORD, plain
from tests.broker.network.sasl_clients import (
    OPTIONS,
    authenticate,
    authenticate_by_scram,
    send_raw,
    send_token,
    shake_hands,
)
from tests.broker.wire import TIMEOUT_S, batch, connected, create_topic, produce, produced, running_broker

pytestmark = pytest.mark.both_loops

METADATA = MetadataRequest(topics=[])
LIMITED = {**OPTIONS, "connections.max.reauth.ms": "60000"}


def connection_of(broker: Broker) -> Connection:
    (connection,) = broker.connections.connections
    assert isinstance(connection, Connection)
    return connection


def state_of(broker: Broker) -> ConnectionState:
    state = vars(connection_of(broker))["_condition"].state
    assert isinstance(state, ConnectionState)
    return state


async def test_by_plain_a_client_comes_in_and_is_served_as_its_principal() -> None:
    async with running_broker(OPTIONS) as broker, connected(broker) as client:
        await client.ask(ApiVersionsRequest(), 0)
        connection = connection_of(broker)
        assert connection.caller.principal == ANONYMOUS
        await shake_hands(client)
        assert state_of(broker) is ConnectionState.AUTHENTICATING
        answer = await send_token(client, plain(ALICE, PASSWORD))
        assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
        assert state_of(broker) is ConnectionState.READY
        assert connection.caller.principal == Principal("User", ALICE)
        await create_topic(client, "orders")
        assert (await produced(client, "orders", batch(b"x" * 600_000))).error_code == 0, "long frames, too"


async def test_by_scram_with_a_user_that_was_stored_and_until_he_is_deleted() -> None:
    from odradek.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
    )

    async with running_broker(OPTIONS) as broker, connected(broker) as admin:
        assert (await authenticate(admin)).error_code == 0
        request = AlterUserScramCredentialsRequest(upsertions=[upsertion("carol", 2, "hers", 4096)])
        assert [each.error_code for each in (await admin.ask(request, 0)).results] == [0]
        async with connected(broker) as carol:
            assert (await authenticate_by_scram(carol, "SCRAM-SHA-512", "carol", "hers")).error_code == 0
            removal = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="carol", mechanism=2)])
            await admin.ask(removal, 0)
            await carol.ask(METADATA, 8)  # a connection that is open stays so, as in Kafka
            async with connected(broker) as late:
                answer = await authenticate_by_scram(late, "SCRAM-SHA-512", "carol", "hers")
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_tokens_without_headers_behind_an_old_handshake() -> None:
    async with running_broker(OPTIONS) as broker:
        async with connected(broker) as client:
            await shake_hands(client, version=0)
            assert await send_raw(client, plain(ALICE, PASSWORD)) == b""
            await client.ask(METADATA, 8)
        async with connected(broker) as client:
            await shake_hands(client, version=0)
            token = plain(ALICE, "wrong")
            client.writer.write(len(token).to_bytes(4, "big") + token)
            assert await client.is_closed()


async def test_a_raw_token_that_looks_like_a_request_is_a_token(caplog: pytest.LogCaptureFixture) -> None:
    """A Produce, which would begin at once, and ApiVersions, which is served at any time else."""
    async with running_broker(OPTIONS) as broker:
        requests: list[tuple[Request[Any], int]] = [(produce("orders", batch(b"x")), 9), (ApiVersionsRequest(), 0)]
        for request, version in requests:
            async with connected(broker) as client:
                await shake_hands(client, version=0)
                client.send(request, version)
                assert await client.is_closed()
                assert await client.reader.read() == b""
        assert not broker.context.metadata.image.topics
        assert broker.context.authentication is not None
        assert sum(broker.context.authentication.counts.failures.values()) == 2


async def test_a_failure_is_answered_late_and_the_connection_closes(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker({**OPTIONS, "connection.failed.authentication.delay.ms": "200"}) as broker:
        answers = list[tuple[int, str | None]]()
        for user, password in ((ALICE, "wrong"), ("nobody", "wrong"), ("nobody", PASSWORD)):
            async with connected(broker) as client:
                began_s = time.monotonic()
                with caplog.at_level(logging.WARNING):
                    answer = await authenticate(client, user, password)
                assert time.monotonic() - began_s >= 0.195
                answers.append((answer.error_code, answer.error_message))
                assert await client.is_closed()
        assert (
            answers
            == [(ErrorCode.SASL_AUTHENTICATION_FAILED, "Authentication failed: Invalid username or password")] * 3
        )
        assert broker.context.authentication is not None
        assert broker.context.authentication.counts.failures == {("PLAINTEXT", "PLAIN"): 3}
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line.partition(" by ")[2] for line in lines] == [
        "PLAIN as 'alice': no such user with this password",
        "PLAIN as 'nobody': no such user with this password",
        "PLAIN as 'nobody': no such user with this password",
    ]
    assert all(line.startswith("authentication failed: 127.0.0.1:") for line in lines)
    assert PASSWORD not in caplog.text and "wrong" not in caplog.text


async def test_what_is_sent_behind_a_failure_is_not_looked_at() -> None:
    async with running_broker(OPTIONS) as broker, connected(broker) as client:
        await shake_hands(client)
        client.send(SaslAuthenticateRequest(auth_bytes=plain(ALICE, "wrong")), 2)
        behind: list[tuple[Request[Any], int]] = [
            (SaslAuthenticateRequest(auth_bytes=plain(ALICE, PASSWORD)), 2),
            (SaslHandshakeRequest(mechanism="PLAIN"), 1),
            (METADATA, 8),
        ]
        for request, version in behind:
            client.send(request, version)
        _, answer = await client.receive(SaslAuthenticateRequest(auth_bytes=b""), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await client.is_closed()


async def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are_and_closes() -> None:
    async with running_broker(OPTIONS) as broker, connected(broker) as client:
        for version in (0, 1):
            async with connected(broker) as other:
                answer = await other.ask(SaslHandshakeRequest(mechanism="GSSAPI"), version)
                assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
                assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
                assert await other.is_closed()
        assert (await authenticate(client)).error_code == 0


# -- attacks ----------------------------------------------------------------------------------------------------------
def frame_of(key: int, version: int, is_flexible: bool) -> bytes:
    """A request of this API, with zeros for its body."""
    return b"".join(request_frame(RequestHeader(key, version, 1, "raw"), is_flexible, [bytes(64)]))


@pytest.mark.parametrize("stage", ["connected", "greeted", "shaken hands", "half way"])
async def test_no_api_is_served_before_authentication(stage: str) -> None:
    """Each API of the table at each version, and keys that there are not."""
    allowed = {"connected": {17, 18}, "greeted": {17, 18}, "shaken hands": {36}, "half way": {36}}[stage]
    async with running_broker(OPTIONS) as broker:
        requests = [
            frame_of(api.key, version, api.request.is_flexible(version))
            for api in SERVED
            if api.key not in allowed
            for version in {api.served[0], api.served[1]}
        ]
        requests += [frame_of(key, 0, False) for key in (-1, 58, 999, 32_767)]
        for request in requests:
            async with connected(broker) as client:
                if stage != "connected":
                    await client.ask(ApiVersionsRequest(), 0)
                if stage in ("shaken hands", "half way"):
                    await shake_hands(client, "SCRAM-SHA-256")
                if stage == "half way":
                    assert (await send_token(client, b"n,,n=alice,r=x")).error_code == 0
                client.writer.write(request)
                assert await client.is_closed(), request[4:6].hex()
                assert await client.reader.read() == b""
        assert not broker.context.metadata.image.topics


async def test_a_request_sent_along_with_the_last_token_waits_for_it() -> None:
    """Pipelined: it is served as who has authenticated, or not at all."""
    async with running_broker(OPTIONS) as broker:
        for password, is_served in ((PASSWORD, True), ("wrong", False)):
            async with connected(broker) as client:
                client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                client.send(SaslAuthenticateRequest(auth_bytes=plain(ALICE, password)), 2)
                client.send(METADATA, 8)
                await client.receive(SaslHandshakeRequest(mechanism=""), 1)
                _, answer = await client.receive(SaslAuthenticateRequest(auth_bytes=b""), 2)
                assert (answer.error_code == 0) == is_served
                if is_served:
                    await client.receive(METADATA, 8)
                else:
                    assert await client.is_closed()


@pytest.mark.parametrize("size_bytes", [2_001, 100 * 1024**2, 2**31 - 1])
async def test_before_authentication_no_long_frame_is_read(size_bytes: int, caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker({**OPTIONS, "sasl.server.max.receive.size": "2000"}) as broker:
        async with connected(broker) as client:
            client.writer.write(size_bytes.to_bytes(4, "big"))
            assert await client.is_closed()
        assert "where 0 to 2000 are allowed" in caplog.text
        async with connected(broker) as client:
            await shake_hands(client)
            client.writer.write(size_bytes.to_bytes(4, "big"))
            assert await client.is_closed()
        async with connected(broker) as client:
            assert (await authenticate(client)).error_code == 0
            await create_topic(client, "orders")
            assert (await produced(client, "orders", batch(b"x" * 100_000))).error_code == 0


async def test_a_user_named_like_a_broker_is_a_user() -> None:
    options = {**OPTIONS, "listener.name.plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_broker-1="x";'
    )}  # fmt: skip
    async with running_broker(options) as broker, connected(broker) as client:
        assert (await authenticate(client, "broker-1", "x")).error_code == 0
        assert connection_of(broker).caller.principal == Principal("User", "broker-1")


async def test_a_password_that_is_being_checked_keeps_its_slot_when_its_client_leaves(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"carol:{written(hashed('hers', b'0123456789abcdef'))}\n")
    async with running_broker({**OPTIONS, "sasl.plain.password.file": str(file)}) as broker:
        for _ in range(6):
            async with connected(broker) as client:
                await shake_hands(client)
                client.send(SaslAuthenticateRequest(auth_bytes=plain("carol", "wrong")), 2)
                await client.writer.drain()
        async with connected(broker) as client:
            assert (await authenticate(client, "carol", "hers")).error_code == 0
        async with connected(broker) as client:
            assert (await authenticate(client)).error_code == 0, "the users of the line come in, too"


# -- sessions ---------------------------------------------------------------------------------------------------------
def fetch(max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1000,
        topics=[FetchTopic(topic="orders", partitions=[partition])],
        forgotten_topics_data=[],
    )


async def test_a_session_is_renewed_behind_what_was_asked_before() -> None:
    async with running_broker(LIMITED) as broker, connected(broker) as client:
        assert (await authenticate(client)).session_lifetime_ms == 60_000
        await create_topic(client, "orders")
        for number in range(5):
            client.send(produce("orders", batch(b"%d" % number)), 9)
        client.send(fetch(300), 11)
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.send(SaslAuthenticateRequest(auth_bytes=plain(ALICE, PASSWORD)), 2)
        client.send(METADATA, 8)
        for number in range(5):
            _, produced_ = await client.receive(produce("orders", None), 9)
            assert produced_.responses[0].partition_responses[0].base_offset == number
        await client.receive(fetch(0), 11)
        _, shaken = await client.receive(SaslHandshakeRequest(mechanism=""), 1)
        assert shaken.error_code == 0
        _, answer = await client.receive(SaslAuthenticateRequest(auth_bytes=b""), 2)
        assert (answer.error_code, answer.session_lifetime_ms) == (0, 60_000)
        await client.receive(METADATA, 8)


async def test_after_the_session_anything_but_a_new_one_closes(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker({**OPTIONS, "connections.max.reauth.ms": "100"}) as broker:
        requests: list[tuple[Request[Any], int]] = [
            (METADATA, 8),
            (ApiVersionsRequest(), 0),
            (SaslAuthenticateRequest(auth_bytes=b""), 2),
        ]
        for request, version in requests:
            async with connected(broker) as client:
                await authenticate(client)
                await client.ask(METADATA, 8)
                await asyncio.sleep(0.15)
                client.send(request, version)
                assert await client.is_closed()
        async with connected(broker) as client:
            await authenticate(client)
            await asyncio.sleep(1.05)
            assert (await authenticate(client)).error_code == 0
            await client.ask(METADATA, 8)
        assert broker.context.authentication is not None
        assert broker.context.authentication.counts.expired == {"PLAINTEXT": 3}
    assert "Metadata version 8 came after the session, which it had not renewed" in caplog.text


async def test_a_renewal_that_fails_closes_and_the_principal_never_changes() -> None:
    async with running_broker(LIMITED) as broker:
        for mechanism, token in (
            ("PLAIN", plain("bob", "of bob")),
            ("PLAIN", plain(ALICE, "wrong")),
            ("SCRAM-SHA-256", b"x"),
        ):
            async with connected(broker) as client:
                await authenticate(client)
                connection = connection_of(broker)
                await shake_hands(client, mechanism)
                answer = await send_token(client, token)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
                assert connection.caller.principal == Principal("User", ALICE)
                assert await client.is_closed()
            while broker.connections.connections:  # noqa: ASYNC110 - what is gone tells nobody
                await asyncio.sleep(0.01)


async def test_while_a_session_is_renewed_nothing_else_is_served() -> None:
    async with running_broker(LIMITED) as broker, connected(broker) as client:
        await authenticate(client)
        await shake_hands(client)
        client.send(METADATA, 8)
        assert await client.is_closed()


async def test_a_session_that_has_an_end_is_as_eager_as_one_without() -> None:
    """A Produce begins while those before it wait for their replicas; here all are written before the first answer."""
    async with running_broker(LIMITED) as broker, connected(broker) as client:
        await authenticate(client)
        await create_topic(client, "orders")
        for number in range(20):
            client.send(produce("orders", batch(b"%d" % number)), 9)
        answers = [(await client.receive(produce("orders", None), 9))[1] for _ in range(20)]
        assert [each.responses[0].partition_responses[0].base_offset for each in answers] == list(range(20))


# -- what is left -----------------------------------------------------------------------------------------------------
async def test_a_connection_that_is_gone_is_freed_without_a_collection() -> None:
    async with running_broker(OPTIONS) as broker:
        async with connected(broker) as ready, connected(broker) as half:
            await authenticate(ready)
            await shake_hands(half, "SCRAM-SHA-256")
            known = [ref(each) for each in broker.connections.connections]
            assert len(known) == 2
            gc.disable()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while any(each() is not None for each in known):  # noqa: ASYNC110 - what is freed tells nobody
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()


async def test_a_broker_that_stops_does_not_wait_for_those_who_failed() -> None:
    options = {**OPTIONS, "connection.failed.authentication.delay.ms": "100"}
    async with running_broker(options) as broker, connected(broker) as client:
        await shake_hands(client)
        client.send(SaslAuthenticateRequest(auth_bytes=plain(ALICE, "wrong")), 2)
        await client.writer.drain()
