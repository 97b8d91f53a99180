"""Brokers in threads, with one metadata store in memory: what `odradek.testing.cluster` runs.

Who is killed or paused is missed by the others `session_ms` later, as if its lease had ended in a store elsewhere. No
clock decides that: a test that keeps all threads from running, in a debugger or in C code, causes no election.
"""

import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from odradek.broker.config.settings import Settings
from odradek.broker.server import Broker
from odradek.testing.broker_state import BrokerState
from odradek.testing.faults.cluster_faults import ClusterFaults
from odradek.testing.faults.fault import Match
from odradek.testing.faults.fault_changes import FaultChanges
from odradek.testing.faults.recorded_requests import Requests
from odradek.testing.hosting import inside
from odradek.testing.hosting.broker_place import BrokerPlace
from odradek.testing.hosting.hosted_broker import HostedBroker
from odradek.testing.hosting.kept_metadata import KeptMetadata
from odradek.testing.hosting.shared_memory import SharedMemory, SharedMemoryStore
from odradek.testing.hosting.shifted_clock import ShiftedClock
from odradek.testing.running_cluster import Calls, NotInThisMode, call_by_name, common_calls, servers_of


class HostedCluster:
    """See the module: a `RunningCluster`."""

    def __init__(self, settings: Sequence[Settings], data_dir: str | None, session_ms: float) -> None:
        """`data_dir`: where the brokers' directories are; None: in memory. Raises as `KeptMetadata`."""
        self._kept = None if data_dir is None else KeptMetadata(data_dir)
        self.memory: Final = SharedMemory() if self._kept is None else self._kept.memory
        self.clock: Final = ShiftedClock()
        self.faults: Final = ClusterFaults()
        self.brokers: Final = {
            each.node_id: HostedBroker(BrokerPlace(each, self.faults), self.memory, self.clock) for each in settings
        }
        self._session_ms = session_ms
        self._missing: dict[int, threading.Timer] = {}
        self.calls: Final[Calls] = {
            **common_calls(self),
            "faults.add": self.faults.table.add,
            "faults.undo": self.faults.table.undo,
            "faults.release": self.faults.table.release,
            "faults.clear": self.faults.table.clear,
            "faults.status": self.faults.table.status,
            "faults.in_force": self.faults.table.in_force,
            "requests": self._requests_told,
        }
        """What can be called by name, in whatever process the test runs (running_cluster.py)."""

    def start(self) -> None:
        """Returns when all accept connections and know one another. Raises what `Broker.start` raises, and then none of
        them runs."""
        try:
            for broker in self.brokers.values():
                broker.start()
            self.settle()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """All stop: nobody takes over from anybody, and what they have in files is complete."""
        self.faults.table.clear()  # else brokers would wait for requests that are held
        for node_id in list(self._missing):
            self._found(node_id)
        running: list[HostedBroker] = []
        for broker in self.brokers.values():
            if broker.state is BrokerState.PAUSED:
                broker.kill()
            elif broker.state is BrokerState.RUNNING:
                running.append(broker)
        for broker in running:
            broker.quiesce()
        with ThreadPoolExecutor(max(1, len(running))) as each_alone:  # while they replicate from one another
            list(each_alone.map(HostedBroker.drain, running))
        for broker in running:
            broker.stop(all_stop=True)
        if self._kept is not None:
            self._kept.close()

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of all brokers, whether they run or not, with commas between them."""
        return servers_of(self.brokers.values())

    @property
    def running_servers(self) -> str:
        """Of those that run."""
        return servers_of(self._running)

    def settle(self) -> None:
        """Returns when all brokers that run have heard of everything that the metadata store has by now."""
        revision = self.memory.revision
        self._have(lambda broker: broker.context.metadata.applied(revision))

    def create_topics(
        self, topics: Mapping[str, int], replication_factor: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        """`topics`: with their numbers of partitions. Returns when all brokers that run know them. Raises
        NewTopicRefused, WrongBrokerState when none runs."""
        first = self._running[0] if self._running else next(iter(self.brokers.values()))
        first.submit(lambda broker: inside.create_topics(broker, topics, replication_factor, config)).result()
        self.settle()

    def shift_clock(self, by_s: float) -> None:
        """Moves the time of day of all brokers, and has done at once what goes by it. Deadlines, sessions and leases go
        by another clock."""
        self.clock.shift(by_s)
        self._have(inside.clock_moved)

    def empty(self, kept: Mapping[str, int]) -> None:
        """Aborts open transactions, deletes groups and topics; topics that are `kept`, by their numbers of partitions,
        are there again at once. Returns when all brokers know that. All have to run."""
        self.faults.table.clear()
        self._have(inside.loaded)
        self._have(inside.end_transactions)
        self._running[0].submit(lambda broker: inside.renew_topics(broker, self.memory, kept)).result()
        self.settle()
        self._have(inside.delete_groups)  # last: members that run join again, and find the topics
        self.faults.recorder.clear()

    def _have(self, work: Callable[[Broker], Coroutine[Any, Any, object]]) -> None:
        """Has each broker that runs do it, side by side."""
        for done in [broker.submit(work) for broker in self._running]:
            done.result()

    @property
    def _running(self) -> list[HostedBroker]:
        return [broker for broker in self.brokers.values() if broker.state is BrokerState.RUNNING]

    def call(self, name: str, **arguments: Any) -> Any:
        return call_by_name(self.calls, name, arguments)

    def stop_broker(self, node_id: int) -> None:
        self.brokers[node_id].stop()

    @property
    def fault_table(self) -> FaultChanges:
        return self.faults.table

    def requests(self, match: Match, since_s: float | None) -> Requests:
        return self.faults.recorder.requests(match, since_s, self.name_by_id)

    def _requests_told(self, match: Match, since_s: float | None) -> dict[str, Any]:
        return self.requests(match, since_s).to_json()

    def name_by_id(self, topic_id: bytes) -> str:
        """Of a topic, as any broker that runs knows it; "" where there is none. In any thread."""
        return next((name for broker in self._running if (name := broker.name_by_id(topic_id))), "")

    def kill(self, node_id: int) -> None:
        self._misses(node_id, self.brokers[node_id].kill())

    def pause(self, node_id: int) -> None:
        self._misses(node_id, self.brokers[node_id].pause())

    def resume(self, node_id: int) -> None:
        self._found(node_id)
        self.brokers[node_id].resume()

    def start_again(self, node_id: int) -> None:
        """Its former registration is taken over, whether the others miss it already or not."""
        self.brokers[node_id].start()
        self.settle()

    def kill_process(self) -> None:
        raise NotInThisMode(
            "the brokers are threads of the test's own process, which kill_process would end: it needs "
            "cluster(subprocess=True)"
        )

    def now_ms(self) -> int:
        """The brokers' time of day, in milliseconds since 1970."""
        return self.clock.now_ms()

    def _misses(self, node_id: int, store: SharedMemoryStore) -> None:
        self._found(node_id)
        timer = threading.Timer(self._session_ms / 1000.0, self.memory.end_leases, (store,))
        timer.daemon = True
        self._missing[node_id] = timer
        timer.start()

    def _found(self, node_id: int) -> None:
        """Returns when its timer has ended, too."""
        if (timer := self._missing.pop(node_id, None)) is not None:
            timer.cancel()
            timer.join()
