"""A cluster whose brokers are in another process, and the clients of the test kit, which are there, too.

Each method is a call (calls.py); what it raises there it raises here, with its class and its words.
"""

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from odradek.testing.broker_state import BrokerState
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.remote.calls import CallsToProcess
from odradek.testing.remote.cluster_process import ClusterProcess
from odradek.testing.remote.values import from_json, to_json
from odradek.testing.running_cluster import NotInThisMode, no_faults_here, servers_of

if TYPE_CHECKING:
    from odradek.testing.contents import Contents
    from odradek.testing.faults.fault import Match
    from odradek.testing.faults.fault_changes import FaultChanges
    from odradek.testing.faults.recorded_requests import Requests

T = TypeVar("T")

HOSTED: Final = "odradek.testing.remote.hosted_main"
"""The program with all brokers in threads."""
SUPERVISED: Final = "odradek.testing.broker_processes.supervised_main"
"""The program that has a process for each."""


class RemoteBroker:
    """One broker: a `RunningBroker`."""

    def __init__(self, calls: CallsToProcess, node_id: int, address: str) -> None:
        self._calls = calls
        self.node_id: Final = node_id
        self.address: Final = address

    @property
    def state(self) -> BrokerState:
        """Raises ClusterProcessEnded."""
        states = self._calls.ask({"call": "states", "arguments": {}})
        return BrokerState[states[str(self.node_id)]]


class RemoteCluster:
    """See the module: a `RunningCluster`. Every call raises ClusterProcessEnded when the process is gone."""

    def __init__(self, program: str, options: ClusterOptions) -> None:
        """Starts it. Returns when all brokers accept connections; raises what they raise that cannot start, OSError."""
        self._has_all_brokers = program == HOSTED
        self._process = ClusterProcess(program)
        try:
            self._process.tell({"begin": to_json(_anywhere(options))})
            first = self._process.heard_first()
        except BaseException:
            self._process.kill("its start was given up")
            raise
        if "failed" in first:
            self._process.wait()
            raise from_json(first["failed"])
        self.remote_calls: Final = CallsToProcess(self._process)
        addresses: dict[int, str] = from_json(first["ready"])
        self._brokers: Mapping[int, RemoteBroker] = MappingProxyType(
            {node_id: RemoteBroker(self.remote_calls, node_id, address) for node_id, address in addresses.items()}
        )

    @property
    def brokers(self) -> Mapping[int, RemoteBroker]:
        """By id."""
        return self._brokers

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def bootstrap_servers(self) -> str:
        return servers_of(self._brokers.values())

    def call(self, name: str, **arguments: Any) -> Any:
        return self.remote_calls.ask({"call": name, "arguments": arguments})

    def stop_broker(self, node_id: int) -> None:
        self.call("stop_broker", node_id=node_id)

    def start_again(self, node_id: int) -> None:
        self.call("start_again", node_id=node_id)

    def kill(self, node_id: int) -> None:
        self.call("kill", node_id=node_id)

    def pause(self, node_id: int) -> None:
        self.call("pause", node_id=node_id)

    def resume(self, node_id: int) -> None:
        self.call("resume", node_id=node_id)

    def settle(self) -> None:
        self.call("settle")

    def create_topics(
        self, topics: Mapping[str, int], replication_factor: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        self.call("create_topics", topics=topics, replication_factor=replication_factor, config=config)

    def empty(self, kept: Mapping[str, int]) -> None:
        self.call("empty", kept=kept)

    def now_ms(self) -> int:
        return cast(int, self.call("now_ms"))

    @property
    def fault_table(self) -> "FaultChanges":
        if not self._has_all_brokers:
            raise no_faults_here()
        from odradek.testing.remote.remote_faults import RemoteFaultTable

        return RemoteFaultTable(self.remote_calls)

    def requests(self, match: "Match", since_s: float | None) -> "Requests":
        if not self._has_all_brokers:
            raise no_faults_here()
        from odradek.testing.faults.recorded_requests import Requests

        return Requests.from_json(self.call("requests", match=match, since_s=since_s))

    def shift_clock(self, by_s: float) -> None:
        self.call("shift_clock", by_s=by_s)

    def broker_pids(self) -> dict[int, int]:
        """The processes of those that run, by their ids. Raises UnknownCall where all of them are one process."""
        return cast(dict[int, int], self.call("broker_pids"))

    def kill_process(self) -> None:
        """Returns when it is gone, and all brokers with it. Raises NotInThisMode."""
        if not self._has_all_brokers:
            raise NotInThisMode(
                "each broker has a process of its own, which brokers[n].kill() ends: kill_process needs "
                "cluster(subprocess=True)"
            )
        self._process.kill("it was killed by kill_process()")

    def stop(self) -> None:
        """Returns when the process has ended. No error when it had."""
        if not self._process.ended:
            self.remote_calls.ask({"stop": True})
            self._process.wait()


def _anywhere(options: ClusterOptions) -> ClusterOptions:
    """The same, as values of JSON and whatever the working directory is."""
    return replace(options, data_dir=None if options.directory is None else os.path.abspath(options.directory))


class RemoteContents:
    """The clients there: a `RunningContents`, and what stands for `Contents` itself.

    A coroutine that `run` gets may call the methods of `Contents`, and wait for nothing else: each of them has its
    result when it returns.
    """

    def __init__(self, calls: CallsToProcess) -> None:
        self._calls = calls

    @property
    def contents(self) -> "Contents":
        return cast("Contents", self)

    def run(self, ask: "Callable[[Contents], Coroutine[Any, Any, T]]") -> T:
        """Raises what the coroutine raises."""
        coroutine = ask(self.contents)
        try:
            coroutine.send(None)
        except StopIteration as end:
            return cast(T, end.value)
        coroutine.close()
        raise AssertionError("the coroutine waits for something else than the contents of the cluster")

    def renew(self) -> None:
        self._ask("renew")

    def close(self) -> None:
        """They end with their process."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def ask(*arguments: Any, **named: Any) -> Any:
            return self._ask(name, *arguments, **named)

        return ask

    def _ask(self, name: str, *arguments: Any, **named: Any) -> Any:
        return self._calls.ask({"contents": name, "arguments": [list(arguments), named]})
