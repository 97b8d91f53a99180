"""Compression in Kafka's framings: round trips, other people's bytes in both directions, damage, and bombs.

The other people here are aiokafka's and kafka-python's codecs and vectors written by hand; what Java and librdkafka
compress stands in `golden/` (test_golden.py).
"""

import gzip
import subprocess
import sys
import tracemalloc
from importlib import import_module
from struct import pack
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batches.compression import LEVELS, Codec, compress, decompress
from odradek.protocol.errors import ErrorCode, KafkaError

aiokafka_codec: Any = import_module("aiokafka.codec")
kafka_codec: Any = import_module("kafka.codec")

MIB = 1024 * 1024
XERIAL = b"\x82SNAPPY\x00" + pack(">ii", 1, 1)
COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b'{"carrier": "UA", "flight": %d, "delay": %d}\n' % (n, n * n % 97) for n in range(4000))
SAMPLES = [b"", b"x", b"abc" * 5, TEXT[:32768], TEXT[:32769], TEXT, bytes(range(256)) * 300]

anything = st.one_of(
    st.binary(max_size=2000),
    st.tuples(st.binary(min_size=1, max_size=20), st.integers(1, 5000)).map(lambda drawn: drawn[0] * drawn[1]),
)


@pytest.mark.parametrize("codec", Codec)
@given(data=anything)
def test_decompressing_undoes_compressing(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@pytest.mark.parametrize(("codec", "level"), [(c, levels[at]) for c, levels in LEVELS.items() for at in (0, -1)])
def test_first_and_last_level_of_each_codec_can_be_read_back(codec: Codec, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT, level), len(TEXT)) == TEXT


@pytest.mark.parametrize(("codec", "high"), [(Codec.GZIP, 9), (Codec.LZ4, 12), (Codec.ZSTD, 19)])
def test_a_high_level_compresses_text_better_than_a_low_one(codec: Codec, high: int) -> None:
    assert len(compress(codec, TEXT, high)) < len(compress(codec, TEXT, 1))


@pytest.mark.parametrize("codec", Codec)
def test_any_buffer_can_be_compressed_and_decompressed(codec: Codec) -> None:
    compressed = compress(codec, memoryview(bytearray(TEXT))[5:500])
    assert decompress(codec, memoryview(bytearray(b"_" + compressed))[1:], MIB) == TEXT[5:500]


# --------------------------------------------------------------------------------------------------- foreign bytes


@pytest.mark.parametrize("data", SAMPLES[1:])  # aiokafka does not recognise a snappy header with nothing after it
@pytest.mark.parametrize("codec", COMPRESSING)
def test_aiokafka_reads_what_we_write(codec: Codec, data: bytes) -> None:
    read = getattr(aiokafka_codec, f"{codec.name.lower()}_decode")
    assert read(compress(codec, data)) == data


@pytest.mark.parametrize("data", SAMPLES)
@pytest.mark.parametrize("codec", COMPRESSING)
def test_we_read_what_aiokafka_writes(codec: Codec, data: bytes) -> None:
    write = getattr(aiokafka_codec, f"{codec.name.lower()}_encode")
    assert decompress(codec, bytes(write(data)), len(data)) == data


@pytest.mark.parametrize("data", SAMPLES)
def test_gzip_as_kafka_python_and_the_standard_library_have_it(data: bytes) -> None:
    assert kafka_codec.gzip_decode(compress(Codec.GZIP, data)) == data
    assert decompress(Codec.GZIP, kafka_codec.gzip_encode(data), len(data)) == data
    assert gzip.decompress(compress(Codec.GZIP, data)) == data


def test_gzip_of_several_members_is_one_stream() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one, ") + gzip.compress(b"two"), MIB) == b"one, two"


def test_snappy_is_written_in_blocks_of_32_kib_as_snappy_java_does() -> None:
    """The bytes are taken apart by hand: header, then a length and a raw block for each 32 KiB."""
    data = TEXT[: 2 * 32768 + 10]
    compressed = compress(Codec.SNAPPY, data)
    assert compressed[:16] == XERIAL
    sizes: list[int] = []
    position = 16
    while position < len(compressed):
        length = int.from_bytes(compressed[position : position + 4])
        block = bytes(cramjam.snappy.decompress_raw(compressed[position + 4 : position + 4 + length]))
        assert block == data[sum(sizes) : sum(sizes) + len(block)]
        sizes.append(len(block))
        position += 4 + length
    assert sizes == [32768, 32768, 10]


# "Wikipedia" followed by itself, as format_description.txt of snappy says: length 18, a literal of 9 (tag (9-1)<<2),
# a copy of 9 bytes (tag (9-4)<<2|1) from 9 bytes before.
RAW_SNAPPY = b"\x12\x20Wikipedia\x15\x09"


@pytest.mark.parametrize(
    "compressed",
    [
        pytest.param(RAW_SNAPPY, id="raw, as librdkafka writes it"),
        pytest.param(XERIAL + pack(">i", 13) + RAW_SNAPPY, id="one block"),
        pytest.param(XERIAL + pack(">i", 11) + b"\x09\x20Wikipedia" + pack(">i", 11) + b"\x09\x20Wikipedia", id="two"),
        pytest.param(2 * (XERIAL + pack(">i", 11) + b"\x09\x20Wikipedia"), id="streams one after the other"),
        pytest.param(XERIAL + pack(">i", 1) + b"\x00" + pack(">i", 13) + RAW_SNAPPY, id="an empty block first"),
    ],
)
def test_snappy_is_read_with_and_without_framing(compressed: bytes) -> None:
    assert decompress(Codec.SNAPPY, compressed, 18) == b"WikipediaWikipedia"


def test_lz4_frames_are_those_that_java_accepts() -> None:
    """Flags: version 1 (0x40), independent blocks (0x20), their checksums (0x10); blocks of 64 KiB (0x40)."""
    assert compress(Codec.LZ4, TEXT)[:6] == b"\x04\x22\x4d\x18\x70\x40"


def test_lz4_with_linked_blocks_and_checksums_is_read_too() -> None:
    compressed = bytes(cramjam.lz4.compress(TEXT))
    assert compressed[4] & 0x3C == 0x14  # linked, with checksums of the blocks and of the content
    assert decompress(Codec.LZ4, compressed, len(TEXT)) == TEXT


# ------------------------------------------------------------------------------------------------ damage and bombs


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_cut_is_found_wherever_it_is(codec: Codec) -> None:
    """Every prefix is refused, except that a snappy stream may end after any block: here before the only one."""
    compressed = compress(codec, TEXT[:500])
    for size in range(len(compressed)):
        if codec is Codec.SNAPPY and size == len(XERIAL):
            assert decompress(codec, compressed[:size], MIB) == b""
            continue
        with pytest.raises(KafkaError) as caught:
            decompress(codec, compressed[:size], MIB)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("after", [b"\x00", b"\x00\x00\x00\x00", b"more bytes than that"])
@pytest.mark.parametrize("codec", COMPRESSING)
def test_bytes_after_the_end_are_refused(codec: Codec, after: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        decompress(codec, compress(codec, TEXT) + after, MIB)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.data())
def test_damaged_bytes_give_bytes_or_a_kafka_error(codec: Codec, data: st.DataObject) -> None:
    """Nothing else is raised, whatever is changed; and what comes out stays within the bound."""
    compressed = bytearray(compress(codec, data.draw(anything)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(compressed) - 1))
        compressed[at] ^= data.draw(st.integers(1, 255))
    try:
        assert len(decompress(codec, compressed, 100_000)) <= 100_000
    except KafkaError as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.binary(max_size=200))
def test_random_bytes_give_bytes_or_a_kafka_error(codec: Codec, data: bytes) -> None:
    try:
        decompress(codec, data, 10_000)
    except KafkaError as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize("size", [0, 1, 70_000, len(TEXT) - 1])
@pytest.mark.parametrize("codec", Codec)
def test_more_than_the_bound_is_refused_and_the_bound_itself_is_not(codec: Codec, size: int) -> None:
    data = TEXT[:size]
    assert decompress(codec, compress(codec, data), size) == data
    with pytest.raises(KafkaError) as caught:
        decompress(codec, compress(codec, TEXT[: size + 1]), size)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_snappy_block_cannot_claim_more_than_it_can_hold() -> None:
    """Four bytes say that 64 MiB follow, which the bound would allow; nothing is allocated for them."""
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError) as caught:
            decompress(Codec.SNAPPY, b"\x80\x80\x80\x20" + b"\x00" * 10, 100 * MIB)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "framed",
    [
        pytest.param(pack(">i", 14) + RAW_SNAPPY, id="longer than what is left"),
        pytest.param(pack(">i", 12) + RAW_SNAPPY, id="shorter than its block"),
        pytest.param(pack(">i", 0), id="nothing"),
        pytest.param(pack(">i", -1), id="negative"),
        pytest.param(pack(">i", 13) + RAW_SNAPPY + b"\x00", id="a byte more"),
        pytest.param(XERIAL[:12], id="a second header that is cut"),
    ],
)
def test_a_wrong_length_before_a_snappy_block_is_found(framed: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        decompress(Codec.SNAPPY, XERIAL + framed, MIB)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


BOMB = """
import resource, sys
from odradek.protocol.batches.compression import Codec, decompress
from odradek.protocol.errors import ErrorCode, KafkaError

bomb = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(Codec[sys.argv[1]], bomb, 1 << 20)
except KafkaError as error:
    sys.stdout.write(f"{error.code.name} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}")
"""


def _zstd_promising_128_mib() -> bytes:
    """A frame with the largest window that the library accepts (2**27) and 64 runs of 128 KiB."""
    run = pack("<I", 128 * 1024 << 3 | 1 << 1)[:3] + b"A"  # block header: not the last, type RLE
    return b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([17 << 3]) + run * 64


def _stream(module: Any) -> bytes:
    compressor = module.Compressor()
    for _ in range(16):
        compressor.compress(bytes(16 * MIB))
    return bytes(compressor.finish())


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        pytest.param(Codec.GZIP, lambda: _stream(cramjam.gzip), id="gzip"),
        pytest.param(Codec.LZ4, lambda: _stream(cramjam.lz4), id="lz4"),
        pytest.param(Codec.ZSTD, lambda: _stream(cramjam.zstd), id="zstd"),
        pytest.param(Codec.ZSTD, _zstd_promising_128_mib, id="zstd, largest window"),
        pytest.param(Codec.SNAPPY, lambda: compress(Codec.SNAPPY, bytes(256 * MIB)), id="snappy"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux, and elsewhere in other units")
def test_a_bomb_of_256_mib_takes_no_more_memory_than_the_bound_allows(codec: Codec, bomb: Any) -> None:
    """Decompressed in a process of its own with a bound of 1 MiB, whose resident memory grows by less than 8 MiB."""
    ended = subprocess.run([sys.executable, "-c", BOMB, codec.name], input=bomb(), capture_output=True, check=True)
    code, grown_kib = ended.stdout.decode().split()
    assert code == ErrorCode.MESSAGE_TOO_LARGE.name
    assert int(grown_kib) < 8 * 1024
