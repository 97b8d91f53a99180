"""What happens to networks in rounds: one broker is cut off from some of the others, slowed, or left with connections
that are only half there; by a relay, or by namespaces.

    with relayed_cluster(tmp_path) as cluster:            with namespaced_cluster(tmp_path) as cluster:
        cut(cluster, "etcd", "out")(…)                        cut(cluster, "etcd", "out")(…)

Both networks cut alike (`Network`): `Side` says from whom, `Way` which direction carries nothing, seen from the broker.
"""

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

from processes.cluster_processes import Processes
from processes.odradek_broker import LOOPBACK, OdradekBroker
from tests.cluster.namespaces import OUTSIDE, Namespaces
from tests.cluster.real_cluster import NODES, OPTIONS, RealCluster, create_topic, node_id
from tests.cluster.relay import Relay
from tests.cluster.relay_process import OTHER
from tests.cluster.rounds import Fault, lasts

Side = Literal["the others", "etcd", "clients"]
Way = Literal["both", "out", "in"]
"""`out`: what it sends does not arrive. `in`: what it is sent does not."""

SIDES: Final[tuple[Side, ...]] = ("the others", "etcd", "clients")
WAYS: Final[tuple[Way, ...]] = ("both", "out", "in")
DURATION_S: Final = (3.5, 7.0)
"""Longer than the session timeout, the lease, and than clients wait for an answer."""
DELAY_MS: Final = 100.0
RESETS: Final = 5
BETWEEN_RESETS_S: Final = (0.3, 0.7)
SLOW_BYTES_PER_S: Final = 40_000
PORT: Final = 9092
ETCD: Final = 4
"""The number of etcd's namespace."""


class Network(Protocol):
    """Who can cut."""

    def cut(self, broker: OdradekBroker, side: Side, way: Way) -> None: ...
    def heal(self) -> None: ...


class RelayedCluster(RealCluster):
    """Brokers meet each other, etcd and clients through a relay."""

    def __init__(self, processes: Processes, brokers: Sequence[OdradekBroker], relay: Relay, bootstrap: str) -> None:
        super().__init__(processes, brokers)
        self.relay = relay
        self.advertised = bootstrap
        """Where clients find it."""

    def cut(self, broker: OdradekBroker, side: Side, way: Way) -> None:
        name, relay = broker.name, self.relay
        others = {
            "etcd": ["etcd"],
            "clients": [OTHER],
            "the others": [each.name for each in self.brokers if each is not broker],
        }[side]
        # Nobody is called `other` whom it could connect to, and etcd connects to nobody: those cuts find nothing.
        for other in others:
            if way != "in":
                relay.cut(name, other, way="out")
                relay.cut(other, name, way="back")
            if way != "out":
                relay.cut(name, other, way="back")
                relay.cut(other, name, way="out")

    def heal(self) -> None:
        self.relay.heal()


class NamespacedCluster(RealCluster):
    """Each broker, and etcd, has a network of its own."""

    def __init__(self, processes: Processes, brokers: Sequence[OdradekBroker], namespaces: Namespaces) -> None:
        super().__init__(processes, brokers)
        self.namespaces = namespaces

    def cut(self, broker: OdradekBroker, side: Side, way: Way) -> None:
        number = node_id(broker)
        others = {
            "etcd": [ETCD],
            "clients": [OUTSIDE],
            "the others": [each for each in NODES if each != number],
        }[side]
        for other in others:
            if way != "in":
                self.namespaces.cut(number, other)
            if way != "out":
                self.namespaces.cut(other, number)

    def heal(self) -> None:
        self.namespaces.heal()


@contextmanager
def relayed_cluster(directory: Path, *options: str) -> Generator[RelayedCluster]:
    """`options`: of the brokers, besides OPTIONS."""
    with Relay() as relay, Processes(directory) as processes:
        etcd = processes.etcd()
        processes.start(etcd)
        metadata = etcd.address("/odradek", port=relay.route("etcd", etcd.host, etcd.port))
        advertised: list[str] = []
        brokers: list[OdradekBroker] = []
        for number in NODES:

            def advertise(port: int, name: str = f"broker-{number}") -> str:
                advertised.append(f"{LOOPBACK}:{relay.route(name, LOOPBACK, port)}")
                return advertised[-1]

            brokers.append(processes.broker(number, "--metadata", metadata, *OPTIONS, *options, advertise=advertise))
        for broker in brokers:
            broker.launch()
            relay.know(broker.name, broker.pid)
        for broker in brokers:
            broker.wait_until_ready()
        to_etcd = {flow.origin for flow in relay.flows() if flow.route == "etcd"}
        assert to_etcd == {broker.name for broker in brokers}, "else nobody could be cut off from it"
        cluster = RelayedCluster(processes, brokers, relay, ",".join(advertised))
        create_topic(cluster)
        yield cluster


@contextmanager
def namespaced_cluster(directory: Path) -> Generator[NamespacedCluster]:
    with Namespaces(len(NODES) + 1) as network, Processes(directory) as processes:
        etcd = processes.etcd(host=network.address(ETCD), within=network.command(ETCD))
        processes.start(etcd)
        metadata = ("--metadata", etcd.address("/odradek"))
        brokers = [
            processes.broker(
                number,
                *(*metadata, *OPTIONS),
                host=network.address(number),
                port=PORT,
                within=network.command(number),
            )
            for number in NODES
        ]
        processes.start(*brokers)
        cluster = NamespacedCluster(processes, brokers, network)
        create_topic(cluster)
        yield cluster


# -- faults -----------------------------------------------------------------------------------------------------------


def cut(network: Network, side: Side, way: Way) -> Fault:
    """One broker, of each role in turn, hears nothing of them, is not heard, or both."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        broker = cluster.next()
        cluster.happened("network fault", broker.name, f"cut from {side}, {way}")
        network.cut(broker, side, way)
        lasts(rng.uniform(*DURATION_S))
        network.heal()

    return fault


def delayed(relay: Relay) -> Fault:
    """Everything that is sent to one broker, and its answers, take longer."""

    def begin(broker: OdradekBroker) -> None:
        relay.delay(DELAY_MS, route=broker.name)
        relay.delay(DELAY_MS, broker.name)

    return _worse(f"{DELAY_MS} ms later", begin, relay.heal)


def slowed(relay: Relay) -> Fault:
    """Less than what is written comes through to one broker."""

    def begin(broker: OdradekBroker) -> None:
        relay.limit(SLOW_BYTES_PER_S, route=broker.name)
        relay.limit(SLOW_BYTES_PER_S, broker.name)

    return _worse(f"{SLOW_BYTES_PER_S} bytes/s", begin, relay.heal)


def reset(relay: Relay) -> Fault:
    """All connections to one broker, and from it, are reset at once, again and again, while answers are on their way:
    what was asked has been done, and is asked again."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        broker = cluster.next()
        relay.delay(DELAY_MS, route=broker.name, way="back")
        for _ in range(RESETS):
            lasts(rng.uniform(*BETWEEN_RESETS_S))
            cluster.happened("network fault", broker.name, "reset")
            assert relay.reset(route=broker.name) + relay.reset(broker.name) > 0
        relay.heal()

    return fault


def left_half_open(relay: Relay, lost_by: Literal["origin", "target"]) -> Fault:
    """All connections to one broker, and from it, are gone for one side, and the other side waits. To one that neither
    leads anything nor is the controller there may be none."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        del rng
        broker = cluster.next()
        is_needed = broker is cluster.controller() or node_id(broker) in cluster.leaders()
        cluster.happened("network fault", broker.name, f"connections lost by their {lost_by}")
        to_it = relay.leave_half_open(route=broker.name, lost_by=lost_by)
        assert to_it > 0 or not is_needed, f"nobody was connected to {broker.name}"
        assert relay.leave_half_open(broker.name, lost_by=lost_by) > 0, f"no connection of {broker.name} could be lost"

    return fault


def limited(namespaces: Namespaces) -> Fault:
    """Less than what is written comes through to one broker."""

    def begin(broker: OdradekBroker) -> None:
        namespaces.limit(node_id(broker), SLOW_BYTES_PER_S)

    return _worse(f"{SLOW_BYTES_PER_S} bytes/s", begin, namespaces.heal)


def _worse(what: str, begin: Callable[[OdradekBroker], None], heal: Callable[[], None]) -> Fault:
    """The network of one broker, of each role in turn, is worse for a while. `what` stands in the history."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        broker = cluster.next()
        cluster.happened("network fault", broker.name, what)
        begin(broker)
        lasts(rng.uniform(*DURATION_S))
        heal()

    return fault
