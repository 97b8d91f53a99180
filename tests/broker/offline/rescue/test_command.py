"""`odradek cluster backup`, `restore` and `rebuild` as they are called, on real files: what they print and refuse."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from odradek.broker.cluster.backup import decode_backup
from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.journal import decode_file
from odradek.broker.cluster.keys import CLUSTER_KEY, broker_config_key, encode_configs, encode_restoring
from odradek.broker.cluster.store import Snapshot, Txn
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.rescue import restoring, stores
from odradek.broker.offline.rescue.command import backup, rebuild, restore
from odradek.broker.offline.rescue.restoring import RestoreRefused
from processes.etcd_server import EtcdServer
from tests.broker.offline.adopt.kafka_files import DATA, KafkaDirectory, batch


def run(command: click.Command, *arguments: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def directory(tmp_path: Path, node_id: int, end: int) -> Path:
    """The data directory of a broker, whose log ends there, without metadata."""
    made = KafkaDirectory(node_id=node_id, directory_id=bytes([node_id] * 16))
    made.partition("orders-0", batch(0, end, epoch=2), epochs=[(2, 0)])
    path = tmp_path / f"node-{node_id}"
    for name, content in made.files().items():
        file = path / Path(name).relative_to(DATA)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return path


@pytest.fixture
def rebuilt(tmp_path: Path) -> Path:
    """A directory with metadata."""
    path = directory(tmp_path, 1, 3)
    run(rebuild, path)
    return path


def image_in(path: Path) -> ClusterImage:
    journal = decode_file((path / FILE_NAME).read_bytes())
    return ClusterImage.from_snapshot(Snapshot(journal.revision, journal.entries))


# ------------------------------------------------------------------------------------------------------------ rebuild
def test_a_rebuild_says_what_it_has_found(tmp_path: Path) -> None:
    one, two = directory(tmp_path, 1, 3), directory(tmp_path, 2, 5)
    said = run(rebuild, one, two, "--into", one, "--dry-run").output
    assert "    orders-0: node 2 leads with offset 5 of epoch 2, node 1 follows with offset 3 of epoch 2; " in said
    assert "leader epoch 1002\n" in said
    assert f"  {one}: node 1, 1 partition(s), stopped cleanly\n" in said
    assert "the options of orders are lost" in said
    assert said.endswith(
        f"Nothing was changed. Without --dry-run, the metadata of 1 topic would be written to {one}.\n"
    )
    assert not (one / FILE_NAME).exists()
    assert run(rebuild, one, two, "--into", one).output.endswith(
        f"The metadata of 1 topic was written to {one}. Start the brokers.\n"
    )
    assert image_in(one).topics["orders"].partitions[0].leader == 2
    assert not (two / FILE_NAME).exists()


def test_of_several_directories_one_is_named_that_shall_have_it(tmp_path: Path) -> None:
    one, two = directory(tmp_path, 1, 3), directory(tmp_path, 2, 5)
    assert "--into says which directory" in run(rebuild, one, two, code=2).output
    assert "written to" in run(rebuild, one, two, "--into", tmp_path / "metadata").output
    run(rebuild, one, one)


def test_a_store_may_have_it_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "REVISIONS_SKIPPED", 10)
    one, two, store = directory(tmp_path, 1, 3), directory(tmp_path, 2, 5), tmp_path / "store"
    run(rebuild, one, two, "--metadata", f"embedded:{store}", "--dry-run")
    assert not store.exists()
    said = run(rebuild, one, two, "--metadata", f"embedded:{store}").output
    assert said.endswith(f"The metadata of 1 topic was written to embedded:{store}. Start the brokers.\n")
    assert image_in(store).topics["orders"].partitions[0].leader == 2
    assert not (one / FILE_NAME).exists()
    assert "is not empty" in run(rebuild, one, two, "--metadata", f"embedded:{store}", code=1).output
    assert "in place of --into" in run(rebuild, one, "--metadata", "embedded:x", "--into", one, code=2).output


def test_options_come_from_a_backup(tmp_path: Path, rebuilt: Path) -> None:
    file = tmp_path / "backup"
    run(backup, file, "--data-dir", rebuilt)
    (rebuilt / FILE_NAME).unlink()
    said = run(rebuild, rebuilt, "--backup", file).output
    assert "; retention.ms=-1\n" in said
    assert "are lost" not in said


# ------------------------------------------------------------------------------------------------- backup and restore
@pytest.mark.parametrize("kind", ["--data-dir", "--metadata"])
def test_a_backup_is_made_and_restored(
    tmp_path: Path, rebuilt: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "REVISIONS_SKIPPED", 10)
    file, target = tmp_path / "backup", tmp_path / "new"
    prefix = "embedded:" if kind == "--metadata" else ""
    said = run(backup, file, kind, f"{prefix}{rebuilt}").output
    found = decode_backup(file.read_bytes())
    assert said == (
        f"{len(found.values)} keys of cluster {found.cluster_id} at revision {found.revision}, "
        f"{file.stat().st_size} bytes\n"
    )
    said = run(restore, file, kind, f"{prefix}{target}", "--revision-at-least", "500").output
    assert said.startswith(f"restored {len(found.values)} keys of cluster {found.cluster_id}, as of {found.time}")
    before, after = image_in(rebuilt), image_in(target)
    assert after.topics.keys() == before.topics.keys() == {"orders"}
    assert after.revision > 500
    assert "not empty" in run(restore, file, kind, f"{prefix}{target}", code=1).output


def test_a_backup_may_go_to_standard_output(rebuilt: Path) -> None:
    done = run(backup, "-", "--data-dir", rebuilt)
    assert decode_backup(done.stdout_bytes).values
    assert "keys of cluster" in done.stderr


def test_a_backup_takes_the_place_of_a_file_alone(tmp_path: Path, rebuilt: Path) -> None:
    """A device or a pipe that it is given stays what it is: it was replaced by a file, `/dev/null` by root, too."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for no_file in (pipe, rebuilt):
        said = run(backup, no_file, "--data-dir", rebuilt, code=1).output
        assert f"{no_file} is there and is no regular file" in said
    assert pipe.is_fifo()
    file = tmp_path / "backup"
    for _ in range(2):
        run(backup, file, "--data-dir", rebuilt)
        assert decode_backup(file.read_bytes()).values


def test_a_broker_may_run_while_a_backup_is_made_but_not_while_one_is_restored(tmp_path: Path, rebuilt: Path) -> None:
    held = FileDisk().lock(str(rebuilt / ".lock"))
    file = tmp_path / "backup"
    run(backup, file, "--data-dir", rebuilt)
    (rebuilt / FILE_NAME).unlink()
    assert "holds the lock file" in run(restore, file, "--data-dir", rebuilt, code=1).output
    assert "holds the lock file" in run(rebuild, rebuilt, code=1).output
    held.release()
    run(restore, file, "--data-dir", rebuilt)


def test_an_interrupted_restore_is_cleared(tmp_path: Path) -> None:
    async def interrupt() -> None:
        store = EmbeddedStore.open(FileDisk(), str(tmp_path))
        await store.commit(Txn(put={CLUSTER_KEY: encode_restoring("abc"), "/topics/t": b"{}"}))
        await store.close()

    asyncio.run(interrupt())
    address = f"embedded:{tmp_path}"
    assert "was begun and has not ended" in run(backup, tmp_path / "b", "--metadata", address, code=1).output
    assert run(restore, "--clear", "--metadata", address).output == "removed 2 key(s)\n"
    assert "no restore was interrupted here" in run(restore, "--clear", "--metadata", address, code=1).output


def test_what_is_refused_is_one_sentence(tmp_path: Path, rebuilt: Path) -> None:
    file = tmp_path / "backup"
    run(backup, file, "--data-dir", rebuilt)
    lines = file.read_bytes().splitlines(keepends=True)
    header = json.loads(lines[0])
    assert header["count"] == len(lines) - 2
    file.write_bytes(b"".join(lines[:-2] + lines[-1:]))
    for command in ((restore, file, "--data-dir", tmp_path / "new"), (rebuild, rebuilt, "--backup", file)):
        done = run(*command, code=1)
        assert (
            done.output
            == f"Error: {file} is no backup to be used: its checksum is another: it was damaged or changed\n"
        )
    assert run(backup, tmp_path / "no" / "where", "--data-dir", rebuilt, code=1).output.startswith(
        f"Error: {rebuilt}: [Errno 2]"
    )
    assert "no such" not in run(backup, file, "--data-dir", tmp_path / "nowhere", code=1).output


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        (backup, ("file",), "give --data-dir or --metadata"),
        (backup, ("file", "--data-dir", "d", "--metadata", "embedded:d"), "one of them only"),
        (restore, ("--data-dir", "d"), "give FILE, or --clear"),
        (restore, ("--data-dir", "d", "--clear"), "--clear takes --metadata"),
        (restore, ("nowhere", "--data-dir", "d"), "does not exist"),
        (rebuild, (), "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(command: click.Command, arguments: tuple[str, ...], said: str) -> None:
    assert said in run(command, *arguments, code=2).output


def test_on_etcd_a_backup_is_made_restored_rebuilt_and_cleared(
    tmp_path: Path, rebuilt: Path, monkeypatch: pytest.MonkeyPatch, etcd_server: EtcdServer
) -> None:
    """A broker's configuration file says how etcd is spoken to."""
    monkeypatch.setattr(restoring, "REVISIONS_SKIPPED", 10)
    first, config = tmp_path / "first", tmp_path / "server.properties"
    config.write_text("metadata.request.timeout.ms=20000\nnode.id=7\n")
    run(backup, first, "--data-dir", rebuilt)
    here, there = etcd_server.address(), etcd_server.address()
    known = decode_backup(first.read_bytes())
    said = run(restore, first, "--metadata", here, "--config", config).output
    assert said.startswith(f"restored {len(known.values)} keys of cluster {known.cluster_id}")
    second = tmp_path / "second"
    run(backup, second, "--metadata", here, "--set", "metadata.request.timeout.ms=20000")
    assert decode_backup(second.read_bytes()).values.keys() == known.values.keys()
    assert "is not empty" in run(restore, first, "--metadata", here, code=1).output
    (rebuilt / FILE_NAME).unlink()
    said = run(rebuild, rebuilt, "--metadata", there).output
    assert said.endswith(f"The metadata of 1 topic was written to {there}. Start the brokers.\n")
    assert "no restore was interrupted here" in run(restore, "--clear", "--metadata", there, code=1).output
    assert "no.such.option" in run(backup, second, "--metadata", here, "--set", "no.such.option=1", code=1).output
    assert "there must be /prefix" in run(backup, second, "--metadata", "etcd://127.0.0.1:9", code=1).output


# ------------------------------------------------------------------------------------------------------------ secrets
def store_secret(path: Path) -> None:
    """As IncrementalAlterConfigs does."""

    async def store() -> None:
        metadata = EmbeddedStore.open(FileDisk(), str(path))
        configs = {"max.connections": "5", "listener.name.x.ssl.key.password": "hunter2"}
        await metadata.commit(Txn(put={broker_config_key(1): encode_configs(configs)}))
        await metadata.close()

    asyncio.run(store())


def test_a_backup_goes_without_secrets_and_its_restore_says_so(tmp_path: Path, rebuilt: Path) -> None:
    store_secret(rebuilt)
    file = tmp_path / "backup"
    done = run(backup, file, "--data-dir", rebuilt)
    assert "1 secret(s) left out, which --with-secrets keeps\n" in done.stderr
    assert b"hunter2" not in file.read_bytes()
    said = run(restore, file, "--data-dir", tmp_path / "new")
    assert "have no values: /configs/brokers/1 listener.name.x.ssl.key.password; set them again" in said.stderr
    assert image_in(tmp_path / "new").configs_of_broker(1) == {"max.connections": "5"}
    (rebuilt / FILE_NAME).unlink()
    assert "have no values: /configs/brokers/1" in run(rebuild, rebuilt, "--backup", file).output


def test_a_backup_with_secrets_is_for_its_owner_alone(tmp_path: Path, rebuilt: Path) -> None:
    store_secret(rebuilt)
    file = tmp_path / "backup"
    before = os.umask(0o022)
    try:
        run(backup, file, "--data-dir", rebuilt)
        assert file.stat().st_mode & 0o777 == 0o644
        done = run(backup, file, "--data-dir", rebuilt, "--with-secrets")
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    assert "left out" not in done.output
    assert b"hunter2" in file.read_bytes()
    assert run(restore, file, "--data-dir", tmp_path / "new").stderr == ""
    assert image_in(tmp_path / "new").configs_of_broker(1)["listener.name.x.ssl.key.password"] == "hunter2"


def test_values_by_reference_are_looked_up_for_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker's own file serves, with the password of etcd's user elsewhere."""
    seen: list[Mapping[str, str]] = []

    def opened(address: str, disk: FileDisk, options: Mapping[str, str]) -> None:
        seen.append(options)
        raise RestoreRefused("enough")

    monkeypatch.setattr(stores, "opened", opened)
    (tmp_path / "secrets").write_text("etcd=hunter2\n")
    config = tmp_path / "server.properties"
    config.write_text(
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        f"metadata.etcd.password=${{file:{tmp_path}/secrets:etcd}}\n"
    )
    run(backup, tmp_path / "b", "--metadata", "etcd://h:1/x", "--config", config, code=1)
    assert seen == [{"config.providers": "file", "metadata.etcd.password": "hunter2"}]
