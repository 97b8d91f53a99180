"""Our bytes and those of Apache Kafka's generated classes: messages, records of `__consumer_offsets` and of
`__transaction_state`, and what consumers tell one another.

Every declaration at every version: Kafka reads what we have written, finds the same values in it under the same names,
and writes the same bytes. Values are drawn by a seed.
"""

from base64 import b64encode
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from odradek.protocol.assignor_user_data import (
    StickyUserData,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    encode_cooperative_user_data,
    encode_sticky_user_data,
)
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.layout import Array, Blob, Kind, Layout, Nested, Slot, layout_of_message
from odradek.protocol.codec.schema import Message, Request, Response, Struct, uuid_text
from odradek.protocol.consumer_protocol import (
    Assignment,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from odradek.protocol.messages.group_rebalances import REBALANCES_TAG
from odradek.protocol.primitives import Fixed
from odradek.protocol.stored.consumer_group import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from odradek.protocol.stored.group_records import KEYS, VALUES
from odradek.protocol.stored.transaction_log import TransactionLogKey, TransactionLogValue
from tests.protocol.kafka_serialization import Member, Written, ask_kafka
from tests.protocol.strategies import declared_versions, random_message

pytestmark = [pytest.mark.java, pytest.mark.slow]

NOT_COMPARED = ("Fetch", "Produce")
"""Kafka leaves out tagged structs that are full of defaults, and records have no contents in its JSON."""
NO_METADATA = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=[])
"""To Kafka this is an absent tag, which it never is."""
RENAMED = {("TxnOffsetCommitRequest", "generation_id"): "generation_id_or_member_epoch"}
"""In Kafka 4.4."""
TAGS_OF_OURS = (REBALANCES_TAG,)
MESSAGES_EACH = 5
HAD = {"b": [2, 0], "a": [1]}


class Case(NamedTuple):
    """A message at a version, with its values and its bytes."""

    message: Message
    version: int
    encoded: bytes

    @property
    def kafka_class(self) -> str:
        name = type(self.message).__name__
        if isinstance(self.message, Request | Response):
            return f"org.apache.kafka.common.message.{name}Data"
        if isinstance(self.message, ConsumerProtocolSubscription | ConsumerProtocolAssignment):
            return f"org.apache.kafka.common.message.{name}"
        coordinator = "transaction" if isinstance(self.message, TransactionLogKey | TransactionLogValue) else "group"
        return f"org.apache.kafka.coordinator.{coordinator}.generated.{name}"


def declarations() -> Iterator[tuple[type[Message], int]]:
    yield from (found for found in declared_versions() if not found[0].__name__.startswith(NOT_COMPARED))
    others: list[type[Message]] = [*KEYS, *VALUES, TransactionLogKey, TransactionLogValue]
    others += [ConsumerProtocolSubscription, ConsumerProtocolAssignment]
    for cls in others:
        for version in range(cls.min_version, cls.max_version + 1):
            yield cls, version


def cases() -> Iterator[Case]:
    rng = Random("the same values at each run")
    for cls, version in declarations():
        for _ in range(MESSAGES_EACH):
            message = random_message(rng, cls, version)
            if isinstance(message, ConsumerGroupMemberMetadataValue) and message.classic_member_metadata == NO_METADATA:
                message.classic_member_metadata = None
            yield Case(message, version, encode(message, version))


def in_kafkas_words(layout: Layout, ours: Struct) -> dict[str, Any]:
    """As Kafka's JSON converters have it; a tagged field with its default is left out, and so are ours, which Kafka
    keeps as bytes that it does not know."""
    return {
        camel_case(RENAMED.get((type(ours).__name__, slot.name), slot.name)): value_in_kafkas_words(
            slot.kind, getattr(ours, slot.name)
        )
        for slot in layout.slots
        if slot.is_carried
        and slot.tag not in TAGS_OF_OURS
        and (slot.tag is None or differs(slot, getattr(ours, slot.name)))
    }


def differs(slot: Slot, value: Any) -> bool:
    declared = slot.declared
    if isinstance(slot.kind, Nested) and slot.is_nullable:
        return True
    return bool(value != (declared.default if declared.default_factory is None else declared.default_factory()))


def value_in_kafkas_words(kind: Kind, value: Any) -> Any:
    match kind:
        case _ if value is None:
            return None
        case Nested():
            return in_kafkas_words(kind.layout, value)
        case Array():
            return [value_in_kafkas_words(kind.element, element) for element in value]
        case Fixed("16s"):
            return uuid_text(value)
        case Blob():
            return b64encode(value).decode()
        case _:
            return value


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


@pytest.fixture(scope="module")
def asked() -> tuple[list[tuple[Case, Written | str]], Member]:
    ours = list(cases())
    answers, member = ask_kafka([(case.kafka_class, case.version, case.encoded) for case in ours])
    return list(zip(ours, answers, strict=True)), member


def test_kafka_reads_what_we_write_and_writes_the_same(asked: tuple[list[tuple[Case, Written | str]], Member]) -> None:
    """Values by their names, then bytes."""
    for case, written in asked[0]:
        where = f"{type(case.message).__name__} v{case.version}: {case.encoded.hex()}"
        assert isinstance(written, Written), f"{where}: {written}"
        layout = layout_of_message(type(case.message), case.version)
        assert written.contents == in_kafkas_words(layout, case.message), where
        assert written.data == case.encoded, where


def test_subscriptions_and_assignments_are_those_of_javas_consumer(asked: tuple[Any, Member]) -> None:
    member = asked[1]
    subscription = Subscription(["b", "a"], b"\x01\x02", HAD, 7, "rack")
    ours = tuple(encode_subscription(subscription, version) for version in range(4))
    assert ours == member.subscriptions
    assert tuple(encode_assignment(Assignment(HAD), version) for version in range(4)) == member.assignments


def test_the_user_data_of_sticky_assignors_is_javas(asked: tuple[Any, Member]) -> None:
    """Java has the topics in the order of a hash table."""
    member = asked[1]
    assert decode_sticky_user_data(member.sticky) == StickyUserData(HAD, 7)
    assert encode_sticky_user_data(decode_sticky_user_data(member.sticky)) == member.sticky
    assert decode_cooperative_user_data(member.cooperative) == 7
    assert encode_cooperative_user_data(7) == member.cooperative
