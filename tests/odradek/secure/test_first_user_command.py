"""`odradek users add --data-dir`: a user in the metadata of a broker that does not run."""

import stat
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.rescue.stores import opened
from odradek.cli import COMMANDS
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.users import users
from odradek.secure.first_user_command import add_offline
from tests.odradek.secure.broker_rooms import put_into

SHA_512 = "SCRAM-SHA-512"
SECRET = "pencil-5f0c"  # noqa: S105


@pytest.fixture(autouse=True)
def rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    put_into(monkeypatch)


async def test_the_first_user_of_a_new_cluster_is_stored(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    said = await add_offline(str(directory), "admin", [SHA_512], SECRET, 4096)
    assert said == f"admin has a password for SCRAM-SHA-512 in {directory}, from the broker's next start on"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    async with opened(f"embedded:{directory}", FileDisk()) as store:
        assert list((await store.read("/")).entries) == ["/scram/users/SCRAM-SHA-512/admin"]


async def test_a_broker_that_runs_is_left_alone(tmp_path: Path) -> None:
    async with opened(f"embedded:{tmp_path}", FileDisk()):
        with pytest.raises(CommandFailed, match="stop the broker that runs on it") as caught:
            await add_offline(str(tmp_path), "admin", [SHA_512], SECRET, 4096)
    assert SECRET not in str(caught.value)


async def test_a_directory_whose_metadata_is_elsewhere_is_refused(tmp_path: Path) -> None:
    """With etcd, or the metadata of another process: a file that no broker reads would be made."""
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(CommandFailed, match="metadata is elsewhere"):
        await add_offline(str(tmp_path), "admin", [SHA_512], SECRET, 4096)
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


@pytest.mark.parametrize("password", ["", f"{SECRET}\udc80"])
async def test_what_is_no_password_is_not_stored(tmp_path: Path, password: str) -> None:
    with pytest.raises(CommandFailed, match="Nothing was stored") as caught:
        await add_offline(str(tmp_path / "data"), "admin", [SHA_512], password, 4096)
    assert SECRET not in str(caught.value)


async def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandFailed, match="Nothing was stored"):
        await add_offline(str(tmp_path / "file" / "data"), "admin", [SHA_512], SECRET, 4096)


def test_the_door_hands_it_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "add_offline", None)
    load, _ = COMMANDS["users"]
    assert load() is users
    assert users.add_offline is add_offline
