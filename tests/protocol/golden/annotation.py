"""Takes a frame apart field by field, as Apache Kafka's own message descriptions say, and names each field.

The descriptions are Kafka's JSON files, which kafka-python carries unchanged, and of APIs that it has not those in
Kafka's own jar; no code of `protocol` is used. So the comments in the golden files are a second opinion: a frame that
is stored has been read completely by these rules.
`capture.py` alone uses this module, when it writes the files.
"""

import json
import re
import struct
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from processes.jars import APACHE_KAFKA, resolve

carried: Any = import_module("kafka.protocol.schemas.load_json").load_json
NOT_CARRIED = ("BrokerHeartbeat", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "Envelope", "UnregisterBroker")
"""APIs that kafka-python does not carry."""

NUMBERS = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d"}
# Record batch v2, KIP-98.
BATCH_HEADER = (
    ("base_offset", "q"),
    ("batch_length", "i"),
    ("partition_leader_epoch", "i"),
    ("magic", "b"),
    ("crc", "I"),
    ("attributes", "h"),
    ("last_offset_delta", "i"),
    ("base_timestamp", "q"),
    ("max_timestamp", "q"),
    ("producer_id", "q"),
    ("producer_epoch", "h"),
    ("base_sequence", "i"),
    ("record_count", "i"),
)
ROW_BYTES = 32


class Piece(NamedTuple):
    """Some bytes, what they are, and their value where they have one."""

    data: bytes
    path: str
    value: Any
    comment: str


def snake_case(name: str) -> str:
    """ErrorCode to error_code, as kafka-python does and as our declarations have it."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def includes(versions: str | None, version: int) -> bool:
    """Whether Kafka's notation ("3", "2-5", "4+", "none") includes a version."""
    if not versions or versions == "none":
        return False
    first, _, last = versions.partition("-")
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    return int(first) <= version <= int(last or first)


@cache
def load_json(name: str) -> Any:
    """Kafka's description of a message."""
    if not name.startswith(NOT_CARRIED):
        return carried(name)
    (jar,) = (path for path in resolve(*APACHE_KAFKA) if path.name.startswith("kafka-clients-"))
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(f"common/message/{name}.json").decode()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def annotate(frame: bytes, name: str, version: int) -> list[Piece]:
    """The pieces of a whole frame without its length: header, then the message `name`, e.g. FetchRequest."""
    message = load_json(name)
    is_flexible = includes(message["flexibleVersions"], version)
    walk = Walk(frame, is_flexible)
    if message["type"] == "request":
        walk.fields(load_json("RequestHeader"), 2 if is_flexible else 1, "")
    else:
        # The header of this one response is always of version 0 (KIP-511).
        walk.is_flexible = is_flexible and name != "ApiVersionsResponse"
        walk.fields(load_json("ResponseHeader"), 1 if walk.is_flexible else 0, "")
        walk.is_flexible = is_flexible
    walk.common = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", [])}
    walk.fields(message, version, "")
    assert walk.position == len(frame), f"{name} v{version}: {len(frame) - walk.position} bytes are left"
    assert b"".join(piece.data for piece in walk.pieces) == frame
    return walk.pieces


def annotate_batch(batch: bytes) -> list[Piece]:
    """The pieces of one record batch."""
    walk = Walk(batch, is_flexible=False)
    walk.batches(len(batch), "")
    return walk.pieces


class Walk:
    """A position in a frame, and the pieces before it."""

    def __init__(self, frame: bytes, is_flexible: bool) -> None:
        self.frame = frame
        self.is_flexible = is_flexible
        self.position = 0
        self.pieces: list[Piece] = []
        self.common: dict[str, Any] = {}

    def take(self, size: int) -> bytes:
        data = self.frame[self.position : self.position + size]
        assert len(data) == size, "the frame ends too early"
        self.position += size
        return data

    def number(self, code: str) -> Any:
        return struct.unpack(f">{code}", self.take(struct.calcsize(code)))[0]

    def unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def note(self, start: int, path: str, value: Any, comment: str) -> None:
        self.pieces.append(Piece(self.frame[start : self.position], path, value, comment))

    def length(self, path: str, of: str, code: str, is_compact: bool) -> int:
        """A length or count; -1 is null."""
        start = self.position
        value = self.unsigned_varint() - 1 if is_compact else int(self.number(code))
        told = "null" if value < 0 else f"{value} {of}"
        self.note(start, path, None if value < 0 else "", f"{path}: {told}")
        return value

    def fields(self, parent: dict[str, Any], version: int, prefix: str) -> None:
        described = parent.get("fields") or self.common[parent["type"].removeprefix("[]")]
        tagged: dict[int, Any] = {}
        for field in described:
            if not includes(field["versions"], version):
                continue
            if self.is_flexible and includes(field.get("taggedVersions"), version):
                tagged[field["tag"]] = field
            else:
                self.field(field, version, prefix + snake_case(field["name"]))
        if self.is_flexible:
            self.tags(tagged, version, prefix, prefix.rstrip(".") or parent["name"])

    def tags(self, known: dict[int, Any], version: int, prefix: str, where: str) -> None:
        start = self.position
        count = self.unsigned_varint()
        self.note(start, "", None, f"tags of {where}: {count or 'none'}")
        for _ in range(count):
            start = self.position
            tag, size = self.unsigned_varint(), self.unsigned_varint()
            end = self.position + size
            if tag in known:
                path = prefix + snake_case(known[tag]["name"])
                self.note(start, "", None, f"tag {tag} in {size} bytes: {path}")
                self.field(known[tag], version, path)
            else:
                self.take(size)
                self.note(start, "", None, f"tag {tag} in {size} bytes: unknown")
            assert self.position == end, f"tag {tag} does not end where it says"

    def field(self, field: dict[str, Any], version: int, path: str) -> None:
        kind = field["type"]
        is_compact = self.is_flexible and field.get("flexibleVersions") != "none"
        if kind.startswith("[]"):
            count = self.length(path, "elements", "i", is_compact)
            for index in range(count):
                self.field(field | {"type": kind[2:], "nullableVersions": None}, version, f"{path}[{index}]")
        elif kind[0].isupper():
            if includes(field.get("nullableVersions"), version):
                start = self.position
                is_there = self.number("b") > 0
                self.note(start, path, "" if is_there else None, f"{path}: {'there' if is_there else 'null'}")
                if not is_there:
                    return
            self.fields(field, version, f"{path}.")
        else:
            self.value(kind, path, is_compact)

    def value(self, kind: str, path: str, is_compact: bool) -> None:
        start = self.position
        if kind in NUMBERS:
            value = self.number(NUMBERS[kind])
            self.note(start, path, value, f"{path} = {value}")
        elif kind == "bool":
            value = self.number("b") != 0
            self.note(start, path, value, f"{path} = {str(value).lower()}")
        elif kind == "uuid":
            value = self.take(16).hex()
            self.note(start, path, value, path)
        elif kind == "string":
            size = self.length(path, "bytes", "h", is_compact)
            if size > 0:
                start = self.position
                value = self.take(size).decode()
                self.note(start, path, value, f'"{value}"')
        else:
            size = self.length(path, "bytes", "i", is_compact)
            if kind == "records" and size > 0:
                self.batches(self.position + size, "records: ")
            elif size > 0:
                start = self.position
                value = self.take(size).hex()
                self.note(start, path, value, path)

    def batches(self, end: int, prefix: str) -> None:
        """Record batches: each field of the header, then the records as they are."""
        while self.position < end:
            batch_end = end
            for name, code in BATCH_HEADER:
                start = self.position
                value = self.number(code)
                if name == "batch_length":
                    batch_end = self.position + value
                self.note(start, name, value, f"{prefix}{name} = {value}")
            start = self.position
            self.take(batch_end - start)
            self.note(start, "", None, f"{prefix}encoded")


def lines(pieces: list[Piece], *, with_comments: bool) -> Iterator[str]:
    """The pieces as text: a line each with its comment, long ones broken; or rows of hex digits without."""
    if with_comments:
        for piece in pieces:
            rows = [piece.data[at : at + ROW_BYTES].hex() for at in range(0, len(piece.data), ROW_BYTES)]
            yield from rows[:-1]
            yield f"{rows[-1]:<40}  # {piece.comment}"
    else:
        data = b"".join(piece.data for piece in pieces)
        for at in range(0, len(data), ROW_BYTES):
            yield data[at : at + ROW_BYTES].hex()
