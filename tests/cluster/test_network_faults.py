"""A fault of the network is one even for a broker that leads nothing, to which nobody need be connected."""

import os
import socket
from pathlib import Path
from random import Random

import pytest

from tests.cluster.network_faults import left_half_open
from tests.cluster.processes import LOOPBACK, Processes
from tests.cluster.real_cluster import RealCluster
from tests.cluster.relay import Relay
from tests.odradek_broker import OdradekBroker

TIMEOUT_S = 10.0


class OneFollower(RealCluster):
    """Its only broker is always next."""

    def next(self) -> OdradekBroker:
        return self.brokers[0]


def test_a_broker_with_connections_of_its_own_only_is_left_half_open(tmp_path: Path) -> None:
    with Relay() as relay, Processes(tmp_path) as processes, socket.create_server((LOOPBACK, 0)) as leader:
        follower = processes.broker(3)
        relay.know(follower.name, os.getpid())
        port = relay.route("broker-1", *leader.getsockname())
        with socket.create_connection((LOOPBACK, port), timeout=TIMEOUT_S) as near, leader.accept()[0]:
            left_half_open(relay, "origin")(OneFollower(processes, [follower]), Random(1))
            with pytest.raises(ConnectionResetError):
                near.recv(1)


def test_a_fault_that_meets_nothing_is_none(tmp_path: Path) -> None:
    with Relay() as relay, Processes(tmp_path) as processes:
        lone = OneFollower(processes, [processes.broker(3)])
        with pytest.raises(AssertionError, match="no connection of broker-3 could be lost"):
            left_half_open(relay, "origin")(lone, Random(1))
