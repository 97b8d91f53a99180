"""`odradek cluster take` as it is called, on real files: what it prints, its exit codes, and what stays."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.take.command import take
from tests.broker.offline.take.served import NODE, SERVE, laid_down
from tests.broker.servers import files


@pytest.fixture
def serve_dir(tmp_path: Path) -> Path:
    disk = MemoryDisk()
    laid_down(disk)
    for name, content in files(disk, SERVE).items():
        path = tmp_path / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return tmp_path / SERVE


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(take, [str(argument) for argument in arguments])


def test_it_goes_there_and_back(serve_dir: Path) -> None:
    new = serve_dir.parent / "deep" / "new"
    done = run(serve_dir, "--data-dir", new)
    assert done.exit_code == 0, done.output
    assert f"{serve_dir} is now broker {NODE} of {new}, cluster Rk9P4m2xT0eXK1m0Vb7n1w" in done.output
    assert f"`odradek cluster run --data-dir {new}`" in done.output
    assert (new / "metadata" / "metadata.log").exists()
    assert sorted(path.name for path in new.iterdir()) == [f"broker-{NODE}", "metadata"]
    assert not serve_dir.exists()
    (new / f"broker-{NODE + 1}").mkdir()
    done = run(serve_dir, "--data-dir", new, "--back")
    assert done.exit_code == 0, done.output
    assert f"`odradek serve --data-dir {serve_dir} --node-id {NODE}`" in done.output
    assert f"can be deleted: {new / f'broker-{NODE + 1}'}" in done.output
    assert (serve_dir / "metadata.log").exists()


def test_a_dry_run_tells_and_leaves_all_as_it_is(serve_dir: Path) -> None:
    before = sorted(serve_dir.parent.rglob("*"))
    new = serve_dir.parent / "new"
    done = run(serve_dir, "--data-dir", new, "--dry-run")
    assert done.exit_code == 0
    assert f"would rename {serve_dir} to {new / f'broker-{NODE}'}\n" in done.output
    assert sorted(serve_dir.parent.rglob("*")) == before


def test_refusals_are_one_sentence(serve_dir: Path) -> None:
    lock = FileDisk().lock(str(serve_dir / ".lock"))
    done = run(serve_dir, "--data-dir", serve_dir.parent / "new")
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "another running broker holds the lock file" in done.output
    lock.release()
    link = serve_dir.parent / "link"
    link.symlink_to(serve_dir)
    done = run(link, "--data-dir", serve_dir.parent / "new")
    assert done.exit_code == 1
    assert f"{link} is a symbolic link: give {serve_dir}" in done.output
    assert run(serve_dir).exit_code == 2
