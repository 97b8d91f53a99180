"""A broker with quotas and without sockets, a clock that stands still unless a test moves it, and its clients."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from odradek.broker.access.access import Access
from odradek.broker.access.principal import Principal
from odradek.broker.cluster.keys import BrokerState
from odradek.broker.cluster.quotas import encode_quotas, entity_of, quota_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Caller, Context
from odradek.broker.handling.dispatch import dispatch_alone
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.runtime.environment import Environment
from tests.broker.support import HERE, LISTENER, batch, make_topic, running_broker

R = TypeVar("R", bound=Response)
Limits = Mapping[str, float]
VERSION = 11
LARGE = batch(b"x" * 20_000)
SETTINGS = {"offsets.topic.num.partitions": "1"}
OTHER = BrokerState(1, {LISTENER: ("127.0.0.1", 9093)})


class Clock(Environment):
    """Stands still. Each look at the precise one takes `look_s`, which requests are charged for."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.ms = 1_000_000.0
        self.look_s = 0.0
        self.s = 0.0
        self.precise_s = self._look

    def monotonic_ms(self) -> float:
        return self.ms

    def _look(self) -> float:
        self.s += self.look_s
        return self.s


class Client:
    """One connection of a client, and until when it was muted."""

    def __init__(self, context: Context, user: str = "alice", client_id: str | None = "app") -> None:
        self.context = context
        self.client_id = client_id
        self.caller = Caller(LISTENER, host="192.0.2.1")
        self.caller.principal = Principal("User", user)
        self.caller.mute = self._mute
        self.muted_until_ms = 0.0

    def _mute(self, until_ms: float) -> None:
        self.muted_until_ms = max(self.muted_until_ms, until_ms)

    @property
    def muted_ms(self) -> float:
        """For how long from now on."""
        return max(0.0, self.muted_until_ms - self.context.environment.monotonic_ms())

    async def ask(self, request: Request[R], version: int) -> R | None:
        flexible = request.is_flexible(version)
        header = RequestHeader(request.api_key, version, 7, self.client_id)
        frame = b"".join(request_frame(header, flexible, encode_parts(request, version)))
        reply = await dispatch_alone(self.context, self.caller, memoryview(frame)[4:])
        if reply is None:
            return None
        body = b"".join(reply)[4:]
        _, position = read_response_header(body, flexible and request.api_key != ApiVersionsRequest.api_key)
        return decode(type(request).response_type, version, body, position)

    async def throttle_ms(self, request: Request[Any], version: int) -> int:
        """What the answer says."""
        answer: Any = await self.ask(request, version)
        return int(answer.throttle_time_ms)


@asynccontextmanager
async def limited(
    limits: Limits,
    user: str | None = "alice",
    *,
    access: Access | None = None,
    settings: Mapping[str, str] = SETTINGS,
) -> AsyncGenerator[tuple[Context, Clock]]:
    """A broker with these limits of a user, and a topic."""
    clock = Clock()
    async with running_broker(settings, environment=clock, access=access, brokers=(HERE, OTHER)) as context:
        await make_topic(context, "orders")
        await set_quotas(context, limits, user)
        yield context, clock


async def set_quotas(context: Context, limits: Limits, user: str | None) -> None:
    key = quota_key(entity_of({"user": user}))
    txn = Txn(put={key: encode_quotas(limits)}) if limits else Txn(delete=(key,))
    await context.metadata.applied(await context.metadata.store.commit(txn))


def create(name: str, partitions: int = 1, *, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
    return CreateTopicsRequest(topics=[topic], timeout_ms=5_000, validate_only=validate_only)
