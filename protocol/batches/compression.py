"""The four codecs of a record batch, each in the framing that Java and librdkafka read and write.

A batch names its codec in the lowest three bits of its attributes; what is compressed is the run of records after the
header. The byte formats:

- gzip: RFC 1952, several members are read as one stream.
- snappy: written as snappy-java's SnappyOutputStream does (the "xerial" framing): `82 "SNAPPY" 00`, int32 version 1,
  int32 compatible version 1, then blocks of int32 length and a raw snappy block of at most 32 KiB. Read: that, and the
  one raw block without framing that librdkafka sends; SnappyInputStream tells them apart by the magic, as we do.
- lz4: the LZ4 frame format with *independent* blocks of 64 KiB, each with its checksum. Kafka's Lz4BlockInputStream
  refuses linked blocks ("Dependent block stream is unsupported", KIP-57), which are what the codec library writes
  unless told otherwise.
- zstd: RFC 8878 frames (KIP-110).

Compressed bytes come from a peer, so how far they may expand is the caller's decision (`size_bytes_max`): a kilobyte of
zstd can promise a terabyte. The output is decoded into a buffer of fixed size that the codec cannot leave; when it was
too small a larger one is tried, up to the bound. A length inside the data sizes an allocation only once it has been
compared with the bytes that are there (snappy). What the codecs take beside the output is bounded too: an lz4 block at
4 MiB, a zstd window at 128 MiB of address space (the library's own limit), of which only pages with output are touched.

One wheel, cramjam, holds all four; the standard library has gzip only.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final, Protocol, assert_never

import cramjam

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer

__all__ = ["LEVELS", "Codec", "compress", "decompress", "has_linked_blocks"]


class Codec(IntEnum):
    """The values of a batch's codec bits (Kafka's CompressionType)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Kafka's bounds for compression.<codec>.level (KIP-390). Without a level: gzip 6, lz4 the fast compressor, zstd 3.
LEVELS: Final[dict[Codec, range]] = {
    Codec.GZIP: range(1, 10),
    Codec.LZ4: range(1, 18),
    Codec.ZSTD: range(-131072, 23),
}

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024  # SnappyOutputStream's default
_LZ4_FLAGS_POSITION: Final = 4  # after the magic
_LZ4_INDEPENDENT_BLOCKS: Final = 0x20
_INT32: Final = Struct(">i")

# Text batches shrink four- to eightfold at most times: the first buffer then fits. Bombs need few more rounds.
_FIRST_EXPANSION: Final = 4
_NEXT_EXPANSION: Final = 8
_FIRST_BUFFER_BYTES: Final = 16 * 1024
_BUFFER_FULL: Final = "failed to write whole buffer"  # what cramjam says when the output does not fit


class _IntoBuffer(Protocol):
    def __call__(self, input: Buffer, output: bytearray) -> int: ...  # noqa: A002 (the library's name)


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Returns `data` compressed as Kafka's clients do; `level` is in `LEVELS[codec]`, or None for the default."""
    assert level is None or level in LEVELS.get(codec, ()), f"{codec.name} has no compression level {level}"
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data, level=6 if level is None else level))
        case Codec.SNAPPY:
            return b"".join(_xerial_blocks(memoryview(data)))
        case Codec.LZ4:
            # Level 0 is the fast compressor. No content checksum, like Java: the batch has its CRC.
            stream = cramjam.lz4.Compressor(level=level or 0, content_checksum=False, block_linked=False)
            stream.compress(bytes(data))  # it takes no memoryview
            return bytes(stream.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))
        case _:
            assert_never(codec)


def decompress(codec: Codec, data: Buffer, size_bytes_max: int) -> bytes:
    """Returns what `data` held before compression, at most `size_bytes_max` bytes.

    Raises KafkaError: CORRUPT_MESSAGE when the data is damaged, cut or followed by other bytes; MESSAGE_TOO_LARGE, to
    which producers answer by splitting the batch, when it is larger than the bound.
    """
    match codec:
        case Codec.NONE:
            if len(data) > size_bytes_max:
                raise _too_large(codec, size_bytes_max)
            return bytes(data)
        case Codec.GZIP:
            return _decompress_bounded(codec, cramjam.gzip.decompress_into, data, size_bytes_max)
        case Codec.SNAPPY:
            return _decompress_snappy(memoryview(data), size_bytes_max)
        case Codec.LZ4:
            return _decompress_bounded(codec, cramjam.lz4.decompress_into, data, size_bytes_max)
        case Codec.ZSTD:
            return _decompress_bounded(codec, cramjam.zstd.decompress_into, data, size_bytes_max)
        case _:
            assert_never(codec)


def has_linked_blocks(frame: Buffer) -> bool:
    """Whether an lz4 frame is one that `decompress` reads and Java's clients and brokers do not (KIP-57)."""
    return len(frame) > _LZ4_FLAGS_POSITION and not frame[_LZ4_FLAGS_POSITION] & _LZ4_INDEPENDENT_BLOCKS


def _decompress_bounded(codec: Codec, decompress_into: _IntoBuffer, data: Buffer, size_bytes_max: int) -> bytes:
    """Decodes into a buffer that grows, by trying again, until the output fits or the bound is reached.

    A second try costs the first one's time, at most an eighth of its own; streaming decoders of the library would keep
    all output of one input chunk, however much that is.
    """
    size_bytes = min(size_bytes_max, max(_FIRST_BUFFER_BYTES, _FIRST_EXPANSION * len(data)))
    while True:
        output = bytearray(size_bytes)
        try:
            written = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if str(error) != _BUFFER_FULL:
                raise _corrupt(codec, str(error)) from error
        else:
            return bytes(memoryview(output)[:written])
        if size_bytes == size_bytes_max:
            raise _too_large(codec, size_bytes_max)
        size_bytes = min(size_bytes_max, size_bytes * _NEXT_EXPANSION)


def _xerial_blocks(data: memoryview) -> Iterator[bytes]:
    yield _XERIAL_HEADER
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block))
        yield block


def _is_xerial(data: memoryview, position: int) -> bool:
    return bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC


def _decompress_snappy(data: memoryview, size_bytes_max: int) -> bytes:
    if not _is_xerial(data, 0):
        return _decompress_snappy_block(data, size_bytes_max)
    output: list[bytes] = []
    position = 0
    left = size_bytes_max
    while position < len(data):
        # SnappyInputStream accepts a header before any block, so that streams can be concatenated. No block is as long
        # as the magic read as a length: that would be negative.
        if _is_xerial(data, position):
            position += len(_XERIAL_HEADER)
            if position > len(data):
                raise _corrupt(Codec.SNAPPY, "a block is cut")
            continue
        if len(data) - position < _INT32.size:
            raise _corrupt(Codec.SNAPPY, "a block is cut")
        block_bytes: int
        (block_bytes,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 < block_bytes <= len(data) - position:
            raise _corrupt(Codec.SNAPPY, "a block is cut")
        block = _decompress_snappy_block(data[position : position + block_bytes], left)
        output.append(block)
        left -= len(block)
        position += block_bytes
    return b"".join(output)


def _decompress_snappy_block(block: memoryview, size_bytes_max: int) -> bytes:
    """A raw snappy block begins with its length when decompressed, which is checked before anything is allocated."""
    try:
        size_bytes = cramjam.snappy.decompress_raw_len(block)
        # The bound alone does not protect: 100 MiB may be allowed, and five bytes can claim them. A copy element of
        # three bytes yields at most 64, so an honest block expands less than 22-fold.
        if size_bytes > 22 * len(block):
            raise _corrupt(Codec.SNAPPY, f"a block of {len(block)} bytes claims to hold {size_bytes}")
        if size_bytes > size_bytes_max:
            raise _too_large(Codec.SNAPPY, size_bytes_max)
        output = bytearray(size_bytes)
        written = cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as error:
        raise _corrupt(Codec.SNAPPY, str(error)) from error
    assert written == size_bytes
    return bytes(output)


def _corrupt(codec: Codec, why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{codec.name} records do not decompress: {why}")


def _too_large(codec: Codec, size_bytes_max: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"{codec.name} records decompress to more than {size_bytes_max} bytes"
    )
