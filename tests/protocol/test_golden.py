"""Bytes of real clients and of Apache Kafka: we read what they say, and write the same bytes again.

`golden/` holds each request at the version that kafka-python, librdkafka and the Java client pick when they are offered
our ranges, each response of Apache Kafka 4.3.1 at those versions, and a batch of the same records by every client with
every codec. golden/files.py describes the format.
"""

from pathlib import Path

import pytest

from odradek.protocol.batches.batch import HEADER_SIZE, check_batch, patched_prefix
from odradek.protocol.batches.compression import Codec, decompress
from odradek.protocol.batches.record_encoding import build_batch, encode_records
from odradek.protocol.batches.records import check_records, iterate_records
from odradek.protocol.codec import codec
from odradek.protocol.codec.schema import Message
from odradek.protocol.declared import declared_messages
from odradek.protocol.frames import (
    RequestHeader,
    read_request_header,
    read_response_header,
    request_frame,
    response_frame,
)
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from tests.protocol.golden import files

MESSAGE_FILES = sorted(files.MESSAGES.glob("*/*.hex"))
BATCH_FILES = sorted(files.BATCHES.glob("*.hex"))


def declaration_of(path: Path) -> tuple[type[Message], int]:
    """The message that a file holds, by its place and name, and the version."""
    version, kind = path.stem.split("-")[:2]
    name = path.parent.name.title().replace("_", "") + kind.title()
    return declared_messages()[name], int(version.removeprefix("v"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", MESSAGE_FILES, ids=name_of)
def test_a_frame_is_read_and_written_again(path: Path) -> None:
    """Header and body: what the file expects is read, and the frame that we write is equal byte by byte."""
    golden = files.read(path)
    cls, version = declaration_of(path)
    is_flexible = cls.is_flexible(version)
    if path.stem.split("-")[1] == "request":
        header, position = read_request_header(golden.data, is_flexible)
        assert header == RequestHeader(cls.api_key, version, header.correlation_id, header.client_id)
        message = codec.decode(cls, version, golden.data, position)
        written = request_frame(header, is_flexible, codec.encode_parts(message, version))
    else:
        flexible_header = is_flexible and cls is not ApiVersionsResponse
        correlation_id, position = read_response_header(golden.data, flexible_header)
        message = codec.decode(cls, version, golden.data, position)
        written = response_frame(correlation_id, flexible_header, codec.encode_parts(message, version))
    for where, value in golden.expected.items():
        assert files.value_at(message, where) == value, where
    assert b"".join(written) == len(golden.data).to_bytes(4) + golden.data


@pytest.mark.parametrize("path", BATCH_FILES, ids=name_of)
def test_a_batch_of_a_client_is_accepted_and_holds_what_it_was_given(path: Path) -> None:
    batch = files.read(path).data
    header = check_batch(memoryview(batch))
    assert header.codec is Codec[path.stem.rpartition("-")[2].upper()]
    check_records(batch, header)
    assert list(iterate_records(batch)) == files.RECORDS


@pytest.mark.parametrize("path", BATCH_FILES, ids=name_of)
def test_our_records_are_those_of_the_client_byte_by_byte(path: Path) -> None:
    """Uncompressed, the whole batch is: what the codecs write may differ, what they were given may not."""
    batch = files.read(path).data
    header = check_batch(memoryview(batch))
    encoded = encode_records(files.RECORDS, 0, header.base_timestamp)
    assert decompress(header.codec, batch[HEADER_SIZE:], len(encoded)) == encoded
    ours = build_batch(
        files.RECORDS,
        codec=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    if header.codec is Codec.NONE:
        assert patched_prefix(header, 0, -1) + batch[16:] == ours


def test_every_message_and_every_client_is_there() -> None:
    """Each declared message, oldest and newest version with a comment on every line, and each client's codecs."""
    found = {declaration_of(path)[0] for path in MESSAGE_FILES}
    assert found == set(declared_messages().values())
    assert {path.stem.split("-", 2)[2] for path in MESSAGE_FILES if "-request-" in path.stem} == {
        "kafka-python",
        "librdkafka",
        "java",
        "java-3.9",
        "broker",
    }
    every_codec = {"none", "gzip", "snappy", "lz4", "zstd"}
    assert {path.stem for path in BATCH_FILES} == {
        *(f"java-{kind}" for kind in every_codec),
        *(f"librdkafka-{kind}" for kind in every_codec),
        "kafka-python-none",
        "kafka-python-gzip",
    }


@pytest.mark.parametrize("api", sorted({path.parent for path in MESSAGE_FILES}), ids=lambda path: path.name)
def test_the_oldest_and_the_newest_version_have_a_comment_per_field(api: Path) -> None:
    by_version: dict[str, list[Path]] = {}
    for path in sorted(api.glob("*.hex")):
        by_version.setdefault(path.stem.partition("-")[0], []).append(path)
    oldest, newest = min(by_version), max(by_version)
    for path in by_version[oldest] + by_version[newest]:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        # Fields that take several rows have their comment in the last one.
        assert all("#" in line or len(line) == 64 for line in lines)
        assert sum("#" in line for line in lines) >= 3
