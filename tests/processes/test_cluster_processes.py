"""Brokers and etcd as processes: started together, killed, paused and stopped, with their logs, and none left over.

Brokers are single ones, each with metadata of its own.
"""

import base64
import json
import os
import select
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from processes.apache_kafka import answers
from processes.child_process import ProcessFailed
from processes.cluster_processes import Processes
from processes.etcd_process import Etcd
from tests.cluster.relay import Relay
from tests.killed_test import outlives_its_test

API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 0000")
"""A request with header v1 and no client id."""
SILENCE_S = 0.3


def test_several_brokers_start_together_and_each_can_be_killed_and_paused(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        one, other = processes.broker(1), processes.broker(2, "--set", "num.partitions=3")
        processes.start(one, other)
        assert answers(one.host, one.port)
        assert "(node 1," in one.ready_line
        assert "(node 2," in other.ready_line

        one.kill()
        assert not answers(one.host, one.port)
        assert answers(other.host, other.port)
        port = one.port
        one.start()
        assert one.port == port
        assert answers(one.host, one.port)

        with socket.create_connection((other.host, other.port)) as connection:
            other.pause()
            connection.sendall(API_VERSIONS)
            assert not select.select([connection], [], [], SILENCE_S)[0]
            other.resume()
            assert connection.recv(4)
    assert not one.is_running
    assert not other.is_running
    assert "stopping" in (tmp_path / "broker-1.log").read_text()
    assert "stopping" in (tmp_path / "broker-2.log").read_text()


def test_a_broker_is_reached_through_a_relay_that_it_advertises(tmp_path: Path) -> None:
    """Clients connect where the metadata send them."""

    def advertise(port: int) -> str:
        return f"127.0.0.1:{relay.route('broker-1', '127.0.0.1', port)}"

    with Relay() as relay, Processes(tmp_path) as processes:
        broker = processes.broker(1, advertise=advertise)
        processes.start(broker)
        relay.know("client", os.getpid())
        advertised = advertised_port(broker.host, broker.port)
        assert advertised != broker.port
        assert answers("127.0.0.1", advertised)


def advertised_port(host: str, port: int) -> int:
    """The first broker's in Metadata v0."""
    from processes.apache_kafka import ask

    with socket.create_connection((host, port), timeout=5.0) as connection:
        body = ask(connection, api_key=3, api_version=0, body=bytes(4))
    host_length = int.from_bytes(body[8:10], "big")
    return int.from_bytes(body[10 + host_length : 14 + host_length], "big")


def test_what_a_failing_test_wants_to_know_is_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as caught, Processes(tmp_path) as processes:
        broker = processes.broker(1)
        processes.start(broker)
        broker.terminate()
        raise KeyError("the test failed")
    (note,) = caught.value.__notes__
    assert "broker-1.log" in note
    assert "stopping" in note


def test_a_broker_that_ended_by_itself_does_not_go_unnoticed(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    one, other = processes.broker(1), processes.broker(2)
    with pytest.raises(ProcessFailed, match="broker-1 ended with -9"), processes:
        processes.start(one, other)
        os.kill(one.pid, signal.SIGKILL)
    assert not other.is_running, "the other one is stopped all the same"


def test_brokers_are_gone_when_their_test_is_killed(tmp_path: Path) -> None:
    test = (
        "from pathlib import Path\nfrom processes.cluster_processes import Processes\n"
        f"processes = Processes(Path({str(tmp_path)!r}))\nbroker = processes.broker(1)\n"
        "processes.start(broker)\nprint(broker.pid, flush=True)\ninput()\n"
    )
    assert not outlives_its_test(test), "the broker is still there"


# -- etcd -------------------------------------------------------------------------------------------------------------


def test_etcd_keeps_what_it_was_given_when_it_is_killed_and_waits_while_it_is_paused(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        etcd = processes.etcd()
        processes.start(etcd)
        assert etcd.address("/x") == f"etcd://127.0.0.1:{etcd.port}/x"
        assert etcd.address("/x", port=1) == "etcd://127.0.0.1:1/x"
        call(etcd, "put", key=text("a"), value=text("1"))

        etcd.kill()
        assert not etcd.is_healthy
        etcd.start()
        assert call(etcd, "range", key=text("a"))["kvs"][0]["value"] == text("1")

        etcd.pause()
        assert not etcd.is_healthy
        etcd.resume()
        assert call(etcd, "range", key=text("a"))["count"] == "1"
    assert (tmp_path / "etcd.log").stat().st_size > 0


def test_etcd_that_cannot_start_says_why(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        etcd = processes.etcd("--no-such-option")
        with pytest.raises(ProcessFailed, match="no-such-option"):
            processes.start(etcd)


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def call(etcd: Etcd, method: str, **fields: str) -> dict[str, Any]:
    """By its gateway for JSON."""
    request = urllib.request.Request(f"http://{etcd.host}:{etcd.port}/v3/kv/{method}", json.dumps(fields).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found
