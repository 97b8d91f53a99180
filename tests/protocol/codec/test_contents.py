"""Messages in words: Kafka's names, what the version carries, and nothing that belongs into no log."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.codec.contents import HIDDEN, contents
from odradek.protocol.codec.layout import Array, Blob, Kind, Layout, Nested, Text, layout_of_message
from odradek.protocol.codec.schema import Message, Struct
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.primitives import RecordsMark
from tests.protocol.strategies import case_name, declared_layouts, messages

KEPT_TEXT = "what no log may hold"
KEPT_BYTES = KEPT_TEXT.encode()
SUSPICIOUS = ("value", "password", "secret", "token", "credential", "salt", "hmac", "auth", "iteration")


def never(struct: Struct) -> bool:
    del struct
    return False


def test_a_produce_is_told_under_kafkas_names_and_its_records_by_their_size() -> None:
    data = TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=3, records=b"12345")])
    told = contents(ProduceRequest(acks=-1, timeout_ms=50, topic_data=[data]), 9, never)
    partitions = [{"index": 3, "records": "5 bytes"}]
    topics = [{"name": "orders", "partitionData": partitions}]
    assert told == {"transactionalId": None, "acks": -1, "timeoutMs": 50, "topicData": topics}


def test_what_the_version_does_not_carry_is_left_out_and_ids_are_texts() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    assert contents(request, 4, never) == {"topics": [{"name": "orders"}], "allowAutoTopicCreation": True}
    [topic] = contents(request, 12, never)["topics"]
    assert topic == {"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": "orders"}


def test_a_sensitive_value_is_hidden_unless_its_struct_is_known() -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=4,
                resource_name="0",
                configs=[
                    AlterableConfig(name="known", config_operation=0, value="5"),
                    AlterableConfig(name="other", config_operation=0, value=KEPT_TEXT),
                    AlterableConfig(name="none", config_operation=1, value=None),
                ],
            )
        ],
        validate_only=False,
    )
    told = contents(request, 1, lambda struct: getattr(struct, "name", "") == "known")
    assert [config["value"] for config in told["resources"][0]["configs"]] == ["5", HIDDEN, None]


def test_tokens_of_sasl_are_told_by_their_size() -> None:
    assert contents(SaslAuthenticateRequest(auth_bytes=b"\0alice\0pw"), 2, never) == {"authBytes": "9 bytes"}


CASES = list(declared_layouts())


@pytest.mark.parametrize(("cls", "version"), CASES, ids=case_name)
def test_no_message_tells_what_is_sensitive_or_as_bytes(cls: type[Message], version: int) -> None:
    """With the secret in every such place; the names of all others are none that a secret would have."""
    layout = layout_of_message(cls, version)
    told = json.dumps(contents(_filled(layout), version, never))
    assert KEPT_TEXT not in told
    assert "_" not in "".join(json.loads(told)), "names are Kafka's"
    open_texts = set(_open_texts(layout))
    assert not [name for name in open_texts if any(word in name for word in SUSPICIOUS)]


@given(data=st.data())
def test_whatever_a_message_holds_it_can_be_written_as_json(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(CASES))
    json.dumps(contents(data.draw(messages(cls, version)), version, never))


def _filled(layout: Layout) -> Any:
    values = {}
    for slot in layout.slots:
        if slot.is_carried:
            values[slot.name] = _value(slot.kind, is_sensitive=slot.declared.is_sensitive)
    return layout.cls(**values)


def _value(kind: Kind, *, is_sensitive: bool) -> Any:
    match kind:
        case Array():
            return [_value(kind.element, is_sensitive=is_sensitive)]
        case Nested():
            return _filled(kind.layout)
        case Blob() | RecordsMark():
            return KEPT_BYTES
        case Text():
            return KEPT_TEXT if is_sensitive else "open"
        case _:
            return bytes(16) if kind.format == "16s" else 0


def _open_texts(layout: Layout) -> list[str]:
    found: list[str] = []
    for slot in layout.slots:
        kind = slot.kind.element if isinstance(slot.kind, Array) else slot.kind
        if isinstance(kind, Nested):
            found += _open_texts(kind.layout)
        elif isinstance(kind, Text) and not slot.declared.is_sensitive:
            found.append(slot.name)
    return found
