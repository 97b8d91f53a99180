"""Histories of one connection under Hypothesis, on virtual time: whatever is sent and whatever the broker does, each
request ends once, in order, in time, with its own answer or an error to try again, and nothing is left behind."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ClientError
from odradek.client.network.connection import Connection, open_connection
from odradek.protocol.codec.codec import decode
from odradek.protocol.frames import FrameReader, read_request_header
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.testing.sim.world.memory_pipe import torn_randomly
from tests.client.loopback import ALL_RANGES, REQUESTS, Received, frame_of, ranges_answer
from tests.client.memory_network import MemoryEnvironment, MemoryNetwork
from tests.client.virtual_time import run_virtual

TIMEOUT_MS = 1_000
SILENCE_MS = 400


class Deed(Enum):
    """What the broker does with a request, one after the other."""

    ANSWER = "answer"
    ANSWER_LATE = "answer after 700 ms"
    SILENCE = "answer with a quota"
    IGNORE = "no answer, ever"
    WRONG_ID = "answer to another request"
    TWICE = "answer twice"
    CUT = "half an answer, then nothing"
    NEGATIVE = "a negative size"
    CLOSE = "close"
    RESET = "reset"


@dataclass(frozen=True)
class Step:
    """The client waits, then sends so many requests at once, or closes."""

    wait_ms: int
    requests: int
    expects_response: bool
    timeout_ms: int | None
    closes: bool


GOOD = st.sampled_from([Deed.ANSWER, Deed.ANSWER, Deed.ANSWER, Deed.ANSWER_LATE, Deed.SILENCE])
DEEDS = st.lists(st.one_of(GOOD, GOOD, GOOD, st.sampled_from(Deed)), max_size=30)
STEPS = st.lists(
    st.builds(
        Step,
        wait_ms=st.sampled_from([0, 0, 1, 300, 1_200]),
        requests=st.integers(0, 5),
        expects_response=st.sampled_from([True, True, False]),
        timeout_ms=st.sampled_from([None, None, 150]),
        closes=st.sampled_from([False] * 9 + [True]),
    ),
    min_size=1,
    max_size=8,
)


class Broker(asyncio.BufferedProtocol):
    """Does its deeds one after the other, and answers when there are no more."""

    transport: asyncio.Transport

    def __init__(self, deeds: list[Deed]) -> None:
        self._deeds = iter(deeds)
        self._reader = FrameReader(1 << 20)
        self._waiting: list[Received] = []
        self._is_busy = False
        self._timer: asyncio.TimerHandle | None = None
        self.names: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.buffer_updated(nbytes)
        while (frame := self._reader.next_frame()) is not None:
            cls = REQUESTS[int.from_bytes(frame[:2])]
            version = int.from_bytes(frame[2:4])
            header, position = read_request_header(frame, cls.is_flexible(version))
            self._waiting.append(Received(header, decode(cls, version, frame, position)))
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._is_busy and not self.transport.is_closing():
            request = self._waiting.pop(0)
            if isinstance(request.message, ApiVersionsRequest):
                self.transport.write(frame_of(request, ranges_answer(ALL_RANGES)))
                continue
            name: str = request.message.topics[0].name
            self.names.append(name)
            if not name.startswith("unanswered"):
                self._do(next(self._deeds, Deed.ANSWER), request, name)

    def _do(self, deed: Deed, request: Received, name: str) -> None:
        throttle_ms = SILENCE_MS if deed is Deed.SILENCE else 0
        answer = MetadataResponse(brokers=[], topics=[], cluster_id=name, throttle_time_ms=throttle_ms)
        frame = frame_of(request, answer)
        match deed:
            case Deed.ANSWER | Deed.SILENCE:
                self.transport.write(frame)
            case Deed.ANSWER_LATE:
                self._later(0.7, frame)
            case Deed.IGNORE:
                self._is_busy = True
            case Deed.WRONG_ID:
                self.transport.write(frame[:4] + bytes([frame[4] ^ 64]) + frame[5:])
            case Deed.TWICE:
                self.transport.write(frame + frame)
            case Deed.CUT:
                self._is_busy = True
                self.transport.write(frame[: len(frame) // 2])
            case Deed.NEGATIVE:
                self.transport.write(b"\x80" + frame)
            case Deed.CLOSE:
                self.transport.close()
            case Deed.RESET:
                self.transport.abort()

    def _later(self, delay_s: float, frame: bytes) -> None:
        self._is_busy = True

        def write() -> None:
            self._is_busy = False
            if not self.transport.is_closing():
                self.transport.write(frame)
                self._go_on()

        self._timer = asyncio.get_running_loop().call_later(delay_s, write)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class History:
    """What was sent, and how it ended."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sent: list[str] = []
        self.short: set[str] = set()
        """Requests whose time is so short that they may time out while a quota keeps them back."""
        self.ended: list[tuple[str, Any, float]] = []

    def send(self, step: Step) -> None:
        for _ in range(step.requests):
            name = f"{'answered' if step.expects_response else 'unanswered'}-{len(self.sent)}"
            self.sent.append(name)
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            done = self._done(name, asyncio.get_running_loop().time())
            timeout_ms = step.timeout_ms if step.expects_response else None
            if timeout_ms is not None:
                self.short.add(name)
            self.connection.send(request, 12, done, timeout_ms=timeout_ms, expects_response=step.expects_response)

    def _done(self, name: str, sent_s: float) -> Callable[[Any], None]:
        def done(result: Any) -> None:
            self.ended.append((name, result, asyncio.get_running_loop().time() - sent_s))

        return done

    def check(self, broker: Broker) -> None:
        assert sorted(name for name, _, _ in self.ended) == sorted(self.sent), "each ends exactly once"
        assert self.connection.in_flight == 0
        for name, result, took_s in self.ended:
            # At most: kept back for its timeout, then sent, then waited for, and the quotas on top.
            assert took_s <= 2 * TIMEOUT_MS / 1000 + len(self.sent) * SILENCE_MS / 1000 + 0.1
            if isinstance(result, ClientError):
                assert result.retriable
            elif name.startswith("unanswered"):
                assert result is None
            else:
                assert result.cluster_id == name
        answered = [name for name, result, _ in self.ended if isinstance(result, MetadataResponse)]
        assert answered == [name for name in self.sent if name in answered], "answers come in order"
        assert broker.names == [name for name in self.sent if name in broker.names], "requests leave in order"


async def live_through(deeds: list[Deed], steps: list[Step], seed: int, sends_late: bool) -> None:
    network = MemoryNetwork(seed=seed, sends_late=sends_late)
    network.path("10.0.0.1", 9092).to_client.tear = torn_randomly(network.rng.randint)
    broker = Broker(deeds)
    server = network.listen(lambda: broker, "10.0.0.1", 9092)
    server.start()
    config = ClientConfig("10.0.0.1:9092", request_timeout_ms=TIMEOUT_MS)
    connection = await open_connection(MemoryEnvironment(network), config, 1, "10.0.0.1", 9092)
    history = History(connection)
    told: list[ClientError] = []
    connection.on_close = lambda _, why: told.append(why)
    for step in steps:
        await asyncio.sleep(step.wait_ms / 1000)
        history.send(step)
        if step.closes:
            connection.close()
    await asyncio.sleep(2 * TIMEOUT_MS / 1000 + len(history.sent) * (SILENCE_MS + 700) / 1000)
    assert connection.in_flight == 0, "by now all time has passed that a request may take"
    connection.close()
    await connection.closed()
    assert len(told) == 1
    history.check(broker)
    if all(deed in (Deed.ANSWER, Deed.SILENCE) for deed in deeds) and not any(step.closes for step in steps):
        assert all(
            not isinstance(result, ClientError) for name, result, _ in history.ended if name not in history.short
        )
    broker.stop()
    server.close()
    network.stop()
    network.check_closed()


@settings(max_examples=150)
@given(DEEDS, STEPS, st.integers(0, 1 << 16), st.booleans())
def test_whatever_happens_each_request_ends_once_in_order_and_in_time(
    deeds: list[Deed], steps: list[Step], seed: int, sends_late: bool
) -> None:
    run_virtual(live_through(deeds, steps, seed, sends_late))


async def let_a_peer_read_late(size_bytes: int) -> None:
    network = MemoryNetwork()
    network.listen(lambda: Broker([]), "10.0.0.1", 9092).start()
    way = network.path("10.0.0.1", 9092).to_server
    way.window_bytes = 1_000
    connection = await open_connection(MemoryEnvironment(network), ClientConfig("10.0.0.1:9092"), 1, "10.0.0.1", 9092)
    way.is_stalled = True
    ended: list[object] = []
    name = "unanswered" + "x" * size_bytes
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    connection.send(request, 12, ended.append, expects_response=False)
    await asyncio.sleep(10)
    assert ended == []
    way.is_stalled = False
    network.links[0].to_server.flow()
    await asyncio.sleep(10)
    assert ended == [None]
    connection.close()
    await connection.closed()
    network.stop()


def test_a_request_without_an_answer_waits_for_its_last_byte_however_small_it_is() -> None:
    """Also below the limits at which a transport says by itself that it is full, and that it is not any more."""
    for size_bytes in (1_000, 2_000, 20_000):
        run_virtual(let_a_peer_read_late(size_bytes))


async def close_in_the_silence_of_a_quota() -> None:
    network = MemoryNetwork()
    network.listen(lambda: Broker([Deed.SILENCE]), "10.0.0.1", 9092).start()
    connection = await open_connection(MemoryEnvironment(network), ClientConfig("10.0.0.1:9092"), 1, "10.0.0.1", 9092)
    await connection.ask(MetadataRequest(topics=[MetadataRequestTopic(name="answered")]))
    assert connection.throttled_until_ms > connection.last_used_ms
    connection.close()
    await connection.closed()
    network.stop()


def test_no_timer_is_left_behind_in_the_silence_of_a_quota() -> None:
    run_virtual(close_in_the_silence_of_a_quota())
