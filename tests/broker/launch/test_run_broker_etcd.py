"""Brokers as processes on an etcd that becomes another one: they end with a sentence and exit code 1, and start again
on nothing that does not know what they have. And on one that is not there yet: they wait for it."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from processes.etcd_server import EtcdServer
from processes.free_ports import free_ports
from processes.odradek_broker import OdradekBroker, OdradekFailed

ENDS_WITHIN_S = 30.0


def test_an_etcd_that_was_emptied_ends_its_brokers_and_no_start_takes_it(tmp_path: Path) -> None:
    with EtcdServer() as etcd:
        (member,) = etcd.members
        address = etcd.address("/emptied")
        with OdradekBroker(tmp_path / "data", "--metadata", address, "--node-id", "3") as broker:
            member.kill()
            member.empty()
            member.start()
            assert broker.ended(ENDS_WITHIN_S) == 1
            assert "before: it was restored from a backup, or emptied. What it does not know any more" in broker.output
            assert "Traceback" not in broker.output
            assert etcd.ctl("get", "--prefix", "/emptied", "--keys-only").split() == [], "it has written nothing"
            with pytest.raises(OdradekFailed, match=r"was at \d+ before .*It was lost, or replaced by an older copy"):
                broker.start()
            assert etcd.ctl("get", "--prefix", "/emptied", "--keys-only").split() == []


def until_it_waits(broker: OdradekBroker) -> None:
    """Returns when the broker has said so."""
    deadline_s = time.monotonic() + ENDS_WITHIN_S
    while "the start waits for the metadata store" not in broker.output:
        assert time.monotonic() < deadline_s, broker.output
        time.sleep(0.02)  # nothing tells of a line in a log


def test_a_broker_that_is_started_before_its_etcd_waits_for_it(tmp_path: Path) -> None:
    with EtcdServer() as etcd:
        (member,) = etcd.members
        member.kill()
        broker = OdradekBroker(tmp_path / "data", "--metadata", etcd.address("/later"))
        with closing(broker):
            broker.launch()
            until_it_waits(broker)
            member.start()
            broker.wait_until_ready()
            assert broker.terminate() == 0


def test_without_etcd_a_signal_ends_the_start_and_the_timeout_does_with_a_sentence(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    address = f"etcd://127.0.0.1:{port}/nowhere"
    with closing(OdradekBroker(tmp_path / "data", "--metadata", address)) as broker:
        broker.launch()
        until_it_waits(broker)
        assert broker.terminate() == 0
    timeout = ("--set", "initial.broker.registration.timeout.ms=300")
    with closing(OdradekBroker(tmp_path / "data", "--metadata", address, *timeout)) as broker:
        broker.launch()
        assert broker.ended(ENDS_WITHIN_S) == 1
        assert f"Error: the broker cannot start: no member of etcd (127.0.0.1:{port}) could be reached" in broker.output
        assert "Traceback" not in broker.output
