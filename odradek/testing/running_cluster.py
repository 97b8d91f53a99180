"""What `Kafka` (kafka.py) needs of the cluster that it shows, and of its clients, wherever the two run.

| | brokers | clients |
|---|---|---|
| by default | threads of this process: hosting/hosted_cluster.py | a thread of it: contents_thread.py |
| `subprocess=True` | threads of one child process: remote/ | a thread of that |
| `processes=True`, `etcd=…` | a process each, children of one child process: broker_processes/ | a thread of that |

Everything between a test and its brokers is a call by name, whose arguments and result can be written as JSON: `call`.
The methods beside it are rows of the same table (`Calls`), with types. A fault that is to be had in each of the three
is one more row.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from odradek.testing.broker_state import BrokerState

if TYPE_CHECKING:
    from odradek.testing.contents import Contents
    from odradek.testing.faults.fault import Match
    from odradek.testing.faults.fault_changes import FaultChanges
    from odradek.testing.faults.recorded_requests import Requests

T = TypeVar("T")

Calls = dict[str, Callable[..., Any]]
"""What can be called, by name; each with arguments by name."""


class NotInThisMode(RuntimeError):
    """A cluster cannot do this where its brokers run; the text says which one can."""


class NewTopicRefused(Exception):
    """A topic cannot be made; the text says which one, and why."""


class UsedInFork(RuntimeError):
    """A child that the test's process has forked uses the cluster of its parent."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} belongs to the process that started the cluster, and this is a child that was forked from it: "
            "only the brokers' addresses (bootstrap_servers) can be used here"
        )


def no_faults_here() -> NotInThisMode:
    return NotInThisMode(
        "faults on the wire and recorded requests need the brokers in threads, here or with cluster(subprocess=True), "
        "and not in processes of their own, or of another worker of pytest-xdist"
    )


class UnknownCall(LookupError):
    """There is no such row."""


class RunningBroker(Protocol):
    """One broker."""

    @property
    def node_id(self) -> int: ...

    @property
    def address(self) -> str:
        """HOST:PORT, the same over its stops and starts."""
        ...

    @property
    def state(self) -> BrokerState: ...


class RunningCluster(Protocol):
    """The brokers. Those of its methods that change a broker raise WrongBrokerState."""

    @property
    def brokers(self) -> Mapping[int, RunningBroker]:
        """By id."""
        ...

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of all brokers, whether they run or not, with commas between them."""
        ...

    def stop_broker(self, node_id: int) -> None: ...

    def start_again(self, node_id: int) -> None: ...

    def kill(self, node_id: int) -> None: ...

    def pause(self, node_id: int) -> None: ...

    def resume(self, node_id: int) -> None: ...

    def kill_process(self) -> None:
        """SIGKILL of the process that has all brokers. Raises NotInThisMode."""
        ...

    def settle(self) -> None:
        """Returns when all brokers that run have heard of everything that the metadata store has by now."""
        ...

    def create_topics(
        self, topics: Mapping[str, int], replication_factor: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        """`topics`: with their numbers of partitions. Returns when all brokers that run know them. Raises
        NewTopicRefused."""
        ...

    def empty(self, kept: Mapping[str, int]) -> None:
        """Aborts open transactions, deletes groups and topics; topics that are `kept`, by their numbers of partitions,
        are there again at once. Returns when all brokers know that. All have to run."""
        ...

    def now_ms(self) -> int:
        """The brokers' time of day, in milliseconds since 1970."""
        ...

    def shift_clock(self, by_s: float) -> None:
        """Moves the brokers' time of day, forward or back. Raises NotInThisMode."""
        ...

    @property
    def fault_table(self) -> "FaultChanges":
        """What is done to clients' requests. Raises NotInThisMode."""
        ...

    def requests(self, match: "Match", since_s: float | None) -> "Requests":
        """Those of clients that were recorded and match; `since_s`: none from before that moment. Raises
        NotInThisMode."""
        ...

    def call(self, name: str, **arguments: Any) -> Any:
        """Calls a row by its name. Raises UnknownCall, and what the row raises."""
        ...

    def stop(self) -> None: ...


class RunningContents(Protocol):
    """The clients of the test kit, which run somewhere."""

    @property
    def contents(self) -> "Contents":
        """What `run` passes on."""
        ...

    def run(self, ask: "Callable[[Contents], Coroutine[Any, Any, T]]") -> T:
        """Returns and raises what the coroutine does."""
        ...

    def close(self) -> None: ...


def servers_of(brokers: Iterable[RunningBroker]) -> str:
    """HOST:PORT of each, with commas between them."""
    return ",".join(broker.address for broker in brokers)


def common_calls(cluster: RunningCluster) -> Calls:
    """The rows that a cluster has in each mode."""

    def states() -> dict[str, str]:
        """Names, by the brokers' ids."""
        return {str(node_id): broker.state.name for node_id, broker in cluster.brokers.items()}

    return {
        "states": states,
        "stop_broker": cluster.stop_broker,
        "start_again": cluster.start_again,
        "kill": cluster.kill,
        "pause": cluster.pause,
        "resume": cluster.resume,
        "settle": cluster.settle,
        "create_topics": cluster.create_topics,
        "empty": cluster.empty,
        "now_ms": cluster.now_ms,
        "shift_clock": cluster.shift_clock,
    }


def call_by_name(calls: Calls, name: str, arguments: Mapping[str, Any]) -> Any:
    """Raises UnknownCall, and what the row raises."""
    function = calls.get(name)
    if function is None:
        raise UnknownCall(f"a cluster that runs here has no call {name!r}; it has {', '.join(sorted(calls))}")
    return function(**arguments)
