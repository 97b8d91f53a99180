"""What is written over TLS, in how many records, and what becomes of it when that fails. Back-pressure is shown in
test_tls_layer.py."""

import asyncio
import ssl

from odradek.broker.network.tls_writer import RECORD_BYTES, TlsWriter
from odradek.broker.tls.record_counter import RecordCounter
from tests.broker.network.tls_pair import Noting, TlsPair, listener
from tests.broker.tls.authority import Authority


def opened() -> TlsPair:
    authority = Authority("authority")
    pair = TlsPair(listener(authority.issue("broker")), authority.client_context())
    pair.shake_hands()
    pair.read()
    return pair


def records(pair: TlsPair) -> int:
    counter = RecordCounter()
    counter.feed(memoryview(pair.socket.written), 1000)
    return counter.count


async def test_small_parts_share_a_record() -> None:
    pair = opened()
    pair.noting.transport.writelines([b"x" * 100] * 50)
    assert records(pair) == 1
    assert pair.read() == b"x" * 5000


async def test_small_parts_beside_large_ones_do_too() -> None:
    pair = opened()
    pair.noting.transport.writelines([b"a", b"b", bytes(RECORD_BYTES), b"c", b"d"])
    assert records(pair) == 3
    assert pair.read() == b"ab" + bytes(RECORD_BYTES) + b"cd"


async def test_nothing_is_no_record() -> None:
    pair = opened()
    pair.noting.transport.writelines([])
    pair.noting.transport.write(b"")
    assert records(pair) == 0


class Broken:
    """In place of OpenSSL's state."""

    def write(self, data: memoryview) -> int:
        raise ssl.SSLError(1, "broken")


async def test_what_cannot_be_encrypted_is_told_once() -> None:
    pair, failures = opened(), list[ssl.SSLError]()
    broken: ssl.SSLObject = Broken()  # type: ignore[assignment]
    writer = TlsWriter(asyncio.get_running_loop(), pair.socket, broken, ssl.MemoryBIO(), Noting(), failures.append)
    writer.write([bytes(1_000_000)])
    assert len(failures) == 1
    assert writer.size_bytes == 0
