"""A fault of the network is one even for a broker that leads nothing, to which nobody need be connected."""

import os
import socket
from pathlib import Path
from random import Random

import pytest

from processes.cluster_processes import Processes
from processes.odradek_broker import LOOPBACK, OdradekBroker
from tests.cluster.network_faults import left_half_open
from tests.cluster.real_cluster import RealCluster
from tests.cluster.relay import Relay

TIMEOUT_S = 10.0


class Next(RealCluster):
    """Broker 3 is always next; what it leads is said, and broker 1 is the controller."""

    def __init__(self, processes: Processes, leaders: list[int]) -> None:
        super().__init__(processes, [processes.broker(1), processes.broker(3)])
        self._leaders = leaders

    def next(self) -> OdradekBroker:
        return self.brokers[1]

    def leaders(self) -> list[int]:
        return self._leaders

    def controller(self) -> OdradekBroker:
        return self.brokers[0]


@pytest.mark.parametrize(("leaders", "is_enough"), [([1, 2, 1, 2], True), ([1, 3, 1, 2], False)])
def test_only_to_a_broker_that_leads_nothing_there_may_be_no_connection(
    leaders: list[int], is_enough: bool, tmp_path: Path
) -> None:
    with Relay() as relay, Processes(tmp_path) as processes, socket.create_server((LOOPBACK, 0)) as target:
        relay.know("broker-3", os.getpid())
        port = relay.route("broker-1", *target.getsockname())
        fault, cluster = left_half_open(relay, "origin"), Next(processes, leaders)
        with socket.create_connection((LOOPBACK, port), timeout=TIMEOUT_S) as near, target.accept()[0]:
            if is_enough:
                fault(cluster, Random(1))
                with pytest.raises(ConnectionResetError):
                    near.recv(1)
            else:
                with pytest.raises(AssertionError, match="nobody was connected to broker-3"):
                    fault(cluster, Random(1))


def test_a_fault_that_meets_nothing_is_none(tmp_path: Path) -> None:
    with Relay() as relay, Processes(tmp_path) as processes:
        lone = Next(processes, leaders=[1])
        with pytest.raises(AssertionError, match="no connection of broker-3 could be lost"):
            left_half_open(relay, "origin")(lone, Random(1))
