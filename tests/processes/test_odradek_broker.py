"""The child process that other tests and the benchmarks rely on: a real broker, started, ended in each way, refused."""

import os
import signal
import socket
from pathlib import Path

import pytest

from processes.apache_kafka import answers
from processes.odradek_broker import READY, OdradekBroker, OdradekFailed


def test_it_serves_where_it_says_and_comes_back_there_after_each_way_to_end(tmp_path: Path) -> None:
    with OdradekBroker(tmp_path / "data") as broker:
        address = broker.bootstrap
        with socket.create_server((broker.host, 0)) as server:
            assert broker.port < server.getsockname()[1], "anybody may get its port while it is down"
        assert answers(broker.host, broker.port)
        first = broker.pid

        broker.kill()
        assert not broker.is_running
        assert not answers(broker.host, broker.port)
        broker.start()
        assert answers(broker.host, broker.port)
        assert broker.pid != first

        broker.restart()
        assert answers(broker.host, broker.port)
        assert broker.bootstrap == address
        assert broker.terminate() == 0
    assert broker.output.count("stopping") == 2


def test_a_broker_that_refuses_to_start_is_reported_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(OdradekFailed, match=r"num\.partitions"):
        OdradekBroker(tmp_path / "data", "--set", "num.partitions=many").__enter__()


def test_a_broker_that_ended_by_itself_does_not_go_unnoticed(tmp_path: Path) -> None:
    with pytest.raises(OdradekFailed, match="ended with -9"), OdradekBroker(tmp_path / "data") as broker:
        os.kill(broker.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "line",
    [
        "odradek 0.1.0 ready on 127.0.0.1:9092 (node 0, data in /var/lib/odradek)",
        "odradek 0.1.0 ready on 127.0.0.1:9092, INSIDE=127.0.0.1:9093 (node 12, data in memory)",
    ],
)
def test_the_ready_line_tells_where_the_first_listener_is(line: str) -> None:
    ready = READY.match(line)
    assert ready is not None
    assert (ready["version"], ready["host"], ready["port"]) == ("0.1.0", "127.0.0.1", "9092")
