"""The bench: what every measurement works with. Plan, place, servers and voice; and what a measurement is.

Apache Kafka and Odradek are started when a measurement first asks for the pair, and stay up until one asks for the pair
of clusters instead, which then stays up until the end. A measurement that needs an Odradek of its own, with other
options or other data, gets one on a directory of its own.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from benchmarks.harness.cluster_servers import Cluster, running_kafka_cluster, running_odradek_cluster
from benchmarks.harness.contest import Contest
from benchmarks.harness.plan import Plan
from benchmarks.harness.results import Outcome, Unavailable
from benchmarks.harness.servers import Server, running_odradek, running_servers
from benchmarks.host.machine import fill_page_cache
from odradek.protocol.errors import ErrorCode, KafkaError

Say = Callable[[str], None]


@dataclass(slots=True)
class Bench:
    """Everything below `directory` is gone when the bench is closed."""

    plan: Plan
    directory: Path
    settings: Sequence[str]
    """Further options of Odradek's, `NAME=VALUE`."""
    say: Say
    _stack: ExitStack = field(default_factory=ExitStack)
    _pair: tuple[Server, Server] | None = None
    _clusters: tuple[Cluster, Cluster] | None = None
    _pairs: "count[int]" = field(default_factory=lambda: count(1))
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the servers. Raises what their stop raises."""
        self._pair = self._clusters = None
        self._stack.close()

    @property
    def contest(self) -> Contest:
        return Contest(self.plan, self.say)

    def pair(self) -> tuple[Server, Server]:
        """Odradek and Apache Kafka, running."""
        if self._pair is None:
            self.close()  # nobody is measured beside idle neighbours
            self._pair = self._stack.enter_context(
                running_servers(self.directory / f"pair-{next(self._pairs)}", self.options())
            )
        return self._pair

    def clusters(self) -> tuple[Cluster, Cluster]:
        """Odradek and Apache Kafka as clusters, running."""
        if self._clusters is None:
            self.close()
            directory = self.directory / f"clusters-{next(self._pairs)}"
            ours = self._stack.enter_context(running_odradek_cluster(directory / "odradek", self.options()))
            theirs = self._stack.enter_context(running_kafka_cluster(directory / "kafka"))
            self._clusters = ours, theirs
        return self._clusters

    def options(self, *settings: str) -> list[str]:
        """`odradek serve`'s, for the settings of the bench and these."""
        return [part for setting in (*self.settings, *settings) for part in ("--set", setting)]

    @contextmanager
    def own_odradek(self, name: str, *options: str) -> Generator[Server, None, None]:
        """An Odradek on an empty directory of its own, with further options."""
        with running_odradek(self.directory / name, [*self.options(), *options]) as server:
            yield server

    @contextmanager
    def own_odradek_cluster(self, name: str) -> Generator[Cluster, None, None]:
        """Three brokers of Odradek on an empty directory of their own, and nobody beside."""
        self.close()
        with running_odradek_cluster(self.directory / name, self.options()) as cluster:
            yield cluster

    @contextmanager
    def own_kafka_cluster(self, name: str, properties: Mapping[str, str]) -> Generator[Cluster, None, None]:
        """Three nodes of Apache Kafka on an empty directory of their own, with these properties, and nobody beside."""
        self.close()
        with running_kafka_cluster(self.directory / name, properties) as cluster:
            yield cluster

    def fill_page_cache(self) -> None:
        """Before a run that writes much, for both sides alike (machine.py)."""
        if self.plan.touches_memory:
            fill_page_cache(self.directory)

    def topic(self, name: str) -> str:
        """The name of a topic that nobody else uses."""
        return f"{name}-{next(self._numbers)}"


@contextmanager
def unless_refused(server: Server, options: Mapping[str, str]) -> Generator[None, None, None]:
    """Raises Unavailable where the server refuses a topic's options, which a figure cannot do without."""
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_CONFIG:
            raise
        raise Unavailable(f"{server} refuses {dict(options)}: {error}") from error


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure's command: `python -m benchmarks PART --only NAME`."""

    name: str
    part: str
    about: str
    measure: Callable[[Bench], Outcome]
    is_paired: bool = True
    """Whether it uses the pair. Those that do not come first, so that no idle neighbour costs them anything."""
    other_parts: tuple[str, ...] = ()
    """It belongs to these, too."""

    def is_of(self, parts: Collection[str]) -> bool:
        """Whether it belongs to one of them."""
        return self.part in parts or any(part in parts for part in self.other_parts)
