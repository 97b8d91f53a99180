"""One broker of a test's cluster, in a thread of its own: started, stopped, killed, paused, and started again.

Its port, its id and its disk stay the same over its lives. `kill` is SIGKILL: what it had written is there when it
starts again, nobody is told anything, and its connections break. `pause` is SIGSTOP: it holds its sockets and does
nothing. The metadata store hears of neither; who ends the broker's lease then is the cluster (hosted_cluster.py).
"""

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from odradek.broker.server import Broker
from odradek.runtime.environment import tell_when_forked
from odradek.testing.broker_state import BrokerState, WrongBrokerState
from odradek.testing.hosting.broker_place import BrokerPlace
from odradek.testing.hosting.gate import Gate
from odradek.testing.hosting.gated_disk import GatedDisk
from odradek.testing.hosting.hosted_environment import HostedEnvironment
from odradek.testing.hosting.inherited_sockets import let_go
from odradek.testing.hosting.loop_thread import LoopThread
from odradek.testing.hosting.shared_memory import SharedMemory, SharedMemoryStore
from odradek.testing.hosting.shifted_clock import ShiftedClock

T = TypeVar("T")

HELPER_THREADS: Final = 4


class _Life:
    """What a broker has from a start to its end."""

    def __init__(self, place: BrokerPlace, memory: SharedMemory, clock: ShiftedClock) -> None:
        self.gate = Gate()
        self.thread = LoopThread(f"odradek broker {place.node_id}")
        self.environment = HostedEnvironment(self.thread.loop, self.gate, clock, has_device=place.has_device)
        self.environment.allow_helper_threads(HELPER_THREADS)
        self.store: SharedMemoryStore = memory.open(self.thread.loop)
        self.disk: GatedDisk
        self.broker: Broker

    async def start(self, place: BrokerPlace) -> None:
        """In its thread. Raises what `Broker.start` raises."""
        self.disk = GatedDisk(place.files(), self.gate)
        self.broker = place.make_broker(self.environment, self.disk, self.store)
        await self.broker.start()
        place.keep_port(self.broker)

    def cut_off(self) -> None:
        """Nothing that its code does has an effect from now on. In any thread."""
        self.store.cut_off()
        self.gate.kill()

    def bury(self) -> None:
        """In its thread, when none of its code runs any more: its connections break, its files are closed."""
        self.environment.sever()
        self.environment.end_helper_threads()
        self.disk.release()


class HostedBroker:
    """See the module. Its methods are called by one thread at a time, and not by its own.

    A child that the process forks inherits its sockets and lets go of them: else they would outlive the broker there.
    """

    def __init__(self, place: BrokerPlace, memory: SharedMemory, clock: ShiftedClock) -> None:
        self.place: Final = place
        self._memory = memory
        self._clock = clock
        self._life: _Life | None = None
        tell_when_forked(self)

    def was_forked(self) -> None:
        if self._life is not None:
            let_go(self._life.environment.descriptors())

    @property
    def node_id(self) -> int:
        return self.place.node_id

    @property
    def address(self) -> str:
        """HOST:PORT, which stays the same once it has been started."""
        return self.place.address

    @property
    def state(self) -> BrokerState:
        if self._life is None:
            return BrokerState.DOWN
        return BrokerState.PAUSED if self._life.gate.is_paused else BrokerState.RUNNING

    def start(self) -> None:
        """Returns when it accepts connections. Raises WrongBrokerState, and what `Broker.start` raises."""
        if self._life is not None:
            raise WrongBrokerState(f"broker {self.node_id} cannot be started: it is {self.state.name.lower()}")
        life = _Life(self.place, self._memory, self._clock)
        try:
            life.thread.run(life.start(self.place))
        except BaseException:
            self._end(life)
            raise
        self._life = life

    def submit(self, work: Callable[[Broker], Coroutine[Any, Any, T]]) -> Future[T]:
        """Has the broker do something in its loop (inside.py). Raises WrongBrokerState when it is down."""
        life = self._living("asked")
        return life.thread.submit(work(life.broker))

    def name_by_id(self, topic_id: bytes) -> str:
        """The name of a topic, "" where it does not know it. In any thread: what it knows is never changed, but
        replaced."""
        return self._living("asked for").broker.context.metadata.image.name_by_id(topic_id)

    def quiesce(self) -> None:
        """It decides nothing any more: its whole cluster stops."""
        life = self._living("stopped")
        life.thread.run(_quiesce(life.broker))

    def drain(self) -> None:
        """No new requests of clients; those that run are answered."""
        life = self._living("stopped")
        life.thread.run(life.broker.drain())

    def stop(self, *, all_stop: bool = False) -> None:
        """A clean stop: others lead what it led, if they can. `all_stop`: the whole cluster does."""
        life = self._living("stopped")
        if life.gate.is_paused:
            raise WrongBrokerState(f"broker {self.node_id} is paused: resume it, or kill it")
        self._life = None
        life.thread.run(life.broker.stop(all_stop=all_stop))
        self._end(life)

    def kill(self) -> SharedMemoryStore:
        """Returns, when nothing of it has an effect any more, the store whose leases are left of it."""
        life = self._living("killed")
        self._life = None
        life.thread.kill(life.cut_off, life.bury)
        return life.store

    def pause(self) -> SharedMemoryStore:
        """Returns, when nothing of it runs any more, the store that its leases are from."""
        life = self._living("paused")
        if life.gate.is_paused:
            raise WrongBrokerState(f"broker {self.node_id} is paused already")
        life.thread.hold(life.gate)
        return life.store

    def resume(self) -> None:
        """It goes on, and knows that it stood still: what has become of it, it asks the store first."""
        life = self._living("resumed")
        if not life.gate.is_paused:
            raise WrongBrokerState(f"broker {self.node_id} is not paused")
        detector = life.broker.context.member.registration.pause_detector
        detector.stood_still(life.environment.lease_clock_ms())
        life.gate.resume()

    def _living(self, asked: str) -> _Life:
        if self._life is None:
            raise WrongBrokerState(f"broker {self.node_id} cannot be {asked}: it is down")
        return self._life

    def _end(self, life: _Life) -> None:
        life.thread.run(life.store.close())
        life.environment.end_helper_threads()
        life.thread.end()


async def _quiesce(broker: Broker) -> None:
    broker.quiesce()
