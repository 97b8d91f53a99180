"""Rights that come and go while brokers are cut off, stand still, see the store late, and are killed.

Everybody is `User:ANONYMOUS`, and told apart by the address: brokers may do what brokers do, an administrator changes
ACLs, and clients ask each broker, over connections that stay, whether topic `orders` exists. That needs DESCRIBE, which
one ACL gives them and the administrator creates and deletes over and over. A client's question that was sent after the
deletion was answered, and before the next creation was sent, must not be answered as if the right were still there.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar, cast

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, ResourceType
from odradek.broker.cluster.acls import acl_key, encode_acl
from odradek.broker.cluster.store import Txn
from odradek.broker.config.access_options import STANDARD_AUTHORIZER
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.runtime.environment import Environment
from odradek.testing.sim.cluster.brokers import PORT, Brokers
from odradek.testing.sim.world.machine import Machine, Running
from odradek.testing.sim.world.store import HOST as STORE
from odradek.testing.sim.world.world import World
from tests.broker.access.rules import acl
from tests.broker.api.acls import creation, everything

R = TypeVar("R", bound=Response)

BROKER_COUNT: Final = 3
CLIENT_COUNT: Final = 2
OPTIONS: Final = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:nobody",
    "auto.create.topics.enable": "false",
}
ANYBODY: Final = "User:ANONYMOUS"
RIGHT: Final = acl(Operation.DESCRIBE, "orders", principal=ANYBODY)
ANSWER_S: Final = 1.0
"""For so long a client waits for an answer."""
ADMIN_S: Final = 25.0
PAUSE_S: Final = 0.02
SETTLED_S: Final = 8.0
"""When all brokers are there, and the faults begin."""


class Asker(asyncio.Protocol):
    """One connection, with one question at a time."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[bytes] | None = None
        self.transport: asyncio.Transport | None = None

    @classmethod
    async def to(cls, environment: Environment, host: str) -> "Asker":
        """Raises OSError."""
        made = cls()
        made.transport = cast("asyncio.Transport", await environment.connect(lambda: made, host, PORT))
        return made

    def data_received(self, data: bytes) -> None:
        self._received += data
        size_bytes = 4 + int.from_bytes(self._received[:4], "big")
        if self._answer is not None and not self._answer.done() and len(self._received) >= size_bytes:
            self._answer.set_result(self._received[4:size_bytes])
            self._received = self._received[size_bytes:]

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the connection is closed"))

    async def ask(self, request: Request[R], version: int) -> R:
        """Raises OSError."""
        if self.transport is None:
            raise ConnectionResetError("the connection is closed")
        self._answer = asyncio.get_running_loop().create_future()
        header = RequestHeader(request.api_key, version, 7, "revocation")
        is_flexible = request.is_flexible(version)
        self.transport.writelines(request_frame(header, is_flexible, encode_parts(request, version)))
        body = await self._answer
        _, position = read_response_header(body, is_flexible)
        return decode(request.response_type, version, body, position)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()


@dataclass
class Log:
    """What was seen, in the world's time."""

    revoked_ms: list[float] = field(default_factory=list[float])
    """When a deletion had been answered."""
    granting_ms: list[float] = field(default_factory=list[float])
    """When a creation was about to be sent."""
    granted: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    """When a question was sent that was answered as to one who may, and which broker that was."""
    refused_count: int = 0
    turned_away_count: int = 0
    failed_changes: int = 0

    def violations(self) -> list[str]:
        """Questions that were answered by a right that had gone."""
        found: list[str] = []
        for sent_ms, broker in self.granted:
            gone_ms = max((at for at in self.revoked_ms if at < sent_ms), default=None)
            if gone_ms is not None and not any(gone_ms <= at <= sent_ms for at in self.granting_ms):
                found.append(f"{broker} was asked at {sent_ms:.1f} ms, though the right was gone at {gone_ms:.1f} ms")
        return found


KINDS: Final = ("late", "alone", "without store", "without others", "pause", "kill")
"""What befalls a broker: the store tells it late, or it is cut off from the store and others, or from one of both."""


class Fault(NamedTuple):
    at_s: float
    kind: str
    broker_id: int
    lasts_s: float


class Play:
    """One world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log = Log()
        self.brokers = Brokers(world, [1] * BROKER_COUNT, OPTIONS)
        self.admin = world.machine("admin")
        self.clients = [world.machine(f"client{number}") for number in range(CLIENT_COUNT)]
        self._store_acls()
        self.brokers.start_all()

    def _store_acls(self) -> None:
        kind = ResourceType.CLUSTER
        found = [
            acl(Operation.CLUSTER_ACTION, CLUSTER.name, kind=kind, principal=ANYBODY, host=machine.address)
            for machine in self.brokers.machines
        ]
        found.append(acl(Operation.ALTER, CLUSTER.name, kind=kind, principal=ANYBODY, host=self.admin.address))
        assert self.world.store is not None
        self.world.store.commit(Txn(put={acl_key(each): encode_acl(each) for each in found}))

    def run(self, until_s: float, faults: int, script: Sequence[Fault]) -> Log:
        """All of it, with so many faults, and those of a script."""
        self.world.at(SETTLED_S / 2, self._begin)
        rng = self.world.rng("faults")
        for _ in range(faults):
            kind, lasts_s = rng.choice(KINDS), rng.choice((0.3, 1.6, 6.0))
            broker_id = rng.randint(1, BROKER_COUNT)
            script = [*script, Fault(rng.uniform(SETTLED_S, until_s - 4), kind, broker_id, lasts_s)]
        for fault in script:
            self.world.at(fault.at_s, self._happen, fault)
        self.world.run(until_s)
        assert self.world.errors == []
        return self.log

    def _begin(self) -> None:
        self.admin.start(self._change)
        for machine in self.clients:
            machine.start(self._ask)

    # -- who asks ---------------------------------------------------------------------------------------------------

    async def _change(self, running: Running) -> None:
        rng, environment = self.world.rng("admin"), running.environment
        while True:
            await environment.sleep(rng.uniform(50, 400))
            self.log.granting_ms.append(self.world.now_ms)
            await self._until_done(environment, rng, self._create)
            await environment.sleep(rng.uniform(50, 400))
            await self._until_done(environment, rng, self._delete)
            self.log.revoked_ms.append(self.world.now_ms)

    async def _until_done(
        self, environment: Environment, rng: random.Random, change: "Callable[[Asker], asyncio.Future[int]]"
    ) -> None:
        while True:
            machine = rng.choice(self.brokers.machines)
            try:
                async with asyncio.timeout(ADMIN_S):
                    asker = await Asker.to(environment, machine.address)
                    try:
                        if not await change(asker):
                            return
                    finally:
                        asker.close()
            except OSError:
                pass
            self.log.failed_changes += 1
            await environment.sleep(100)

    def _create(self, asker: Asker) -> "asyncio.Future[int]":
        async def created() -> int:
            answer = await asker.ask(CreateAclsRequest(creations=[creation(RIGHT)]), 3)
            return answer.results[0].error_code

        return asyncio.ensure_future(created())

    def _delete(self, asker: Asker) -> "asyncio.Future[int]":
        async def deleted() -> int:
            filters = [everything(resource_name_filter="orders")]
            return (await asker.ask(DeleteAclsRequest(filters=filters), 3)).filter_results[0].error_code

        return asyncio.ensure_future(deleted())

    async def _ask(self, running: Running) -> None:
        environment, askers = running.environment, dict[str, Asker]()
        request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False)
        rng = self.world.rng(running.machine.name)
        while True:
            await environment.sleep(1000 * PAUSE_S)
            machine = rng.choice(self.brokers.machines)
            sent_ms = self.world.now_ms
            try:
                async with asyncio.timeout(ANSWER_S):
                    if machine.name not in askers:
                        askers[machine.name] = await Asker.to(environment, machine.address)
                    sent_ms = self.world.now_ms
                    answer = await askers[machine.name].ask(request, 9)
            except OSError:
                self.log.turned_away_count += 1
                if (asker := askers.pop(machine.name, None)) is not None:
                    asker.close()
                continue
            if code_of(answer.topics[0].error_code) is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self.log.refused_count += 1
            else:
                self.log.granted.append((sent_ms, machine.name))

    # -- what happens -----------------------------------------------------------------------------------------------

    def _happen(self, fault: Fault) -> None:
        machine, store = self.brokers.machine(fault.broker_id), self.world.store
        assert store is not None
        others = [each.name for each in self.brokers.machines if each is not machine]
        faults = store.faults(machine.name)

        def late() -> None:
            faults.watch_hold_ms = 2_000.0

        def alone() -> None:
            for other in (*others, STORE):
                self._cut(machine.name, other)

        def without_store() -> None:
            self._cut(machine.name, STORE)

        def without_others() -> None:
            for other in others:
                self._cut(machine.name, other)

        def mend() -> None:
            self.world.network.heal()
            faults.heal()

        self.world.trace.note("fault", fault.kind, machine.name)
        match fault.kind:
            case "pause":
                if machine.running is not None:
                    machine.pause()
                    self.world.after(fault.lasts_s, self._resume, machine)
            case "kill":
                machine.kill()
                self.world.after(fault.lasts_s, self.brokers.start, machine)
            case _:
                {"late": late, "alone": alone, "without store": without_store, "without others": without_others}[
                    fault.kind
                ]()
                self.world.after(fault.lasts_s, mend)

    def _cut(self, one: str, other: str) -> None:
        self.world.network.cut(one, other)
        self.world.network.cut(other, one)

    def _resume(self, machine: Machine) -> None:
        if machine.running is not None:
            machine.resume()


def play(seed: int, until_s: float = 40.0, faults: int = 12, script: Sequence[Fault] = ()) -> Log:
    with World(seed, has_store=True) as world:
        return Play(world).run(until_s, faults, script)
