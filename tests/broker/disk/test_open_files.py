"""Modes by which others may read secrets, what is said of them, and files that are made for their owner alone."""

import logging
import os
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.open_files import (
    for_owner_alone,
    mode_of,
    others_may,
    warn_of_open_directory,
    warn_of_open_file,
)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o600, None),
        (0o400, None),
        (0o700, None),
        (0o640, "its group may read it"),
        (0o644, "everybody on this machine may read it"),
        (0o604, "everybody on this machine may read it"),
        (0o666, "everybody on this machine may read and change it"),
        (0o620, "its group may change it"),
        (0o711, "everybody on this machine may read it"),
    ],
)
def test_what_others_may_do(mode: int, said: str | None) -> None:
    assert others_may(mode) == said


def test_an_open_file_is_warned_of_with_its_mode_and_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key.pem"
    path.write_text("hunter2")
    path.chmod(0o644)
    tmp_path.chmod(0o750)
    with caplog.at_level(logging.WARNING):
        warn_of_open_file(str(path))
        warn_of_open_directory(str(tmp_path))
        path.chmod(0o600)
        tmp_path.chmod(0o700)
        warn_of_open_file(str(path))
        warn_of_open_directory(str(tmp_path))
        warn_of_open_file(str(tmp_path / "no-such"))
        warn_of_open_file("with\0zero")
    assert caplog.messages == [
        f"{path} holds secrets and has mode 0644, so everybody on this machine may read it: chmod 600 {path}",
        f"the directory {tmp_path} holds records and secrets and has mode 0750, so its group may read it: "
        f"chmod 700 {tmp_path}",
    ]


def test_a_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Whatever the process's mask lets through; those that are there keep their mode."""
    before = os.umask(0o022)
    try:
        (tmp_path / "there").mkdir(mode=0o755)
        for name in ("there", "new", "with/parent"):
            FileDisk().make_dir(str(tmp_path / name))
        modes = [mode_of(str(tmp_path / name)) for name in ("there", "new", "with", "with/parent")]
    finally:
        os.umask(before)
    assert modes == [0o755, 0o700, 0o755, 0o700]


def test_files_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with for_owner_alone():
            FileDisk().write_whole(str(tmp_path / "secret"), b"hunter2")
        FileDisk().write_whole(str(tmp_path / "other"), b"")
        assert [mode_of(str(tmp_path / name)) for name in ("secret", "other")] == [0o600, 0o644]
    finally:
        os.umask(before)
