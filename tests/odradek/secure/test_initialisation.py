"""`odradek secure init` makes all of it or nothing; the files fit one another, and are for their owner alone."""

import builtins
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.rescue.stores import opened
from odradek.runtime.environment import Environment
from odradek.runtime.properties import parse_properties
from odradek.secure import initialisation
from odradek.secure.first_contents import StoreRefused
from odradek.secure.initialisation import initialise
from odradek.secure.new_directory import DirectoryExists
from odradek.secure.plan import Plan, PlanRefused
from tests.odradek.secure.broker_rooms import put_into


@pytest.fixture(autouse=True)
def rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    put_into(monkeypatch)


def plan_in(directory: Path, data_dir: Path | None = None, store: tuple[tuple[str, str], ...] = ()) -> Plan:
    data = directory / "data" if data_dir is None else data_dir
    hosts, clients = ["localhost", "127.0.0.1"], ["billing", "reports"]
    return Plan(hosts, clients, str(directory), str(data), "127.0.0.1", 9093, store_options=store)


def files_in(directory: Path) -> dict[str, Path]:
    return {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}


async def test_all_that_is_needed_is_there(tmp_path: Path) -> None:
    place = tmp_path / "secure"
    lines = await initialise(plan_in(place), Environment())
    found = files_in(place)
    made = {name for name in found if not name.startswith("data/")}
    clients = {
        f"clients/{user}/client.{kind}" for user in ("admin", "billing", "reports") for kind in ("properties", "py")
    }
    assert made == {"ca.pem", "ca.key", "broker.pem", "secure.properties"} | clients
    assert {stat.S_IMODE(found[name].stat().st_mode) for name in made} == {0o600}
    for path in (place, *place.rglob("*")):
        assert not path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o700
    context = ssl.create_default_context(cafile=str(found["ca.pem"]))
    context.load_cert_chain(found["broker.pem"])
    said = "\n".join(lines)
    assert f"odradek serve --config {place}/secure.properties" in said
    assert "4 users and 28 ACLs" in said


async def test_passwords_are_those_of_the_store_and_all_different(tmp_path: Path) -> None:
    place = tmp_path / "secure"
    lines = await initialise(plan_in(place), Environment())
    passwords = {
        user: parse_properties(path.read_text())["sasl.jaas.config"].split('password="')[1].split('"')[0]
        for user in ("admin", "billing", "reports")
        for path in [place / "clients" / user / "client.properties"]
    }
    broker = parse_properties((place / "secure.properties").read_text())
    jaas = broker["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"]
    passwords["broker"] = jaas.split('password="')[1].split('"')[0]
    assert len(set(passwords.values())) == 4
    assert all(len(password) == 32 for password in passwords.values())
    assert broker["log.dirs"] == f"{place}/data"
    async with opened(f"embedded:{place}/data", FileDisk()) as store:
        entries = (await store.read("/scram/")).entries
        acls = (await store.read("/acls/")).entries
    assert {key.rpartition("/")[2]: entry.value for key, entry in entries.items()} == {
        user: f"{password} 4096".encode() for user, password in passwords.items()
    }
    assert len(acls) == 28
    assert not [password for password in passwords.values() if password in "\n".join(lines)]


async def test_it_does_nothing_twice(tmp_path: Path) -> None:
    place = tmp_path / "secure"
    await initialise(plan_in(place), Environment())
    before = {name: path.read_bytes() for name, path in files_in(place).items()}
    with pytest.raises(DirectoryExists):
        await initialise(plan_in(place), Environment())
    assert {name: path.read_bytes() for name, path in files_in(place).items()} == before


async def test_a_data_directory_may_be_elsewhere_and_must_be_empty(tmp_path: Path) -> None:
    place, data = tmp_path / "secure", tmp_path / "disk" / "data"
    await initialise(plan_in(place, data), Environment())
    assert not (place / "data").exists()
    assert (data / "metadata.log").exists()
    assert parse_properties((place / "secure.properties").read_text())["log.dirs"] == str(data)
    with pytest.raises(StoreRefused):
        await initialise(plan_in(tmp_path / "other", data), Environment())
    assert not (tmp_path / "other").exists()


async def test_what_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*values: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(initialisation, "write_contents", fail)
    with pytest.raises(OSError, match="No space"):
        await initialise(plan_in(tmp_path / "secure"), Environment())
    assert list(tmp_path.iterdir()) == []


async def test_an_etcd_that_is_open_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    for options, why in (
        ((("metadata.store", "etcd://e:2379/k"),), "without TLS"),
        ((("metadata.store", "etcd://e:2379/k"), ("metadata.etcd.ca.location", "/ca.pem")), "without credentials"),
    ):
        with pytest.raises(PlanRefused, match=why):
            await initialise(plan_in(tmp_path / "secure", store=options), Environment())
    assert list(tmp_path.iterdir()) == []


async def test_what_has_to_be_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *values: Any, **options: Any) -> Any:
        if name == "odradek.secure.certificates":
            raise ImportError("No module named 'cryptography'")
        return real(name, *values, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PlanRefused, match=r"pip install 'odradek\[security\]'"):
        await initialise(plan_in(tmp_path / "secure"), Environment())
    assert list(tmp_path.iterdir()) == []
