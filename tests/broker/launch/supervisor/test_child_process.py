"""Processes that are begun before it is known what they are to be: which, whose they are, and that none stays."""

import os
import socket
from pathlib import Path

import pytest

from odradek.broker.launch.supervisor import child_process
from odradek.broker.launch.supervisor.child_process import BrokersAhead, broker_name, likely_ids
from processes.supervised_cluster import SupervisedCluster, children_of


def children() -> list[int]:
    return [pid for pid, _ in children_of(os.getpid())]


def test_those_that_nobody_takes_are_ended_and_reaped() -> None:
    before = set(children())
    ahead = BrokersAhead([4, 7])
    assert len(set(children()) - before) == 2
    taken = ahead.take(7)
    assert taken is not None
    assert ahead.take(7) is None, "it is its taker's"
    assert ahead.take(1) is None
    ahead.close()
    assert set(children()) - before == {taken.process.pid}
    assert os.getpgid(taken.process.pid) == taken.process.pid
    taken.lifeline.close()
    assert taken.process.wait(20) == 0, "its supervisor is gone"


def test_where_one_cannot_be_begun_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(children())
    begin = child_process.begin_child

    def begin_one(module: str, name: str) -> child_process.ChildProcess:
        if name == broker_name(2):
            raise OSError("no memory")
        return begin(module, name)

    monkeypatch.setattr(child_process, "begin_child", begin_one)
    ahead = BrokersAhead([1, 2, 3])
    assert set(children()) == before
    assert ahead.take(1) is None


def nowhere(module: str) -> list[str]:
    return ["/no/such/program", module]


def test_a_process_that_cannot_be_begun_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[socket.socket, socket.socket]] = []
    pair = socket.socketpair

    def kept() -> tuple[socket.socket, socket.socket]:
        pairs.append(pair())
        return pairs[-1]

    monkeypatch.setattr(socket, "socketpair", kept)
    monkeypatch.setattr(child_process, "own_program", nowhere)
    with pytest.raises(FileNotFoundError):
        child_process.begin_child("module", "name")
    assert [end.fileno() for end in pairs[0]] == [-1, -1]


@pytest.mark.parametrize(
    ("names", "count", "expected"),
    [
        ((), 3, [1, 2, 3]),
        (("broker-1", "broker-2", "metadata"), None, [1, 2]),
        (("broker-0", "broker-1", "broker-2"), 2, [0, 1]),
        (("broker-5",), 2, [5]),
        (("broker-", "broker-x", "broker-12345678901"), 1, [1]),
    ],
)
def test_which_are_begun_is_seen_in_the_directory(
    tmp_path: Path, names: tuple[str, ...], count: int | None, expected: list[int]
) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    assert list(likely_ids(count, str(tmp_path))) == expected
    assert list(likely_ids(count, str(tmp_path / "none"))) == list(likely_ids(count, None))


def test_a_new_cluster_is_likely_to_have_what_the_machine_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "usable_processors", lambda: 4)
    assert list(likely_ids(None, None)) == [1, 2, 3]


def test_a_cluster_of_other_brokers_than_were_likely_has_no_process_too_many(tmp_path: Path) -> None:
    with SupervisedCluster(tmp_path / "data", brokers=2) as cluster:
        cluster.stop()
        (tmp_path / "data" / "broker-0").mkdir()  # it looks like the first one's, and the store knows of none
        cluster.start()
        assert sorted(cluster.pids()) == ["broker 1", "broker 2"]
