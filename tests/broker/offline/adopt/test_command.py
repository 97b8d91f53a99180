"""`odradek adopt` as it is called: what it prints, its exit codes, and what each option does."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.adopt.command import adopt
from tests.broker.offline.adopt.kafka_files import DATA, KafkaDirectory, batch, config, topic_records


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A directory that Kafka left, with real files."""
    directory = KafkaDirectory()
    directory.partition("orders-0", batch(0))
    directory.metadata(*topic_records("orders"), config("orders", "retention.ms", "77"))
    for name, content in directory.files().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / DATA


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(adopt, [str(argument) for argument in arguments])


def test_it_adopts_and_says_how_to_start(data_dir: Path) -> None:
    done = run(data_dir, "--node-id", "1")
    assert done.exit_code == 0, done.output
    assert "  orders: 1 partition, 1 segment, " in done.output
    assert done.output.endswith(f"Start with: odradek serve --data-dir {data_dir} --node-id 1\n")
    assert (data_dir / "metadata.log").exists()


def test_a_dry_run_leaves_the_directory_as_it_is(data_dir: Path) -> None:
    before = sorted(data_dir.rglob("*"))
    done = run(data_dir, "--dry-run")
    assert done.exit_code == 0
    assert done.output.endswith("Nothing was changed. Without --dry-run, 1 topic would be adopted.\n")
    assert sorted(data_dir.rglob("*")) == before


def test_the_metadata_may_be_elsewhere(data_dir: Path) -> None:
    elsewhere = data_dir.parent / "elsewhere"
    elsewhere.mkdir()
    (data_dir / "__cluster_metadata-0").rename(elsewhere / "__cluster_metadata-0")
    assert "the options of the topics are unknown" in run(data_dir, "--dry-run").output
    assert "bytes; retention.ms=77" in run(data_dir, "--metadata-dir", elsewhere).output


def test_what_is_refused_is_one_sentence_and_exit_code_1(data_dir: Path, tmp_path: Path) -> None:
    done = run(tmp_path / "nowhere")
    assert (done.exit_code, done.output) == (
        1,
        f"Error: {tmp_path}/nowhere is no directory: give the one that log.dirs of the broker names\n",
    )
    assert run(data_dir, "--node-id", "7").exit_code == 1
    lock = FileDisk().lock(str(data_dir / ".lock"))
    assert "another running broker holds the lock file" in run(data_dir).output
    lock.release()


def test_a_partition_that_cannot_be_read_is_named_and_nothing_is_adopted(data_dir: Path) -> None:
    (data_dir / "orders-0" / "leader-epoch-checkpoint").unlink()
    (data_dir / "orders-0" / "leader-epoch-checkpoint").mkdir()
    done = run(data_dir)
    assert done.exit_code == 1
    assert done.output.startswith(
        f"Error: {data_dir} cannot be adopted: the partition orders-0 cannot be read: [Errno 21"
    )
    assert not (data_dir / "metadata.log").exists()


def test_a_wrong_command_line_is_exit_code_2(data_dir: Path) -> None:
    assert run().exit_code == 2
    assert run(data_dir, "--node-id", "-1").exit_code == 2
    assert run(data_dir, "--force").exit_code == 2
