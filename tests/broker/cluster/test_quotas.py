"""Quotas in the metadata store: keys for entities of any names, and how the image follows them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster.backup import decode_backup, encode_backup, restored_values, take_backup
from odradek.broker.cluster.image import ClusterImage, compare
from odradek.broker.cluster.keys import CLUSTER_KEY, KeyKind, MalformedMetadata, encode_cluster, parse_key
from odradek.broker.cluster.quotas import (
    TYPES,
    EntityQuotas,
    decode_quotas,
    encode_quotas,
    entity_of,
    parse_quota_entity,
    quota_key,
    sanitised,
)
from odradek.broker.cluster.store import Change, Entry, Event, Snapshot

ALICE = entity_of({"user": "alice"})
NAMES = st.dictionaries(st.sampled_from(TYPES), st.none() | st.text(min_size=1), min_size=1)


@given(NAMES)
def test_a_key_stands_for_its_entity_and_no_other(names: dict[str, str | None]) -> None:
    key = quota_key(entity_of(names))
    kind, rest = parse_key(key)
    assert kind is KeyKind.QUOTA
    assert parse_quota_entity(rest) == entity_of(names)
    assert rest.isascii()
    assert "/" not in rest


def test_keys_can_be_read() -> None:
    assert quota_key(entity_of({"client-id": "a b/c", "user": "alice"})) == "/quotas/user=alice,client-id=a%20b%2Fc"
    assert quota_key(entity_of({"user": None, "client-id": None})) == "/quotas/user,client-id"
    assert quota_key(entity_of({"ip": "::1"})) == "/quotas/ip=%3A%3A1"


def test_names_are_sanitised_as_kafka_does() -> None:
    """Sanitizer.java: URL encoding, but for the asterisk and the blank."""
    assert sanitised("CN=a b+c*~ü,O=x.y-z_") == "CN%3Da%20b%2Bc%2A%7E%C3%BC%2CO%3Dx.y-z_"


@pytest.mark.parametrize("text", ["", "user,user", "group=g", "user=%FF", "user=a,ip=b,nope", ",", "=a"])
def test_what_names_no_entity_is_malformed(text: str) -> None:
    with pytest.raises(MalformedMetadata):
        parse_quota_entity(text)


def test_limits_are_numbers() -> None:
    limits = {"producer_byte_rate": 1048576.0, "request_percentage": 0.1}
    assert decode_quotas(encode_quotas(limits), "k") == limits
    assert decode_quotas(b'{"v":1,"quotas":{"a":5}}', "k") == {"a": 5.0}
    for value in (b'{"v":1,"quotas":{"a":"5"}}', b'{"v":1,"quotas":{"a":true}}', b'{"v":1}', b"{}", b"", b'{"v":2}'):
        with pytest.raises(MalformedMetadata):
            decode_quotas(value, "k")


def test_the_image_follows_quotas_and_says_when_they_change() -> None:
    key = quota_key(ALICE)
    image, delta = ClusterImage().apply(Change(1, (Event(key, encode_quotas({"producer_byte_rate": 5.0})),)))
    assert image.quotas == {ALICE: EntityQuotas({"producer_byte_rate": 5.0}, 1)}
    assert delta.are_quotas_changed
    other, delta = image.apply(Change(2, (Event("/features", b'{"v":1,"features":{}}'),)))
    assert other.quotas is image.quotas
    assert not delta.are_quotas_changed
    gone, delta = other.apply(Change(3, (Event(key, None),)))
    assert gone.quotas == {}
    assert delta.are_quotas_changed
    assert compare(image, gone).are_quotas_changed
    assert not compare(image, other).are_quotas_changed


def test_quotas_are_read_with_the_revisions_of_their_keys() -> None:
    entries = {quota_key(ALICE): Entry(encode_quotas({"producer_byte_rate": 5.0}), 3)}
    image = ClusterImage.from_snapshot(Snapshot(9, entries))
    assert image.quotas == {ALICE: EntityQuotas({"producer_byte_rate": 5.0}, 3)}


def test_a_backup_keeps_quotas() -> None:
    """They are part of the cluster, and not of a process."""
    limits = encode_quotas({"producer_byte_rate": 5.0})
    entries = {CLUSTER_KEY: Entry(encode_cluster("b2RyYWRlay10ZXN0cy0wMQ"), 1), quota_key(ALICE): Entry(limits, 2)}
    backup = decode_backup(encode_backup(take_backup(Snapshot(2, entries), "2026-11-28T12:00:00Z")))
    assert restored_values(backup)[quota_key(ALICE)] == limits
