"""The cluster's secret is made once, and its first user can be written to a store that no broker uses."""

import pytest

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import SCRAM_SECRET_KEY, scram_user_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.scram_credentials import ITERATIONS_MAX, decode_credential, decode_secret, encode_secret
from odradek.broker.cluster.scram_store import ensure_secret, write_first_user
from odradek.broker.cluster.store import Txn
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.protocol.scram import Challenge, salted_password
from odradek.protocol.scram_server import credential_from_salted
from odradek.runtime.environment import Environment

MECHANISM = "SCRAM-SHA-256"
KEY = scram_user_key(MECHANISM, "alice")


async def test_a_secret_is_made_once() -> None:
    store = MemoryStore()
    for _ in range(3):
        await ensure_secret(store, Environment())
    snapshot = await store.read(SCRAM_SECRET_KEY)
    assert (snapshot.revision, len(decode_secret(snapshot.entries[SCRAM_SECRET_KEY].value))) == (1, 32)


async def test_of_two_brokers_one_makes_it() -> None:
    """The other one has read before it was there."""

    class Late(MemoryStore):
        is_late = True

        async def commit(self, txn: Txn) -> int:
            if self.is_late:
                self.is_late = False
                await super().commit(Txn(put={SCRAM_SECRET_KEY: encode_secret(b"the first one's")}))
            return await super().commit(txn)

    store = Late()
    await ensure_secret(store, Environment())
    assert decode_secret((await store.read(SCRAM_SECRET_KEY)).entries[SCRAM_SECRET_KEY].value) == b"the first one's"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_the_first_user_of_a_cluster_is_written_to_its_stopped_store(mechanism: str) -> None:
    disk = MemoryDisk()
    disk.make_dir("data")
    store = EmbeddedStore.open(disk, "data")
    await write_first_user(store, mechanism, "a/dmin", "pässword", 8192)
    await store.close()
    again = EmbeddedStore.open(disk, "data")
    image = ClusterImage.from_snapshot(await again.read("/"))
    await again.close()
    assert image.scram is not None
    found = image.scram.find(mechanism, "a/dmin")
    assert found is not None
    salted = salted_password(mechanism, "pässword", Challenge(found.salt, 8192))
    assert found == credential_from_salted(mechanism, found.salt, salted, 8192)
    assert "pässword".encode() not in disk.read_whole("data/metadata.log")


async def test_a_user_who_is_written_twice_has_the_last_password_and_another_salt() -> None:
    store, salts = MemoryStore(), set[bytes]()
    for password in ("one", "two"):
        await write_first_user(store, MECHANISM, "alice", password)
        salts.add(decode_credential((await store.read(KEY)).entries[KEY].value).salt)
    assert len(salts) == 2


@pytest.mark.parametrize(
    ("mechanism", "user", "password", "iterations", "said"),
    [
        ("PLAIN", "a", "secret", 4096, "PLAIN is none of"),
        (MECHANISM, "", "secret", 4096, "must not be empty"),
        (MECHANISM, "a", "", 4096, "must not be empty"),
        (MECHANISM, "a", "secret", 4095, "from 4096 to 16384"),
        (MECHANISM, "a", "secret", ITERATIONS_MAX + 1, "from 4096 to 16384"),
    ],
)
async def test_what_kafka_refuses_is_not_written(
    mechanism: str, user: str, password: str, iterations: int, said: str
) -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match=said):
        await write_first_user(store, mechanism, user, password, iterations)
    assert (await store.read("/")).revision == 0
