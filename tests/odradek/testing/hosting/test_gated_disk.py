"""A disk behind a gate: a paused broker's calls wait, a killed one's have no effect, and what it had is free again.
(All else that a disk promises: tests/contract/test_disk.py.)"""

import threading

import pytest

from odradek.broker.disk.disk import LockHeld
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.testing.hosting.gate import Gate
from odradek.testing.hosting.gated_disk import GatedDisk
from odradek.testing.killed import Killed


def test_nothing_that_a_killed_broker_still_does_has_an_effect() -> None:
    files, gate = MemoryDisk(), Gate()
    disk = GatedDisk(files, gate)
    disk.make_dir("log")
    file, lock = disk.open("log/a"), disk.lock("log/.lock")
    file.append([b"before"])
    syncer = file.syncer()
    gate.kill()
    for change in (
        lambda: file.append([b"after"]),
        lambda: file.truncate(0),
        lambda: disk.write_whole("log/a", b"after"),
        lambda: disk.write_new("log/b", [b"after"]),
        lambda: disk.rename("log/a", "log/c"),
        lambda: disk.remove_tree("log"),
        lambda: disk.make_dir("other"),
        lock.release,
        syncer,
    ):
        with pytest.raises(Killed):
            change()
    assert files.read_whole("log/a") == b"before"
    assert files.list_dir("log") == [".lock", "a"]
    with pytest.raises(LockHeld):
        files.lock("log/.lock")


def test_what_is_being_written_when_it_is_killed_stays_as_far_as_it_came() -> None:
    files, gate = MemoryDisk(), Gate()
    disk = GatedDisk(files, gate)

    def parts() -> list[bytes]:
        gate.kill()
        return [b"never"]

    with pytest.raises(Killed):
        disk.write_new("a", (part for part in parts()))


def test_locks_are_given_back_as_the_operating_system_does() -> None:
    files, gate = MemoryDisk(), Gate()
    disk = GatedDisk(files, gate)
    disk.lock(".lock")
    gate.kill()
    disk.release()
    GatedDisk(files, Gate()).lock(".lock")


def test_a_paused_broker_waits_where_it_stands_and_goes_on() -> None:
    files, gate = MemoryDisk(), Gate()
    file = GatedDisk(files, gate).open("a")
    gate.pause()
    writing = threading.Thread(target=lambda: file.append([b"later"]))
    writing.start()
    writing.join(0.05)
    assert writing.is_alive()
    assert files.read_whole("a") == b""
    gate.resume()
    writing.join(5)
    assert files.read_whole("a") == b"later"


def test_who_is_killed_while_it_is_paused_does_not_go_on() -> None:
    gate = Gate()
    file = GatedDisk(MemoryDisk(), gate).open("a")
    gate.pause()
    ended: list[BaseException] = []

    def write() -> None:
        try:
            file.append([b"never"])
        except Killed as error:
            ended.append(error)

    writing = threading.Thread(target=write)
    writing.start()
    gate.kill()
    writing.join(5)
    assert len(ended) == 1
