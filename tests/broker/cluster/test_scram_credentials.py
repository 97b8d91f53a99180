"""Users of SCRAM in the metadata store: kept, followed by images, and secret in backups."""

import json

import pytest

from odradek.broker.cluster.backup import decode_backup, encode_backup, restored_values, take_backup
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    SCRAM_SECRET_KEY,
    SECRET_KINDS,
    KeyKind,
    MalformedMetadata,
    encode_cluster,
    parse_key,
    scram_user_key,
)
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.scram_credentials import (
    ScramCredentials,
    decode_credential,
    decode_secret,
    encode_credential,
    encode_secret,
)
from odradek.broker.cluster.store import Change, Event, Txn
from odradek.protocol.scram_server import ScramCredential, credential_of

MECHANISM = "SCRAM-SHA-256"
ALICE = credential_of(MECHANISM, "secret", b"salt", 4096)
KEY = scram_user_key(MECHANISM, "alice")


def test_values_come_back() -> None:
    assert decode_credential(encode_credential(ALICE)) == ALICE
    assert decode_secret(encode_secret(b"\0\xff")) == b"\0\xff"


@pytest.mark.parametrize("field", ["salt", "stored_key", "server_key", "iterations"])
@pytest.mark.parametrize("value", [None, "???", [], True])
def test_what_is_no_credential_is_refused(field: str, value: object) -> None:
    fields = json.loads(encode_credential(ALICE)) | {field: value}
    with pytest.raises(MalformedMetadata, match=f"a credential for SCRAM has no usable field '{field}'"):
        decode_credential(json.dumps(fields).encode())


@pytest.mark.parametrize("user", ["alice", "a/b", "/", "SCRAM-SHA-512/x", "é ,=\0", "secret", "users/x"])
def test_keys_hold_any_name_and_their_values_are_secret(user: str) -> None:
    key = scram_user_key(MECHANISM, user)
    assert parse_key(key) == (KeyKind.SCRAM_USER, f"{MECHANISM}/{user}")
    assert KeyKind.SCRAM_USER in SECRET_KINDS
    image = ClusterImage().apply(Change(1, (Event(key, encode_credential(ALICE)),)))[0]
    assert image.scram is not None
    assert image.scram.users == {MECHANISM: {user: ALICE}}
    assert parse_key(SCRAM_SECRET_KEY)[0] in SECRET_KINDS


def test_an_image_follows_each_change() -> None:
    bob = ScramCredential(b"s", b"k", b"v", 8192)
    steps: list[tuple[str, bytes | None]] = [
        (SCRAM_SECRET_KEY, encode_secret(b"x")),
        (KEY, encode_credential(ALICE)),
        (scram_user_key("SCRAM-SHA-512", "alice"), encode_credential(bob)),
        (KEY, encode_credential(bob)),
        (scram_user_key("SCRAM-SHA-1024", "alice"), b"of a newer release"),
        (KEY, None),
        (SCRAM_SECRET_KEY, None),
    ]
    image, seen = ClusterImage(), list[ScramCredentials]()
    assert image.scram is None
    for revision, (key, value) in enumerate(steps, 1):
        image, _ = image.apply(Change(revision, (Event(key, value),)))
        assert image.scram is not None
        seen.append(image.scram)
    assert [each.secret for each in seen] == [b"x"] * 6 + [None]
    assert [each.find(MECHANISM, "alice") for each in seen] == [None, ALICE, ALICE, bob, bob, None, None]
    assert seen[3].of_user("alice") == {MECHANISM: bob, "SCRAM-SHA-512": bob}
    assert seen[5].of_user("alice") == {"SCRAM-SHA-512": bob}
    assert seen[1].find(MECHANISM, "alice") == ALICE, "an image is never changed"
    assert "salt" not in repr(seen[1]) and repr(ALICE.stored_key) not in repr(seen[1])


async def test_a_backup_has_secrets_only_where_it_is_asked_for_them() -> None:
    store = MemoryStore()
    secret = encode_secret(b"x")
    put = {CLUSTER_KEY: encode_cluster("c"), KEY: encode_credential(ALICE), SCRAM_SECRET_KEY: secret}
    await store.commit(Txn(put=put))
    snapshot = await store.read("/")
    without, whole = take_backup(snapshot, "now"), take_backup(snapshot, "now", with_secrets=True)
    assert without.values.keys() == {CLUSTER_KEY}
    assert whole.values.keys() == {CLUSTER_KEY, KEY, SCRAM_SECRET_KEY}
    read = decode_backup(encode_backup(whole))
    assert read.values == whole.values
    assert restored_values(read)[KEY] == put[KEY]
