"""The file of a backup: what goes in comes out, and what was damaged or cut off at any byte is refused."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from odradek.broker.cluster.acls import acl_key, encode_acl
from odradek.broker.cluster.backup import (
    EPOCHS_SKIPPED,
    BadBackup,
    chunks,
    decode_backup,
    described,
    encode_backup,
    restored_values,
    take_backup,
)
from odradek.broker.cluster.features import ACLS, ENVELOPE, SUPPORTED, TRANSACTION_VERSION
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    CONTROLLER_KEY,
    FEATURES_KEY,
    PRODUCER_IDS_KEY,
    BrokerState,
    MalformedMetadata,
    NodeState,
    PartitionState,
    TopicState,
    broker_config_key,
    broker_key,
    changing_key,
    decode_cluster,
    decode_features,
    decode_partition,
    decode_restoring,
    encode_changing,
    encode_cluster,
    encode_configs,
    encode_controller,
    encode_features,
    encode_producer_ids,
    encode_restoring,
    encode_stopping,
    node_key,
    partition_key,
    stopping_key,
    topic_config_key,
    topic_key,
)
from odradek.broker.cluster.store import COMMIT_BYTES_MAX, OPERATIONS_MAX, Entry, Snapshot
from tests.broker.access.rules import acl

TOPIC_ID = bytes(range(16))
TIME = "2026-11-22T14:00:00Z"
KEPT = {
    CLUSTER_KEY: encode_cluster("a-cluster"),
    broker_config_key(None): encode_configs({"log.cleaner.threads": "2"}),
    topic_config_key("orders"): encode_configs({"retention.ms": "1000", "é": "ü"}),
    node_key(1): NodeState((TOPIC_ID,)).encode(),
    partition_key("orders", 0): PartitionState(TOPIC_ID, (1, 2), (1,), 1, leader_epoch=5, partition_epoch=7).encode(),
    PRODUCER_IDS_KEY: encode_producer_ids(4000),
    topic_key("orders"): TopicState(TOPIC_ID, 1).encode(),
}
LEFT_OUT = {
    broker_key(1): BrokerState(1, {"PLAINTEXT": ("localhost", 9092)}).encode(),
    CONTROLLER_KEY: encode_controller(1),
    stopping_key(1): encode_stopping(3),
    changing_key("new"): encode_changing(TOPIC_ID),
    "/somebody/elses": b"\xff",
}


def snapshot(revision: int = 4711) -> Snapshot:
    return Snapshot(revision, {key: Entry(value, 1) for key, value in sorted((KEPT | LEFT_OUT).items())})


def test_what_belongs_to_the_cluster_goes_in_and_comes_out() -> None:
    taken = take_backup(snapshot(), TIME)
    data = encode_backup(taken)
    read = decode_backup(data)
    assert read.values == KEPT
    assert list(read.values) == sorted(KEPT)
    assert (read.cluster_id, read.revision, read.time) == ("a-cluster", 4711, TIME)
    assert read.values == taken.values


@pytest.mark.parametrize(("key", "value"), [("/topics/x", b"\xff"), ("/topics/\udcff", b"{}")])
def test_what_is_no_text_is_refused_by_name_and_keys_of_others_do_not_matter(key: str, value: bytes) -> None:
    entries = {CLUSTER_KEY: Entry(encode_cluster("c"), 1), "/somebody/\udcff": Entry(b"\xff", 2)}
    assert take_backup(Snapshot(3, entries), "now").values.keys() == {CLUSTER_KEY}
    with pytest.raises(MalformedMetadata, match=r"^'/topics/.* or its value is no text"):
        take_backup(Snapshot(3, entries | {key: Entry(value, 3)}), "now")


def test_the_file_can_be_read_and_checked_by_hand() -> None:
    lines = encode_backup(take_backup(snapshot(), TIME)).splitlines(keepends=True)
    objects = [json.loads(line) for line in lines]
    assert objects[0] == {
        "odradek_metadata_backup": 1,
        "cluster_id": "a-cluster",
        "revision": 4711,
        "time": TIME,
        "count": len(KEPT),
    }
    assert json.loads(objects[-2]["value"])["topic_id"] == "AAECAwQFBgcICQoLDA0ODw"
    assert objects[-1] == {"sha256": hashlib.sha256(b"".join(lines[:-1])).hexdigest()}


def test_a_store_without_a_cluster_is_not_saved() -> None:
    with pytest.raises(MalformedMetadata, match="no cluster"):
        take_backup(Snapshot(3, {}), TIME)
    half = Snapshot(3, {CLUSTER_KEY: Entry(encode_restoring("abc"), 1)})
    with pytest.raises(MalformedMetadata, match="a restore of this metadata was begun and has not ended"):
        take_backup(half, TIME)


def test_a_file_that_was_cut_off_anywhere_is_refused() -> None:
    data = encode_backup(take_backup(snapshot(), TIME))
    for end in range(len(data) - 1):  # without the last line end nothing is missing
        with pytest.raises(BadBackup):
            decode_backup(data[:end])
    assert decode_backup(data[:-1]) == decode_backup(data)


def test_a_file_in_which_any_byte_was_changed_is_refused() -> None:
    data = encode_backup(take_backup(snapshot(), TIME))
    last = data.rstrip().rfind(b"\n")
    for position in range(last):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(BadBackup):
            decode_backup(bytes(changed))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"odradek_metadata_backup": 2}, "newer Odradek; this one reads up to 1"),
        ({"something": 1}, "does not begin like a backup"),
        ({"odradek_metadata_backup": 1, "cluster_id": "a-cluster"}, "lacks what it should say"),
        (
            {"odradek_metadata_backup": 1, "cluster_id": "a-cluster", "revision": 1, "time": TIME, "count": 2},
            "should have 2 keys, and has 1",
        ),
        (
            {"odradek_metadata_backup": 1, "cluster_id": "another", "revision": 1, "time": TIME, "count": 1},
            "names another cluster",
        ),
    ],
)
def test_what_else_a_file_may_be_is_told(header: dict[str, object], said: str) -> None:
    row = {"key": CLUSTER_KEY, "value": encode_cluster("a-cluster").decode()}
    with pytest.raises(BadBackup, match=said):
        decode_backup(whole(header, row))


def test_what_does_not_belong_into_one_is_refused() -> None:
    header = {"odradek_metadata_backup": 1, "cluster_id": "a-cluster", "revision": 1, "time": TIME, "count": 1}
    for row in ({"key": CONTROLLER_KEY, "value": "{}"}, {"key": CLUSTER_KEY}, {"neither": 1}):
        with pytest.raises(BadBackup):
            decode_backup(whole(header, row))


def whole(*rows: Mapping[str, object]) -> bytes:
    body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return body + json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n"


# ---------------------------------------------------------------------------------------------------------- restoring
def test_a_restore_writes_leader_epochs_that_were_never_used() -> None:
    values = restored_values(take_backup(snapshot(), TIME))
    partition = decode_partition(values[partition_key("orders", 0)], "orders", 0)
    assert (partition.leader_epoch, partition.partition_epoch) == (5 + EPOCHS_SKIPPED, 7 + EPOCHS_SKIPPED)
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2), (1,), 1)
    others = KEPT.keys() - {partition_key("orders", 0)}
    assert {key: values[key] for key in others} == {key: KEPT[key] for key in others}


def test_a_backup_that_no_broker_could_read_is_not_restored() -> None:
    broken = {**KEPT, topic_key("orders"): b'{"v":1}'}
    taken = take_backup(Snapshot(1, {key: Entry(value, 1) for key, value in broken.items()}), TIME)
    with pytest.raises(MalformedMetadata):
        restored_values(taken)


def test_a_mark_is_known_and_read_by_nobody_as_a_cluster() -> None:
    mark = encode_restoring("abc")
    assert decode_restoring(mark) == "abc"
    assert [decode_restoring(value) for value in (encode_cluster("c"), b"", b"[]", b'{"restoring":1}')] == [None] * 4
    with pytest.raises(MalformedMetadata, match="a restore of this metadata was begun"):
        decode_cluster(mark)
    assert json.loads(mark)["v"] > 1, "who knows no mark refuses it as too new"


def test_portions_are_what_a_commit_takes_and_leave_the_cluster_for_the_end() -> None:
    small = {f"/topics/t{number:04}": b"x" for number in range(250)} | {CLUSTER_KEY: b"c"}
    found = list(chunks(small))
    assert [len(chunk) for chunk in found] == [90, 90, 70]
    assert {key for chunk in found for key in chunk} == small.keys() - {CLUSTER_KEY}
    large = {f"/topics/t{number}": bytes(200_000) for number in range(5)}
    assert [len(chunk) for chunk in chunks(large)] == [2, 2, 1]
    assert all(sum(map(len, chunk.values())) <= COMMIT_BYTES_MAX and len(chunk) < OPERATIONS_MAX for chunk in found)


def test_what_a_store_holds_is_told_in_a_few_words() -> None:
    assert described([]) == "nothing"
    assert described(["/topics/a", "/topics/b", CLUSTER_KEY]) == "1 cluster key(s), 2 topic key(s)"


def test_acls_and_that_they_count_come_with_it_and_no_other_feature_does() -> None:
    features = {FEATURES_KEY: encode_features({**SUPPORTED, "of tomorrow": 3}, {TRANSACTION_VERSION: 1})}
    there = KEPT | features | {acl_key(acl()): encode_acl(acl())}
    backup = take_backup(Snapshot(1, {key: Entry(value, 1) for key, value in there.items()}), TIME)
    restored = restored_values(decode_backup(encode_backup(backup)))
    image = ClusterImage.from_snapshot(Snapshot(1, {key: Entry(value, 1) for key, value in restored.items()}))
    assert (image.features, image.held_features) == ({ACLS: 1}, {})
    assert list(image.acls.values()) == [acl()]


def test_where_acls_do_not_count_no_feature_comes_with_it() -> None:
    there = KEPT | {FEATURES_KEY: encode_features({ENVELOPE: 1})}
    backup = take_backup(Snapshot(1, {key: Entry(value, 1) for key, value in there.items()}), TIME)
    assert FEATURES_KEY not in backup.values
    altered = replace(backup, values={**backup.values, FEATURES_KEY: encode_features(SUPPORTED)})
    assert decode_features(restored_values(altered)[FEATURES_KEY]) == ({ACLS: 1}, {})
