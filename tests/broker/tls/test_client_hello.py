"""The first bytes of a client: hellos of OpenSSL in every portion, and what else may come first."""

import ssl

import pytest

from odradek.broker.tls.client_hello import HELLO_BYTES_MAX, RECORDS_MAX, NoHello, is_whole


def hello() -> bytes:
    """As OpenSSL begins."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def record(content: bytes, kind: int = 22, version: int = 3) -> bytes:
    return bytes((kind, version, 1)) + len(content).to_bytes(2, "big") + content


def message(size: int, kind: int = 1) -> bytes:
    return bytes((kind,)) + size.to_bytes(3, "big")


def test_a_hello_is_whole_with_its_last_byte() -> None:
    data = hello()
    assert [size for size in range(len(data)) if is_whole(data[:size])] == []
    assert is_whole(data)
    assert is_whole(bytearray(data + b"more"))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_hello_in_many_records(size: int) -> None:
    content = message(150) + bytes(150)
    whole = b"".join(record(content[start : start + size]) for start in range(0, len(content), size))
    if len(content) // size >= RECORDS_MAX:
        with pytest.raises(NoHello, match=f"more than {RECORDS_MAX} records"):
            is_whole(whole)
    else:
        assert is_whole(whole)
        assert not is_whole(whole[:-1])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\0\0\x12\0\x12\0\x03", "a client without TLS"),
        (b"\0", "a client without TLS"),
        (b"GET / HTTP/1.1\r\n", "looks like HTTP"),
        (b"\x80\x2e\x01\3\1", "SSL 2"),
        (b"\x16\x02", "no hello of TLS"),
        (b"\x15\3\1\0\2\2\x28", "no hello of TLS"),
        (b"x", "no hello of TLS"),
        (record(message(10, kind=2)), "does not begin with a hello"),
        (record(message(HELLO_BYTES_MAX + 1)), f"of {HELLO_BYTES_MAX + 1} bytes, where {HELLO_BYTES_MAX}"),
        (record(message(100)) + record(b"x", kind=20), "interrupted"),
        (record(message(100)) + record(b"x", version=2), "interrupted"),
        (b"\x16\3\1\0\0", "a record of 0 bytes"),
        (b"\x16\3\1\xff\xff", "a record of 65535 bytes"),
    ],
)
def test_what_is_no_hello(data: bytes, why: str) -> None:
    with pytest.raises(NoHello, match=why):
        is_whole(data)
