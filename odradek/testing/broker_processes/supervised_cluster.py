"""Brokers that each have a process of their own, as a test sees them: a `RunningCluster`, for other threads than the
loop's.

A broker that a test kills or stops is down until the test starts it. One that dies by itself is started again, as its
supervisor does everywhere (broker/launch/supervisor/).
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NoReturn, TypeVar

from odradek.broker.launch.supervisor.control import LEAVE
from odradek.broker.launch.supervisor.member import Member
from odradek.broker.launch.supervisor.supervisor import Supervisor
from odradek.broker.startup_errors import BrokerFailed
from odradek.testing import by_client
from odradek.testing.broker_processes.log_file import LogFile
from odradek.testing.broker_state import BrokerState, WrongBrokerState
from odradek.testing.contents import Contents
from odradek.testing.contents_thread import ContentsThread
from odradek.testing.running_cluster import (
    Calls,
    NotInThisMode,
    call_by_name,
    common_calls,
    no_faults_here,
    servers_of,
)

T = TypeVar("T")

LEAVE_MS: Final = 30_000.0
"""How long a broker may take to stop, before it is killed."""


class SupervisedBroker:
    """One broker: a `RunningBroker`."""

    def __init__(self, member: Member) -> None:
        self.member: Final = member
        self.node_id: Final = member.plan.node_id
        self.address: Final = str((member.child.ready or {})["addresses"][0])
        self.is_paused = False

    @property
    def state(self) -> BrokerState:
        if not self.member.is_ready:
            return BrokerState.DOWN
        return BrokerState.PAUSED if self.is_paused else BrokerState.RUNNING

    def require(self, asked: str, *states: BrokerState) -> None:
        """Raises WrongBrokerState unless it is in one of these."""
        if self.state not in states:
            raise WrongBrokerState(f"broker {self.node_id} cannot be {asked}: it is {self.state.name.lower()}")


class SupervisedCluster:
    """See the module."""

    def __init__(self, supervisor: Supervisor, log_file: LogFile) -> None:
        """Of one that has started."""
        self._supervisor = supervisor
        self._loop = supervisor.environment.loop
        self._brokers = {each.plan.node_id: SupervisedBroker(each) for each in supervisor.members}
        self._clients: ContentsThread | None = None
        self.calls: Final[Calls] = {
            **common_calls(self),
            "log_lines": log_file.since,
            "broker_pids": self.broker_pids,
        }

    @property
    def brokers(self) -> Mapping[int, SupervisedBroker]:
        return self._brokers

    @property
    def bootstrap_servers(self) -> str:
        return servers_of(self._brokers.values())

    @property
    def running_servers(self) -> str:
        """Of those that run."""
        return servers_of(broker for broker in self._brokers.values() if broker.state is BrokerState.RUNNING)

    def call(self, name: str, **arguments: Any) -> Any:
        return call_by_name(self.calls, name, arguments)

    def broker_pids(self) -> dict[int, int]:
        """The processes of those that run, by their ids."""
        return {node_id: each.member.child.pid for node_id, each in self._brokers.items() if each.member.is_ready}

    def stop_broker(self, node_id: int) -> None:
        """SIGTERM, in effect: what others can lead is given to them before."""
        broker = self._brokers[node_id]
        broker.require("stopped", BrokerState.RUNNING)
        self._run(self._leave(broker))

    def start_again(self, node_id: int) -> None:
        broker = self._brokers[node_id]
        broker.require("started", BrokerState.DOWN)
        self._run(self._start(broker))

    def kill(self, node_id: int) -> None:
        """SIGKILL. The store here learns of it at once; etcd when the lease's time is over."""
        broker = self._brokers[node_id]
        broker.require("killed", BrokerState.RUNNING, BrokerState.PAUSED)
        self._run(self._kill(broker))

    def pause(self, node_id: int) -> None:
        """SIGSTOP."""
        broker = self._brokers[node_id]
        broker.require("paused", BrokerState.RUNNING)
        pid = broker.member.child.pid
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # how it ends is left for its supervisor
        broker.is_paused = True

    def resume(self, node_id: int) -> None:
        """SIGCONT."""
        broker = self._brokers[node_id]
        broker.require("resumed", BrokerState.PAUSED)
        broker.is_paused = False
        os.kill(broker.member.child.pid, signal.SIGCONT)

    def settle(self) -> None:
        """Nothing: nobody here knows what brokers in other processes have heard. Clients ask again for what a broker
        does not know yet."""

    def kill_process(self) -> None:
        raise NotInThisMode("there is no process that has all brokers")

    @property
    def fault_table(self) -> NoReturn:
        raise no_faults_here()

    def requests(self, match: object, since_s: float | None) -> NoReturn:
        raise no_faults_here()

    def shift_clock(self, by_s: float) -> None:
        raise NotInThisMode(
            f"the clocks of brokers in processes of their own are the machine's, and cannot be moved by {by_s:g} s: "
            "it needs threads, here or with cluster(subprocess=True)"
        )

    def now_ms(self) -> int:
        """The machine's time of day."""
        return self._supervisor.environment.now_ms()

    def create_topics(
        self, topics: Mapping[str, int], replication_factor: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        """Raises NewTopicRefused."""
        self._ask(lambda contents: by_client.create_topics(contents, topics, replication_factor, config))

    def empty(self, kept: Mapping[str, int]) -> None:
        """Producers with an open transaction are fenced by that, and topics that are kept are away for a moment."""
        self._ask(lambda contents: by_client.empty(contents, kept))

    def stop(self) -> None:
        if self._clients is not None:
            self._clients.close()
        self._run(self.stop_all())

    def _ask(self, ask: Callable[[Contents], Coroutine[Any, Any, T]]) -> T:
        """Has it done by clients of the brokers that run."""
        if self._clients is None:
            self._clients = ContentsThread(lambda: self.running_servers)
        self._clients.contents.renew()
        return self._clients.run(ask)

    # -- in the loop's thread ---------------------------------------------------------------------------------------

    async def stop_all(self) -> None:
        """Nobody takes over from anybody. Returns when no process is left."""
        for broker in self._brokers.values():
            if broker.state is BrokerState.PAUSED:
                await self._kill(broker)
        await self._supervisor.stop()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _kill(self, broker: SupervisedBroker) -> None:
        member = broker.member
        member.is_leaving = True
        member.child.kill()
        await self._supervisor.until(lambda: not member.child.is_running)
        broker.is_paused = False

    async def _leave(self, broker: SupervisedBroker) -> None:
        child = broker.member.child
        broker.member.is_leaving = True
        child.order(LEAVE)
        try:
            await self._supervisor.until(lambda: not child.is_running, LEAVE_MS)
        except TimeoutError:
            await self._kill(broker)

    async def _start(self, broker: SupervisedBroker) -> None:
        """Raises BrokerFailed, StartRefused, OSError."""
        member = broker.member
        member.is_leaving = True  # one that cannot start is not tried again, but said to be so
        await self._supervisor.start_broker(member)
        await self._supervisor.until(lambda: member.is_ready or not member.child.is_running)
        if not member.is_ready:
            raise BrokerFailed(f"broker {broker.node_id} has not started: {member.child.failure or 'its log says why'}")
        member.is_leaving = False
