"""A broker whose metadata is lost, as processes: saved while it ran, killed, and brought back both ways.

`tests/compat/test_cluster_commands.py` rebuilds from the directories of several brokers, which are Apache Kafka's.
"""

from pathlib import Path

import pytest

from processes.odradek_broker import OdradekBroker, OdradekFailed
from tests.compat.commands import Commands

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(120)]

LINES = [b"line %d" % number for number in range(1_000)]


def lines(values: list[bytes]) -> bytes:
    return b"".join(value + b"\n" for value in values)


@pytest.mark.parametrize("way", ["rebuild", "rebuild without a backup", "restore"])
def test_what_was_acknowledged_is_read_again(tmp_path: Path, way: str) -> None:
    data, file = tmp_path / "data", tmp_path / "backup"
    with OdradekBroker(data) as broker:
        odradek = Commands(broker)
        odradek.run("topics", "create", "orders", "--partitions", "1", "--set", "segment.ms=70000")
        odradek.run("produce", "orders", given=lines(LINES[:500]))
        odradek.run("cluster", "backup", str(file), "--data-dir", str(data))
        odradek.run("produce", "orders", given=lines(LINES[500:]))
        assert "holds the lock file" in refused(odradek, "cluster", "rebuild", str(data))
        assert "holds the lock file" in refused(odradek, "cluster", "restore", str(file), "--data-dir", str(data))
        broker.kill()
        (data / "metadata.log").unlink()
        with pytest.raises(OdradekFailed, match="no metadata says which topics there are"):
            broker.start()
        if way == "restore":
            odradek.run("cluster", "restore", str(file), "--data-dir", str(data))
        else:
            given = ["--backup", str(file)] if way == "rebuild" else []
            planned = odradek.run("cluster", "rebuild", "--dry-run", str(data), *given).decode()
            assert not (data / "metadata.log").exists()
            written = odradek.run("cluster", "rebuild", str(data), *given).decode()
            assert planned.splitlines()[:-1] == written.splitlines()[:-1]
            assert ("the options of orders are lost" in written) == (not given)
        broker.start()
        assert odradek.run("consume", "orders") == lines(LINES)
        odradek.run("produce", "orders", given=b"another\n")
        assert odradek.run("consume", "orders", "--from", "-1") == b"another\n"
        [described] = odradek.json("topics", "describe", "orders")
        lost = {"retention.ms": "-1"}
        assert described["configs"] == (lost if way == "rebuild without a backup" else {"segment.ms": "70000"})


def refused(odradek: Commands, *arguments: str) -> str:
    odradek.run(*arguments, code=1)
    return odradek.said
