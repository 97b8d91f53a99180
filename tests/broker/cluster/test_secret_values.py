"""Which of a cluster's metadata are secrets, and that a backup has them only if it is asked for them."""

import hashlib

import pytest

from odradek.broker.cluster.backup import BadBackup, decode_backup, encode_backup, restored_values, take_backup
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    broker_config_key,
    decode_configs,
    encode_cluster,
    encode_configs,
    topic_config_key,
)
from odradek.broker.cluster.secret_values import is_secret_key, told_of, without_secrets
from odradek.broker.cluster.store import Entry, Snapshot
from tests.broker.config.security_rows import security_rows

__all__ = ["security_rows"]

pytestmark = pytest.mark.usefixtures("security_rows")

HUNTER = "hunter2"
OF_LISTENER = "listener.name.x.ssl.key.password"
ONE, ALL, TOPIC = broker_config_key(1), broker_config_key(None), topic_config_key("orders")
USER = "/scram/users/SCRAM-SHA-256/alice"
VALUES = {
    CLUSTER_KEY: encode_cluster("a-cluster"),
    ALL: encode_configs({"no.such.option": HUNTER}),
    ONE: encode_configs({"max.connections": "5", OF_LISTENER: HUNTER}),
    TOPIC: encode_configs({"retention.ms": "1000"}),
    USER: f'{{"v":1,"salt":"{HUNTER}"}}'.encode(),
}


def test_secrets_are_left_out_and_named() -> None:
    kept, left_out = without_secrets(VALUES)
    assert kept.keys() == {CLUSTER_KEY, ONE, TOPIC}
    assert decode_configs(kept[ONE], ONE) == {"max.connections": "5"}
    assert (kept[CLUSTER_KEY], kept[TOPIC]) == (VALUES[CLUSTER_KEY], VALUES[TOPIC])
    assert left_out == (f"{ALL} no.such.option", f"{ONE} {OF_LISTENER}", USER)
    assert HUNTER.encode() not in b"".join(kept.values())


def test_what_has_no_secrets_stays_as_it_is() -> None:
    values = {key: VALUES[key] for key in (CLUSTER_KEY, TOPIC)} | {ONE: encode_configs({"max.connections": "5"})}
    assert without_secrets(values) == (values, ())


@pytest.mark.parametrize(("key", "expected"), [(USER, True), ("/scram/secret", True), (ONE, False), ("/scra", False)])
def test_secret_keys(key: str, expected: bool) -> None:
    assert is_secret_key(key) is expected


def snapshot() -> Snapshot:
    # Keys of users are known to later parts; a backup takes what `parse_key` knows.
    return Snapshot(7, {key: Entry(value, 1) for key, value in VALUES.items() if key != USER})


def test_a_backup_has_secrets_only_if_it_is_asked() -> None:
    without = encode_backup(take_backup(snapshot(), "then"))
    assert HUNTER.encode() not in without
    assert decode_backup(without).left_out == (f"{ONE} {OF_LISTENER}", f"{ALL} no.such.option")
    with_them = encode_backup(take_backup(snapshot(), "then", with_secrets=True))
    read = decode_backup(with_them)
    assert read.left_out == ()
    assert decode_configs(restored_values(read)[ONE], ONE) == {"max.connections": "5", OF_LISTENER: HUNTER}
    assert b"left_out" not in with_them, "older releases write it so"


def test_a_restore_says_who_has_nothing_any_more() -> None:
    _, left_out = without_secrets(VALUES)
    users, options = told_of(left_out)
    assert "have no credentials, and cannot log in: alice (SCRAM-SHA-256); give them others" in users
    assert f"have no values: {ALL} no.such.option, {ONE} {OF_LISTENER}; set them again" in options
    assert told_of(()) == []
    assert "\\x1b[2J\\n (M)" in told_of(["/scram/users/M/\x1b[2J\n"])[0], "a terminal is not to obey a name"


def test_a_line_of_a_damaged_backup_is_not_shown() -> None:
    body = b'{"odradek_metadata_backup":1,"cluster_id":"x","revision":1,"time":"","count":1}\n{"kye":"hunter2"}\n'
    data = body + f'{{"sha256":"{hashlib.sha256(body).hexdigest()}"}}\n'.encode()
    with pytest.raises(BadBackup, match=r"^its line 2 has no key and value$"):
        decode_backup(data)
