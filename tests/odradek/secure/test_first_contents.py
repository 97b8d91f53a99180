"""Users and ACLs are written into a store that is empty, and into no other."""

from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.adopt.claim import DirectoryRefused
from odradek.broker.offline.rescue.stores import opened
from odradek.client.admin.acls import AclBinding, AclOperation, AclResourceType
from odradek.secure.first_contents import StoreRefused, write_contents, write_user
from tests.odradek.secure.broker_rooms import put_into

READS = AclBinding(AclResourceType.TOPIC, "orders", "User:billing", AclOperation.READ)
SHA_512 = "SCRAM-SHA-512"


async def keys_of(address: str) -> dict[str, bytes]:
    async with opened(address, FileDisk()) as store:
        return {key: entry.value for key, entry in (await store.read("/")).entries.items()}


async def test_users_and_acls_are_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_into(monkeypatch)
    address = f"embedded:{tmp_path}/data"
    await write_contents(FileDisk(), address, {}, {"alice": "a", "bob": "b"}, SHA_512, 4096, [READS])
    assert await keys_of(address) == {
        "/acls/2|orders|3|User:billing|*|3|3": b"{}",
        "/scram/users/SCRAM-SHA-512/alice": b"a 4096",
        "/scram/users/SCRAM-SHA-512/bob": b"b 4096",
    }


async def test_the_store_of_a_cluster_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_into(monkeypatch)
    address = f"embedded:{tmp_path}/data"
    await write_contents(FileDisk(), address, {}, {"alice": "a"}, SHA_512, 4096, [])
    before = await keys_of(address)
    with pytest.raises(StoreRefused, match="holds the metadata of a cluster already"):
        await write_contents(FileDisk(), address, {}, {"eve": "e"}, SHA_512, 4096, [READS])
    assert await keys_of(address) == before


async def test_a_user_is_added_to_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_into(monkeypatch)
    address = f"embedded:{tmp_path}/data"
    await write_contents(FileDisk(), address, {}, {"alice": "a"}, SHA_512, 4096, [READS])
    await write_user(FileDisk(), address, "bob", ["SCRAM-SHA-256", SHA_512], "b", 8192)
    found = await keys_of(address)
    assert len(found) == 4
    assert found["/scram/users/SCRAM-SHA-256/bob"] == b"b 8192"


async def test_a_directory_on_which_a_broker_runs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_into(monkeypatch)
    address = f"embedded:{tmp_path}"
    async with opened(address, FileDisk()):
        with pytest.raises(DirectoryRefused, match="stop the broker"):
            await write_user(FileDisk(), address, "bob", [SHA_512], "b", 4096)
