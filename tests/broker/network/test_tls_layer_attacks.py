"""What strangers may try before TLS stands, and clients afterwards: each is closed, says so in the log, and has cost
little. The guards are listed in tls_layer.py and tls_reader.py; each test fails without its own."""

import gc
import os
import random
import ssl
import warnings
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.access.principal import ANONYMOUS
from odradek.broker.network import tls_reader
from odradek.broker.network.tls_layer import LANDING_BYTES, TlsLayer
from odradek.broker.network.tls_reader import IDLE_RECORDS_MAX, RECORDS_A_PORTION
from odradek.broker.tls.handshake_gate import HANDSHAKE_BYTES_MAX
from odradek.broker.tls.listener_tls import ListenerTls
from odradek.runtime.environment import Environment
from tests.broker.network.tls_forge import ForgedRecords, forged, telling
from tests.broker.network.tls_pair import Noting, SocketTransport, TlsPair, frame, listener, settings, turns
from tests.broker.tls.authority import CLIENT, Authority, Issued
from tests.broker.tls.test_client_hello import hello, message, record

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("authority")


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Issued:
    return authority.issue("broker")


def is_refused(pair: TlsPair) -> bool:
    """Closed, and the connection has seen no byte."""
    return pair.socket.is_closed and not pair.noting.frames and pair.noting.principal is None


def open_pair(broker: Issued, authority: Authority) -> TlsPair:
    pair = TlsPair(listener(broker), authority.client_context())
    pair.shake_hands()
    assert pair.noting.principal is ANONYMOUS
    return pair


# ------------------------------------------------------------------------------------------------ other protocols
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame(b"\0\x12\0\3\0\0\0\1\0\3raw"), "a client without TLS, and this listener speaks TLS"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (b"\xff" * 10, "this is no hello of TLS"),
        (record(message(131_000)), "a hello of TLS of 131000 bytes"),
    ],
)
async def test_other_protocols_are_told_by_name(data: bytes, words: str, broker: Issued, authority: Authority) -> None:
    pair = TlsPair(listener(broker), authority.client_context())
    pair.receive(data)
    assert is_refused(pair)
    assert words in (pair.noting.failure or "")


async def test_tls_1_1_is_refused(broker: Issued, authority: Authority) -> None:
    context = authority.client_context()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    pair = TlsPair(listener(broker), context)
    pair.shake_hands()
    assert is_refused(pair)
    assert "no version of TLS that is enabled here" in (pair.noting.failure or "")


async def test_weak_ciphers_are_refused(broker: Issued, authority: Authority) -> None:
    context = authority.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0")
    pair = TlsPair(listener(broker), context)
    pair.shake_hands()
    assert is_refused(pair)
    assert "no cipher suite in common" in (pair.noting.failure or "")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_certificates_of_clients_that_are_refused(
    version: ssl.TLSVersion, broker: Issued, authority: Authority
) -> None:
    """In TLS 1.3 the client takes the handshake for done before the broker has refused it."""
    tls = listener(broker, authority, ssl_client_auth="required")
    stranger = Authority("stranger")
    ended = authority.issue("client", hosts=(), days=(-2, -1), usages=(CLIENT,)).client_context(authority)
    other = stranger.issue("client", hosts=(), usages=(CLIENT,)).client_context(authority)
    for context, words in (
        (ended, "the client's certificate is refused: certificate has expired"),
        (other, "the client's certificate is refused: unable to get local issuer certificate"),
        (authority.client_context(), "the client has no certificate, and ssl.client.auth=required"),
    ):
        context.maximum_version = version
        pair = TlsPair(tls, context)
        pair.shake_hands()
        if pair.is_shaken:
            pair.receive(pair.send(frame(b"too early")))
        assert is_refused(pair), words
        assert words in (pair.noting.failure or "")


@pytest.mark.parametrize(
    ("days", "name", "trusts", "words"),
    [
        ((-2, -1), "localhost", True, "refused this broker's certificate as expired"),
        ((-1, 1), "elsewhere", True, "the client"),
        ((-1, 1), "localhost", False, "does not trust who issued this broker's certificate"),
    ],
)
async def test_a_client_that_refuses_the_broker_is_told_in_the_log(
    days: tuple[float, float], name: str, trusts: bool, words: str, authority: Authority
) -> None:
    context = (authority if trusts else Authority("other")).client_context()
    pair = TlsPair(listener(authority.issue("broker", days=days)), context, name)
    pair.shake_hands()
    assert isinstance(pair.error, ssl.SSLCertVerificationError)
    assert is_refused(pair)
    assert words in (pair.noting.failure or "")


async def test_a_client_whose_authority_was_removed_is_refused_from_then_on(authority: Authority) -> None:
    """Also with a ticket of before; the connection that stands goes on."""
    new = Authority("new")
    broker = new.issue("broker")
    both: dict[str, Any] = new.as_trusted() | {
        "ssl_truststore_certificates": authority.pem + new.pem,
        "ssl_client_auth": "required",
    }
    tls = listener(broker, **both)
    context = authority.issue("client", hosts=(), usages=(CLIENT,)).client_context(new)
    first = TlsPair(tls, context)
    first.shake_hands()
    first.read()
    newer = tls.renewed(settings(broker, new, ssl_client_auth="required"))
    assert newer is not None
    tls.take(newer)
    for session in (None, first.client.session):
        pair = TlsPair(tls, context, session=session)
        pair.shake_hands()
        if pair.is_shaken:
            pair.receive(pair.send(frame(b"x")))
        assert is_refused(pair)
    first.receive(first.send(frame(b"goes on")))
    assert first.noting.frames == [b"goes on"]


async def test_a_connection_that_waits_through_a_reload_gets_the_newest(authority: Authority) -> None:
    """It had only been accepted: what it is shown is the new certificate."""
    tls = listener(authority.issue("broker"))
    renewed = authority.issue("broker")
    pair = TlsPair(tls, authority.client_context())
    newer = tls.renewed(settings(renewed))
    assert newer is not None
    tls.take(newer)
    pair.shake_hands()
    assert pair.client.getpeercert(binary_form=True) == renewed.der


# ------------------------------------------------------------------------------------------- cut, mixed and half-open
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_handshake_cut_at_every_byte(version: ssl.TLSVersion, broker: Issued, authority: Authority) -> None:
    """And left there. Nobody is let in, nothing is sent that was not asked for, and the log says so."""
    tls = listener(broker)
    context = authority.client_context()
    context.maximum_version = version
    sizes = flight_sizes(tls, context)
    for flight, size in enumerate(sizes):
        for cut in range(0, size, 1 if flight else 3):
            pair = TlsPair(tls, context)
            for _ in range(flight):
                pair.receive(pair.said())
            data = pair.said()
            pair.receive(data[:cut])
            assert pair.noting.principal is None, (flight, cut)
            pair.layer.eof_received()
            is_silent = flight == 0 and cut == 0
            assert (pair.noting.failure is None) is is_silent, (flight, cut)
            pair.layer.connection_lost(None)
            assert pair.noting.is_lost


def flight_sizes(tls: ListenerTls, context: ssl.SSLContext) -> list[int]:
    """Of what the client sends, step by step, until it is let in."""
    pair = TlsPair(tls, context)
    sizes: list[int] = []
    while pair.noting.principal is None:
        data = pair.said()
        sizes.append(len(data))
        pair.receive(data)
    return sizes


async def test_plaintext_in_the_middle_of_a_handshake(broker: Issued, authority: Authority) -> None:
    for data in (frame(b"\0\x12\0\3\0\0\0\1"), b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x17\3\3\0\x05hello"):
        pair = TlsPair(listener(broker), authority.client_context())
        pair.receive(pair.said())
        assert pair.noting.failure is None
        pair.receive(data)
        assert is_refused(pair)
        assert "handshake" in (pair.noting.failure or "")


async def test_mutated_handshakes_let_nobody_in(broker: Issued, authority: Authority) -> None:
    """A byte that is changed, a piece that is left out, or comes twice: closed, or still waiting."""
    seed = int(os.environ.get("ODRADEK_FUZZ_SEED") or random.randrange(1 << 32))
    print(f"ODRADEK_FUZZ_SEED={seed}")  # noqa: T201
    rng = random.Random(seed)
    tls, context = listener(broker), authority.client_context()
    for _ in range(300):
        pair = TlsPair(tls, context)
        flight = rng.randrange(2)
        for _ in range(flight):
            pair.receive(pair.said())
        data = bytearray(pair.said())
        at = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at : at + rng.randrange(1, 20)]
            case _:
                data[at:at] = data[max(0, at - 20) : at + 1]
        pair.receive(data)
        pair.shake_hands()
        if pair.noting.principal is not None:
            # What OpenSSL passes over: the session id of old, which nobody signs.
            assert pair.is_shaken
            pair.receive(pair.send(frame(b"x")))
            assert pair.noting.frames == [b"x"]


async def test_more_bytes_than_a_handshake_may_have(broker: Issued, authority: Authority) -> None:
    pair = TlsPair(listener(broker), authority.client_context())
    pair.receive(pair.said())
    empty = record(b"\1", kind=20)  # OpenSSL passes over any number of them
    pair.receive(empty * (HANDSHAKE_BYTES_MAX // len(empty) + 1))
    assert is_refused(pair)


async def test_a_thousand_half_open_handshakes(broker: Issued, authority: Authority) -> None:
    """Silent ones, some in the middle of the hello, some behind it, some that announce much: 64 KiB each at most, with
    what OpenSSL holds."""
    tls = listener(broker, authority, ssl_client_auth="required")
    environment, landing = Environment(), memoryview(bytearray(LANDING_BYTES))
    said = hello()
    kinds: dict[str, list[bytes]] = {
        "silent": [],
        "cut": [said[:-1]],
        "large": [record(message(14_000) + bytes(13_500))],
        "behind the hello": [said],
        "half a record": [said, b"\x17\3\3\x38\x40" + bytes(14_000)],
        "announcing": [old_hello(), b"\x16\3\3\0\4" + message(14_000, kind=11)],
    }
    sizes: dict[str, float] = {}
    kept: list[tuple[TlsLayer, SocketTransport]] = []  # all of them: what is freed is given to the next ones
    for what, portions in kinds.items():
        for count in (50, 1000 if what == "behind the hello" else 300):  # the first ones fill what allocators keep
            gc.collect()
            before = resident_bytes()
            for _ in range(count):
                layer = TlsLayer(Noting(), tls, environment, landing)
                transport = SocketTransport(layer)
                layer.connection_made(transport)
                for portion in portions:
                    fed(layer, portion)
                assert not transport.is_closed, what
                kept.append((layer, transport))
            sizes[what] = (resident_bytes() - before) / count
    assert max(sizes.values()) < 64 * 1024, sizes

    for layer, transport in kept:
        transport.close()
        layer.connection_lost(None)


def fed(layer: TlsLayer, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        with layer.get_buffer(-1) as room:
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
        layer.buffer_updated(count)
        rest = rest[count:]


def old_hello() -> bytes:
    """Of a client that speaks TLS 1.2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


# --------------------------------------------------------------------------------------------- behind the handshake
async def test_a_record_that_was_changed_closes_the_connection(broker: Issued, authority: Authority) -> None:
    pair = open_pair(broker, authority)
    data = bytearray(pair.send(frame(b"hello")))
    data[-1] ^= 1
    pair.receive(data)
    assert pair.socket.is_closed
    assert pair.noting.frames == []
    assert "TLS has failed" in (pair.noting.failure or "")


async def test_a_record_that_comes_twice_closes_the_connection(broker: Issued, authority: Authority) -> None:
    pair = open_pair(broker, authority)
    data = pair.send(frame(b"once"))
    pair.receive(data + data)
    assert pair.noting.frames == [b"once"]
    assert pair.socket.is_closed


async def test_plaintext_behind_the_handshake_closes_the_connection(broker: Issued, authority: Authority) -> None:
    pair = open_pair(broker, authority)
    pair.receive(frame(b"\0\x12\0\3\0\0\0\1"))
    await turns()
    pair.receive(bytes(20_000))
    assert pair.socket.is_closed
    assert pair.noting.frames == []


async def forging(tmp_path: Path, broker: Issued, authority: Authority) -> tuple[TlsPair, ForgedRecords]:
    path = tmp_path / "secrets"
    pair = TlsPair(listener(broker), telling(authority.client_context(), path))
    pair.shake_hands()
    assert pair.client.cipher() == ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256)
    return pair, forged(path)


async def test_keys_may_be_updated(tmp_path: Path, broker: Issued, authority: Authority) -> None:
    """A client of Java's does after 137 GB."""
    pair, forge = await forging(tmp_path, broker, authority)
    for number in range(IDLE_RECORDS_MAX):
        pair.receive(forge.key_update() + forge.data(frame(b"%d" % number)))
    assert pair.noting.frames == [b"%d" % number for number in range(IDLE_RECORDS_MAX)]
    pair.noting.transport.write(b"with new keys")
    assert pair.noting.failure is None


@pytest.mark.parametrize("data_each", [0, 1, 3])
async def test_who_updates_keys_for_ever_is_closed(
    data_each: int, tmp_path: Path, broker: Issued, authority: Authority
) -> None:
    """Among little data as well: a byte does not hide what comes before the next one."""
    pair, forge = await forging(tmp_path, broker, authority)
    flood = bytearray()
    for number in range(2000):
        flood += forge.key_update()
        if number % 10 < data_each:
            flood += forge.data(frame(b""))
    pair.receive(flood)
    await turns(200)
    assert pair.socket.is_closed
    assert pair.noting.failure == "it sends records of TLS without data, again and again"
    assert len(pair.noting.frames) <= (IDLE_RECORDS_MAX + RECORDS_A_PORTION) * data_each / 10 + data_each
    assert vars(pair.layer)["_counter"].count < 200, "OpenSSL had no more of them"


async def test_who_sends_empty_records_for_ever_is_closed(tmp_path: Path, broker: Issued, authority: Authority) -> None:
    pair, forge = await forging(tmp_path, broker, authority)
    for _ in range(IDLE_RECORDS_MAX + RECORDS_A_PORTION):
        pair.receive(forge.data(b"") + forge.data(frame(b"")) if not pair.socket.is_closed else b"")
    assert pair.socket.is_closed


async def test_who_sends_much_may_update_keys_more_often(
    tmp_path: Path, broker: Issued, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_reader, "BYTES_PER_IDLE_RECORD", 1000)
    pair, forge = await forging(tmp_path, broker, authority)
    count = 3 * IDLE_RECORDS_MAX
    for _ in range(count):
        pair.receive(forge.key_update() + forge.data(frame(bytes(1000))))
    assert len(pair.noting.frames) == count


async def test_the_smallest_records_hold_up_nobody_else(tmp_path: Path, broker: Issued, authority: Authority) -> None:
    """A byte each: they are taken, some in each turn of the loop, while the socket is not read."""
    pair, forge = await forging(tmp_path, broker, authority)
    content = frame(bytes(1000))
    sent = b"".join(forge.data(content[at : at + 1]) for at in range(len(content)))
    pair.receive(sent)
    assert pair.socket.is_paused
    assert pair.noting.frames == []
    await turns(100)
    assert pair.noting.frames == [bytes(1000)]
