"""TLS beneath a connection, in memory: handshakes and records in any portions, back-pressure both ways, and the end."""

import ssl

import pytest

from odradek.broker.access.principal import ANONYMOUS, user
from odradek.broker.network.tls_layer import HANDSHAKE_READ_BYTES, LANDING_BYTES
from odradek.broker.network.tls_reader import FIRST_READ_BYTES, READS_A_TURN
from odradek.broker.network.tls_writer import TURN_BYTES
from tests.broker.network.tls_pair import Noting, TlsPair, frame, listener, turns
from tests.broker.tls.authority import CLIENT, Authority, Issued

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("authority")


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Issued:
    return authority.issue("broker")


def opened(broker: Issued, authority: Authority, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> TlsPair:
    context = authority.client_context()
    context.maximum_version = version
    pair = TlsPair(listener(broker), context)
    pair.shake_hands()
    assert pair.noting.principal is ANONYMOUS
    return pair


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("portion", [1, 3, 100, 1 << 20])
async def test_a_handshake_in_any_portions(
    version: ssl.TLSVersion, portion: int, broker: Issued, authority: Authority
) -> None:
    context = authority.client_context()
    context.maximum_version = version
    pair = TlsPair(listener(broker), context)
    pair.shake_hands(portion)
    assert pair.is_shaken
    assert pair.noting.principal is ANONYMOUS
    sent = pair.send(frame(b"one") + frame(b"two"))
    for start in range(0, len(sent), portion):
        pair.receive(sent[start : start + portion])
    assert pair.noting.frames == [b"one", b"two"]
    pair.noting.transport.writelines([b"th", bytearray(b"r"), memoryview(b"ee")])
    assert pair.read() == b"three"


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_certificate_says_who_the_client_is(
    version: ssl.TLSVersion, broker: Issued, authority: Authority
) -> None:
    tls = listener(broker, authority, ssl_client_auth="required")
    context = authority.issue("billing", hosts=(), usages=(CLIENT,)).client_context(authority)
    context.maximum_version = version
    pair = TlsPair(tls, context)
    pair.shake_hands()
    assert pair.noting.principal == user("CN=billing")
    pair.read()
    again = TlsPair(tls, context, session=pair.client.session)
    again.shake_hands()
    assert again.client.session_reused
    assert again.noting.principal == user("CN=billing")


async def test_a_first_request_may_come_with_the_end_of_the_handshake(broker: Issued, authority: Authority) -> None:
    pair = TlsPair(listener(broker), authority.client_context())
    pair.receive(pair.said())
    last = pair.said()
    assert pair.is_shaken
    pair.receive(last + pair.send(frame(b"first")))
    assert pair.noting.frames == [b"first"]


async def test_large_requests_and_answers_come_whole(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    content = bytes(range(256)) * 20_000
    pair.receive(pair.send(frame(content)))
    await turns()
    assert pair.noting.frames == [content]
    pair.noting.transport.writelines([frame(b""), memoryview(content), b"end"])
    await turns()
    assert pair.read() == frame(b"") + content + b"end"
    assert not pair.noting.is_writing_paused


async def test_more_is_read_at_a_time_from_who_fills_it(broker: Issued, authority: Authority) -> None:
    """And little from strangers."""
    pair = TlsPair(listener(broker), authority.client_context())
    assert len(pair.layer.get_buffer(-1)) == HANDSHAKE_READ_BYTES
    pair.shake_hands()
    assert len(pair.layer.get_buffer(-1)) == FIRST_READ_BYTES
    pair.receive(pair.send(frame(bytes(2_000_000))))
    assert len(pair.layer.get_buffer(-1)) == LANDING_BYTES


async def test_what_the_connection_does_not_want_stays_encrypted(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    pair.noting.pauses_after = 2
    records = [pair.send(frame(bytes((number,)) * 15_000)) for number in range(5)]
    pair.receive(b"".join(records[:3]))
    at_once = len(pair.noting.frames)
    assert at_once == 2
    assert pair.socket.is_paused
    pair.receive(b"".join(records[3:]))  # what a loop had read already
    assert len(pair.noting.frames) == at_once
    pair.noting.transport.resume_reading()
    assert len(pair.noting.frames) == at_once, "not in the middle of what the connection does"
    await turns()
    assert [each[0] for each in pair.noting.frames] == [0, 1, 2, 3, 4]
    assert not pair.socket.is_paused


async def test_many_small_records_leave_the_loop_a_turn(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    count = 3 * READS_A_TURN
    sent = b"".join(pair.send(frame(b"%d" % number)) for number in range(count))
    room = len(pair.layer.get_buffer(-1))
    assert len(sent) > room
    first = memoryview(sent)[:room]
    pair.receive(bytes(first))
    at_once = len(pair.noting.frames)
    assert 0 < at_once <= READS_A_TURN + 64
    assert pair.socket.is_paused
    pair.receive(sent[room:])
    await turns(100)
    assert pair.noting.frames == [b"%d" % number for number in range(count)]
    assert not pair.socket.is_paused


async def test_of_a_large_answer_so_much_is_encrypted_as_the_socket_takes(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    pair.socket.high_bytes = 64 * 1024
    content = bytes(4 * TURN_BYTES)
    pair.noting.transport.writelines([content, b"behind it"])
    assert pair.noting.is_writing_paused
    assert pair.socket.held_bytes < 256 * 1024
    unsent = pair.noting.transport.get_write_buffer_size()
    assert unsent > len(content)
    found = bytearray()
    while pair.noting.is_writing_paused:
        found += pair.read()
        pair.socket.drain()
        await turns(1)
    found += pair.read()
    assert found == content + b"behind it"
    assert pair.noting.transport.get_write_buffer_size() == pair.socket.held_bytes


async def test_a_large_answer_leaves_the_loop_a_turn(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    pair.noting.transport.write(bytes(3 * TURN_BYTES))
    assert TURN_BYTES <= len(pair.socket.written) < TURN_BYTES + 100 * 1024
    assert pair.noting.is_writing_paused
    await turns()
    assert len(pair.read()) == 3 * TURN_BYTES
    assert not pair.noting.is_writing_paused


async def test_a_close_sends_what_was_written_and_says_goodbye(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    pair.noting.transport.write(bytes(3 * TURN_BYTES))
    pair.noting.transport.close()
    assert pair.noting.transport.is_closing()
    assert not pair.socket.is_closed
    pair.noting.transport.write(b"nobody takes it")
    await turns()
    assert pair.socket.is_closed
    pair.to_client()
    assert len(pair.read()) == 3 * TURN_BYTES
    assert pair.client.read(1) == b"", "the client knows that this is the end, and nobody has cut it"


async def test_a_client_that_says_goodbye_is_closed(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.receive(pair.send(b"") + pair.outgoing.read())
    assert pair.noting.transport.is_closing()
    assert pair.socket.is_closed
    assert pair.noting.failure is None


async def test_who_is_lost_leaves_nothing_behind(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    pair.noting.transport.write(bytes(3 * TURN_BYTES))
    pair.noting.transport.pause_reading()
    pair.noting.transport.resume_reading()
    pair.socket.close()
    pair.layer.connection_lost(None)
    await turns()
    assert pair.noting.is_lost


async def test_what_is_known_of_the_connection(broker: Issued, authority: Authority) -> None:
    pair = TlsPair(listener(broker), authority.client_context())
    transport = pair.noting.transport
    assert transport.get_extra_info("peername") == ("192.0.2.1", 4711)
    assert isinstance(transport.get_extra_info("sslcontext"), ssl.SSLContext), "else slices of files would be sent"
    assert transport.get_extra_info("ssl_object") is None
    assert not transport.is_closing()
    pair.shake_hands()
    assert isinstance(transport.get_extra_info("ssl_object"), ssl.SSLObject)
    assert transport.get_extra_info("nothing", 1) == 1
    assert isinstance(transport.get_protocol(), Noting)


async def test_a_connection_that_is_held_does_not_even_shake_hands(broker: Issued, authority: Authority) -> None:
    pair = TlsPair(listener(broker), authority.client_context())
    pair.noting.transport.pause_reading()
    assert pair.socket.is_paused
    pair.noting.transport.resume_reading()
    assert not pair.socket.is_paused
    pair.shake_hands()
    assert pair.noting.principal is ANONYMOUS


async def test_a_client_that_ends_its_half_is_still_sent_what_was_written(broker: Issued, authority: Authority) -> None:
    pair = opened(broker, authority)
    pair.noting.transport.write(bytes(3 * TURN_BYTES))
    assert pair.layer.eof_received(), "the socket stays, until that is sent"
    assert pair.noting.transport.is_closing()
    await turns()
    assert len(pair.read()) == 3 * TURN_BYTES
    assert pair.socket.is_closed
