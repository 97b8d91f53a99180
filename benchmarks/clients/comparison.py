"""The part `clients`: Odradek's client beside kafka-python, aiokafka and confluent-kafka, with both brokers.

Of producers speed (`speed.py`), latency (`latency.py`) and memory (`memory.py`, with Odradek's broker alone); of
consumers speed (`consuming.py`); while both brokers run. The clients have equal settings (`contenders/`), and each run
is a fresh process. One that sends has a topic of 12 partitions of its own, from which all that it sent is read back and
checked (`check.py`); those that read have one topic together, whose records they all have to come to.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import get_args

from benchmarks.clients.consuming import CONSUMED, CONSUMERS, Consuming, consuming_figures
from benchmarks.clients.latency import LATENCY_CLIENTS, Waiting, latency_figures
from benchmarks.clients.memory import measure_memory
from benchmarks.clients.runs import Disturbances, Topics
from benchmarks.clients.speed import CONTENDERS, LARGE, SMALL, Contender, Racing, Runs, Setting, speed_figures
from benchmarks.clients.table import server_tables
from benchmarks.contenders.job import MODULES, OURS, Loop
from benchmarks.figures.figures import Figure
from benchmarks.harness.servers import Server

MEASUREMENTS = ("speed", "latency", "memory", "consuming")
BROKERS = ("odradek", "kafka")
VALUES = {"small": SMALL, "large": LARGE}


def add_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("of the part `clients`, each a list with commas to take less than all")
    group.add_argument("--measure", type=_some_of(MEASUREMENTS), default=MEASUREMENTS, metavar="WHAT")
    group.add_argument("--brokers", type=_some_of(BROKERS), default=BROKERS, metavar="BROKER")
    group.add_argument("--clients", type=_some_of(tuple(MODULES)), default=tuple(MODULES), metavar="CLIENT")
    group.add_argument("--values", type=_some_of(tuple(VALUES)), default=tuple(VALUES), metavar="SIZE")
    group.add_argument("--kafka-values", type=_some_of(tuple(VALUES)), default=("small",), metavar="SIZE")
    group.add_argument("--scale", type=float, default=1.0, help="of the records in a run (%(default)g)")
    group.add_argument("--clients-warm-s", type=float, default=8.0, help="to warm Kafka up (%(default)g)")
    group.add_argument("--loop", choices=get_args(Loop), default="asyncio", help="of the asyncio clients (%(default)s)")


def _some_of(names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def some(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        if unknown := [name for name in chosen if name not in names]:
            raise ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(names)}")
        return chosen

    return some


@dataclass(slots=True)
class Clients:
    """One measurement of the clients, as the options say, and what came of it."""

    options: Namespace
    say: Callable[[str], None]
    runs: Runs = field(default_factory=lambda: Runs())
    figures: dict[Server, list[Figure]] = field(default_factory=dict[Server, list[Figure]])
    identities: dict[str, str] = field(default_factory=dict[str, str])
    disturbances: Disturbances = field(default_factory=Disturbances)
    _topics: Topics = field(default_factory=Topics)

    def measure(self, ours: Server, theirs: Server) -> None:
        """Raises ContenderFailed, LogDiffers, KafkaError, OSError."""
        options = self.options
        servers = [server for name, server in zip(BROKERS, (ours, theirs), strict=True) if name in options.brokers]
        if theirs in servers and options.clients_warm_s > 0:
            self._racing().warm_up(theirs, options.clients_warm_s)
        if "speed" in options.measure:
            self._measure_speed(servers, ours)
        if "latency" in options.measure:
            self._measure_latency(servers)
        if "memory" in options.measure and ours in servers and OURS in options.clients:
            self.figures.setdefault(ours, []).extend(
                measure_memory(ours, self._topics, runs=options.runs, say=self.say, loop=options.loop)
            )
        if "consuming" in options.measure:
            self._measure_consuming(servers, ours)

    def _measure_speed(self, servers: Sequence[Server], ours: Server) -> None:
        settings = [
            Setting(server, VALUES[name], has_keys)
            for server in servers
            for name in self._value_names(server is ours)
            for has_keys in (False, True)
        ]
        runs = self._racing().measure(settings, self._chosen(CONTENDERS), self.options.runs)
        self.runs |= runs
        for server in servers:
            self.figures.setdefault(server, []).extend(speed_figures(runs, server))

    def _measure_consuming(self, servers: Sequence[Server], ours: Server) -> None:
        """Every record has a key: one more thing to look at."""
        settings = [
            Setting(server, values, has_keys=True)
            for server in servers
            for name in self._value_names(server is ours)
            for values in CONSUMED[name]
        ]
        options = self.options
        consuming = Consuming(self._topics, self.disturbances, self.say, options.loop, options.scale, self.identities)
        runs = consuming.measure(settings, self._chosen(CONSUMERS), options.runs)
        self.runs |= runs
        for server in servers:
            self.figures.setdefault(server, []).extend(consuming_figures(runs, server))

    def _value_names(self, is_ours: bool) -> Sequence[str]:
        names: Sequence[str] = self.options.values if is_ours else self.options.kafka_values
        return names

    def _chosen(self, contenders: Sequence[Contender]) -> list[Contender]:
        return [contender for contender in contenders if contender.client in self.options.clients]

    def _racing(self) -> Racing:
        return Racing(self._topics, self.disturbances, self.say, self.options.loop, self.options.scale, self.identities)

    def _measure_latency(self, servers: Sequence[Server]) -> None:
        waiting = Waiting(self._topics, self.disturbances, self.say, self.options.loop, identities=self.identities)
        clients = [client for client in LATENCY_CLIENTS if client in self.options.clients]
        done = waiting.measure(servers, clients, self.options.runs)
        for server in servers:
            self.figures.setdefault(server, []).extend(latency_figures(done, server))

    @property
    def notes(self) -> list[str]:
        """What a reader of the tables has to know."""
        clients = [f"client {identity}" for identity in self.identities.values()]
        loop = [f"asyncio clients run on a loop of {self.options.loop}"] if clients else []
        return [*clients, *loop, *self.disturbances.notes()]

    @property
    def is_disturbed(self) -> bool:
        return self.disturbances.are_many

    def tables(self, ours: Server, theirs: Server, *, is_preliminary: bool) -> list[str]:
        """Those of Odradek's broker first, each after a line that says what it is."""
        return [
            part
            for server in (ours, theirs)
            for part in server_tables(
                self.runs, self.figures.get(server, []), server, str(ours), is_preliminary=is_preliminary
            )
        ]

    @property
    def all_figures(self) -> list[Figure]:
        return [figure for figures in self.figures.values() for figure in figures]
