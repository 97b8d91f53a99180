"""Our messages against kafka-python's, our batches against kafka-python's and aiokafka's: no code is shared with them.

Every API is tried at every version that both sides declare. Values are drawn, since a client or a broker sends few of
them; what clients and Apache Kafka do send is in `golden/`.
"""

from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.batches.batch import check_batch, patched_prefix
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, check_records, iterate_records
from odradek.protocol.codec import codec
from odradek.protocol.codec.layout import Array, Kind, Layout, Nested, layout_of_message
from odradek.protocol.codec.schema import Message, Struct
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsResponse
from odradek.protocol.messages.group_rebalances import REBALANCES_TAG
from odradek.protocol.primitives import ZERO_UUID, Fixed
from tests.protocol.strategies import case_name, declared_versions, messages

UUID_KIND = Fixed("16s", 16)
PACKAGES = [import_module(f"kafka.protocol.{name}") for name in ("admin", "consumer", "metadata", "producer", "sasl")]


def theirs_of(cls: type[Message]) -> Any:
    """kafka-python's class of the same name."""
    (found,) = {getattr(package, cls.__name__) for package in PACKAGES if hasattr(package, cls.__name__)}
    return found


OURS_ALONE = ("BrokerHeartbeat", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "Envelope", "UnregisterBroker")
"""APIs that kafka-python does not have."""
OF_KAFKA_4_4 = (("ApiVersions", 5), ("TxnOffsetCommit", 6))
"""Versions that kafka-python does not have."""
TAGS_OF_OURS = (REBALANCES_TAG,)
"""kafka-python passes over them."""
PAIRS = [
    (cls, version)
    for cls, version in declared_versions()
    if not cls.__name__.startswith(OURS_ALONE) and version <= theirs_of(cls).max_version
]


def field_of(theirs: Any, name: str) -> Any:
    """The field of a class or instance of kafka-python, which keeps Kafka's names but for some sets of bits."""
    fields = theirs._struct.fields
    return fields[name if name in fields else "authorized_operations"]


def their_value(kind: Kind, value: Any, field: Any) -> Any:
    """A value of ours, structs and lists apart, as kafka-python represents it."""
    if kind == UUID_KIND:
        return None if value == ZERO_UUID else UUID(bytes=value)
    if field.name == "authorized_operations":
        # A set of the bits; None stands for the lowest number, which means "not asked for".
        return None if value == -(1 << 31) else {bit for bit in range(32) if value >> bit & 1}
    return value


def translated(layout: Layout, ours: Struct, theirs: Any, version: int) -> Any:
    """Our message as an instance of kafka-python's class. Tags are given where they differ from their default."""
    given: dict[str, Any] = {}
    for slot in layout.slots:
        value = getattr(ours, slot.name)
        is_given = slot.tag is None or value not in (None, [], slot.declared.default)
        if slot.is_carried and slot.tag not in TAGS_OF_OURS and is_given:
            field = field_of(theirs, slot.name)
            given[field.name] = translated_value(slot.kind, value, field, version)
    return theirs(version=version, **given)


def translated_value(kind: Kind, value: Any, field: Any, version: int) -> Any:
    match kind:
        case Nested() if value is not None:
            return translated(kind.layout, value, field.data_class, version)
        case Array() if value is not None:
            return [translated_value(kind.element, element, field, version) for element in value]
        case _:
            return their_value(kind, value, field)


def differences(layout: Layout, ours: Struct, theirs: Any, where: str) -> list[str]:
    """Compares field by field what this version carries."""
    found: list[str] = []
    for slot in layout.slots:
        if slot.is_carried and slot.tag not in TAGS_OF_OURS:
            field = field_of(theirs, slot.name)
            value = getattr(theirs, field.name)
            found += value_differences(slot.kind, getattr(ours, slot.name), value, field, f"{where}.{slot.name}")
    return found


def value_differences(kind: Kind, ours: Any, theirs: Any, field: Any, where: str) -> list[str]:
    match kind:
        case Nested() if ours is not None and theirs is not None:
            return differences(kind.layout, ours, theirs, where)
        case Array() if ours is not None and theirs is not None and len(ours) == len(theirs):
            return [
                found
                for at, (mine, other) in enumerate(zip(ours, theirs, strict=True))
                for found in value_differences(kind.element, mine, other, field, f"{where}[{at}]")
            ]
        case _:
            expected = their_value(kind, ours, field)
            return [] if expected == theirs else [f"{where}: {expected!r} of ours, {theirs!r} of theirs"]


@pytest.mark.parametrize(("cls", "version"), PAIRS, ids=case_name)
@settings(max_examples=4)
@given(data=st.data())
def test_each_side_reads_and_writes_what_the_other_writes(
    cls: type[Message], version: int, data: st.DataObject
) -> None:
    """Field by field in both directions, and both write the same bytes, without the tags of ours."""
    layout = layout_of_message(cls, version)
    theirs = theirs_of(cls)
    ours = data.draw(messages(cls, version))
    if isinstance(ours, ApiVersionsResponse):
        ours.error_code = 0  # otherwise kafka-python takes any version for version 0, the one that errors come in
    encoded = codec.encode(ours, version)
    assert differences(layout, ours, theirs.decode(encoded, version=version), cls.__name__) == []
    written = bytes(translated(layout, ours, theirs, version).encode(version=version))
    assert differences(layout, codec.decode(cls, version, written), theirs.decode(written, version=version), "") == []
    if isinstance(ours, DescribeGroupsResponse):
        for group in ours.groups:
            group.rebalances = []
        encoded = codec.encode(ours, version)
    assert written == encoded


def test_every_declared_message_is_compared_at_every_version() -> None:
    """Those of Kafka 4.4 are compared with Java's (tests/protocol/test_kafka_serialization.py)."""
    declared = [(cls, version) for cls, version in declared_versions() if not cls.__name__.startswith(OURS_ALONE)]
    left_out = {(cls.__name__, version) for cls, version in declared if (cls, version) not in PAIRS}
    assert left_out == {(f"{api}{kind}", last) for api, last in OF_KAFKA_4_4 for kind in ("Request", "Response")}


# -------------------------------------------------------------------------------------------------------- batches

READERS_AND_WRITERS = [
    pytest.param(import_module(f"{package}.record.default_records"), kind, id=f"{package}-{kind.name.lower()}")
    for package, kinds in (("kafka", (Codec.NONE, Codec.GZIP)), ("aiokafka", tuple(Codec)))
    for kind in kinds
]  # kafka-python needs further wheels for the other codecs

records = st.lists(
    st.builds(
        Record,
        st.just(0),
        st.integers(0, 1 << 45),
        st.none() | st.binary(max_size=80),
        st.none() | st.binary(max_size=80) | st.just(bytes(9000)),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=5,
).map(lambda drawn: [record._replace(offset=at) for at, record in enumerate(drawn)])


@pytest.mark.parametrize(("theirs", "kind"), READERS_AND_WRITERS)
@settings(max_examples=30)
@given(ours=records, base_offset=st.integers(0, 1 << 40))
def test_clients_read_our_batches(theirs: Any, kind: Codec, ours: list[Record], base_offset: int) -> None:
    ours = [record._replace(offset=base_offset + record.offset) for record in ours]
    batch = theirs.DefaultRecordBatch(
        build_batch(ours, base_offset=base_offset, codec=kind, producer_id=7, producer_epoch=8, base_sequence=9)
    )
    assert batch.validate_crc()
    assert (batch.base_offset, batch.magic, batch.last_offset_delta) == (base_offset, 2, len(ours) - 1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 8, 9)
    assert batch.max_timestamp == max(record.timestamp_ms for record in ours)
    read: list[Any] = [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in batch]
    assert read == [(*record[:4], list(record.headers)) for record in ours]


@pytest.mark.parametrize(("theirs", "kind"), READERS_AND_WRITERS)
@settings(max_examples=30)
@given(ours=records, is_transactional=st.booleans())
def test_we_read_the_batches_of_clients(theirs: Any, kind: Codec, ours: list[Record], is_transactional: bool) -> None:
    """They pass our full validation; uncompressed, where encoders have no choice, we write the same bytes."""
    builder = theirs.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=kind,
        is_transactional=is_transactional,
        producer_id=7,
        producer_epoch=8,
        base_sequence=2**31 - 1,
        batch_size=1 << 20,
    )
    for offset, timestamp_ms, key, value, headers in ours:
        assert builder.append(offset, timestamp_ms, key, value, list(headers))
    batch = bytes(builder.build())
    header = check_batch(memoryview(batch))
    check_records(batch, header)
    assert list(iterate_records(batch)) == ours
    assert header.is_transactional == is_transactional
    assert header.last_sequence == (2**31 - 1 + len(ours) - 1) % 2**31
    if header.codec is Codec.NONE:
        assert patched_prefix(header, 0, -1) + batch[16:] == build_batch(
            ours, producer_id=7, producer_epoch=8, base_sequence=2**31 - 1, is_transactional=is_transactional
        )
