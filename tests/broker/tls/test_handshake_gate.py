"""What OpenSSL is given of a handshake: hellos when they are whole, and no message that announces more than it may."""

import ssl

import pytest

from odradek.broker.tls.client_hello import NoHello
from odradek.broker.tls.handshake_gate import (
    HANDSHAKE_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    RECORD_BYTES_MAX,
    HandshakeGate,
    PlainMessages,
)
from tests.broker.tls.authority import Authority, server_context
from tests.broker.tls.test_client_hello import hello, message, record

CHANGE = record(b"\1", kind=20)


def fed(gate: HandshakeGate, data: bytes) -> bytes:
    return gate.feed(memoryview(data))


def past_hello() -> HandshakeGate:
    gate = HandshakeGate()
    assert fed(gate, hello())
    return gate


def test_a_hello_is_held_back_until_it_is_whole() -> None:
    data, gate = hello(), HandshakeGate()
    for position in range(len(data) - 1):
        assert fed(gate, data[position : position + 1]) == b""
    assert fed(gate, data[-1:]) == data
    assert gate.received_bytes == len(data)


def test_what_follows_is_handed_on_as_it_comes() -> None:
    gate = past_hello()
    finished = CHANGE + record(b"\x00" * 40)
    assert b"".join(fed(gate, finished[at : at + 1]) for at in range(len(finished))) == finished


def test_a_second_hello_is_held_back_too() -> None:
    """Where the broker has asked for it, by OpenSSL's own answer to a client that guessed another curve."""
    served = server_context(Authority("authority").issue("broker"))
    served.set_ecdh_curve("secp384r1")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = served.wrap_bio(incoming, outgoing, server_side=True)
    gate = HandshakeGate()
    incoming.write(fed(gate, hello()))
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    gate.answered(outgoing.read())
    second = record(message(500) + bytes(500))
    for first in (CHANGE, b""):
        gate.answered(RETRY)
        data = first + second
        assert b"".join(fed(gate, data[at : at + 1]) for at in range(len(data) - 1)) == b""
        assert fed(gate, data[-1:]) == data
    gate.answered(RETRY)
    with pytest.raises(NoHello, match="of 131000 bytes"):
        fed(gate, CHANGE + record(message(131_000)))


RETRY = record(
    message(100, kind=2) + b"\3\3" + bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
)


def test_openssl_asks_for_a_second_hello_so() -> None:
    served = server_context(Authority("authority").issue("broker"))
    served.set_ecdh_curve("secp384r1")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = served.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(hello())
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    assert outgoing.read()[11:43] == RETRY[11:43]


@pytest.mark.parametrize("portion", [1, 7, 10_000])
def test_a_message_that_announces_too_much_is_refused(portion: int) -> None:
    """A certificate of TLS 1.2, which is not encrypted: 9 bytes would have OpenSSL make room for it."""
    data = record(message(600, kind=11) + bytes(600)) + record(message(MESSAGE_BYTES_MAX + 1, kind=11))
    gate = past_hello()
    with pytest.raises(NoHello, match=f"a message of {MESSAGE_BYTES_MAX + 1} bytes"):
        for at in range(0, len(data), portion):
            fed(gate, data[at : at + portion])


def test_messages_over_several_records_are_followed() -> None:
    messages = PlainMessages()
    content = message(300, kind=11) + bytes(300) + message(5, kind=16) + bytes(5) + message(MESSAGE_BYTES_MAX, kind=15)
    for start in range(0, len(content), 7):
        messages.feed(memoryview(record(content[start : start + 7])))


def test_behind_the_change_to_encryption_nothing_is_read() -> None:
    """The first bytes of an encrypted message may be anything."""
    messages = PlainMessages()
    messages.feed(memoryview(CHANGE + record(b"\1\xff\xff\xff")))


def test_a_handshake_may_not_have_any_number_of_bytes() -> None:
    gate = past_hello()
    rest = HANDSHAKE_BYTES_MAX - gate.received_bytes
    fed(gate, record(bytes(1000), kind=23)[:5])
    fed(gate, bytes(rest - 5))
    with pytest.raises(NoHello, match="more than 65536 bytes"):
        fed(gate, b"x")


def test_a_record_may_not_announce_too_much() -> None:
    """It would be held until the time of the client is up. Behind a whole one it may be data, which is larger."""
    too_large = b"\x17\3\3" + (RECORD_BYTES_MAX + 1).to_bytes(2, "big")
    with pytest.raises(NoHello, match=f"a record of {RECORD_BYTES_MAX + 1} bytes in the middle"):
        fed(past_hello(), too_large)
    gate = past_hello()
    assert fed(gate, CHANGE + too_large) == CHANGE
    with pytest.raises(NoHello, match="in the middle"):
        fed(gate, b"x")
    gate = past_hello()
    assert fed(gate, CHANGE + too_large) == CHANGE
    assert gate.rest() == too_large
