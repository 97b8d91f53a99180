"""TLS in the simulated network: between those who both speak it, and how it ends between those who do not."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from odradek.testing.sim.world.environment import Serve, SimEnvironment
from odradek.testing.sim.world.process import Process
from tests.client.certificates import Certificates, make_certificates
from tests.sim.support import Bench

PORT = 9093
HELLO = b"h" * 100_000
FRAME = (18).to_bytes(4, "big") + bytes(18)
"""What a client of Kafka's sends first, in plaintext."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


class Echo(asyncio.Protocol):
    """Sends back what comes, and closes what is no frame of Kafka's, as a broker does."""

    def __init__(self, told: list[str], *, takes: Callable[[bytes], bool]) -> None:
        self.told = told
        self.takes = takes
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.told.append("made")

    def data_received(self, data: bytes) -> None:
        if self.takes(data):
            self.transport.write(data)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")


class Asking(asyncio.Protocol):
    """Sends something, and keeps what comes until the end."""

    def __init__(self, said: bytes) -> None:
        self.said = said
        self.received = b""
        self.is_answered = asyncio.Event()
        self.is_lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.said)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if len(self.received) >= len(self.said):
            self.is_answered.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost.set()


def no_worker(owner: Process, serve: Serve) -> NoReturn:
    raise AssertionError(f"{owner} has nothing to compact for {serve}")


class Pair:
    """A server and a client, each with the environment of its process."""

    def __init__(self, served: ssl.SSLContext | None) -> None:
        self.bench = Bench()
        self.server, self.client = self.bench.process("server"), self.bench.process("client")
        self.told: list[str] = []
        """What the server's protocols were."""
        self.is_kafka = served is None
        self.bench.do(self.server, self.serve(served), 0.1)

    def environment(self, process: Process) -> SimEnvironment:
        network = self.bench.network
        return SimEnvironment(process, network, network.names[process.name], process.rng, "boot", no_worker)

    async def serve(self, served: ssl.SSLContext | None) -> None:
        server, _ = await self.environment(self.server).listen(self.accept, "", PORT, ssl=served)
        await server.start_serving()

    def accept(self) -> Echo:
        return Echo(self.told, takes=lambda data: not self.is_kafka or data[:1] == b"\0")

    def ask(self, said: bytes, trust: ssl.SSLContext | None, name: str | None = "kafka.test") -> "Outcome":
        outcome = Outcome()

        async def ask() -> None:
            asking = Asking(said)
            try:
                transport = await self.environment(self.client).connect(
                    lambda: asking, "server", PORT, ssl=trust, server_hostname=name if trust else None
                )
                waits = [asyncio.ensure_future(event.wait()) for event in (asking.is_answered, asking.is_lost)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
                assert isinstance(transport, asyncio.Transport)
                transport.close()
                outcome.received, outcome.is_lost = asking.received, asking.is_lost.is_set()
            except OSError as error:
                outcome.error = error
            outcome.at_s = self.bench.scheduler.now_s - begun_s

        begun_s = self.bench.scheduler.now_s
        self.bench.do(self.client, ask(), 100.0)
        assert self.server.errors == []
        assert outcome.at_s is not None, "it has ended"
        return outcome


class Outcome:
    """What became of an attempt: `at_s` seconds after it began."""

    received = b""
    is_lost = False
    error: OSError | None = None
    at_s: float | None = None


def trusting(path: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(path))


def test_what_both_speak_carries_every_byte(certificates: Certificates) -> None:
    pair = Pair(certificates.server_context())
    for _ in range(2):
        outcome = pair.ask(HELLO, trusting(certificates.authority))
        assert (outcome.received, outcome.is_lost, outcome.error) == (HELLO, False, None)
    assert pair.told == ["made", "lost", "made", "lost"]


def test_over_a_line_that_loses_and_jitters_too(certificates: Certificates) -> None:
    pair = Pair(certificates.server_context())
    for line in (pair.bench.network.line("client", "server"), pair.bench.network.line("server", "client")):
        line.loss, line.jitter_ms = 0.2, 20.0
    assert pair.ask(HELLO, trusting(certificates.authority)).received == HELLO


def test_a_server_that_speaks_tls_closes_what_does_not(certificates: Certificates) -> None:
    """And its protocol never hears of it."""
    pair = Pair(certificates.server_context())
    outcome = pair.ask(FRAME, None)
    assert (outcome.received, outcome.is_lost, outcome.error) == (b"", True, None)
    assert pair.told == []
    assert pair.bench.network.between("server", "client") == []


def test_a_client_that_speaks_tls_gets_an_error_from_a_server_that_does_not(certificates: Certificates) -> None:
    """To which its first bytes are no frame."""
    pair = Pair(None)
    outcome = pair.ask(FRAME, trusting(certificates.authority))
    assert isinstance(outcome.error, ConnectionError)
    assert pair.told == ["made", "lost"]
    assert pair.bench.network.between("server", "client") == []
    assert pair.ask(FRAME, None).received == FRAME, "it serves others"


@pytest.mark.parametrize("name", ["kafka.test", "elsewhere.test"])
def test_a_certificate_that_is_not_trusted_or_of_another_name_is_refused(certificates: Certificates, name: str) -> None:
    pair = Pair(certificates.server_context())
    trust = certificates.stranger if name == "kafka.test" else certificates.authority
    outcome = pair.ask(FRAME, trusting(trust), name)
    assert isinstance(outcome.error, ssl.SSLCertVerificationError)
    assert "made" not in pair.told or "lost" in pair.told


def test_without_a_name_the_host_s_is_asked_for(certificates: Certificates) -> None:
    outcome = Pair(certificates.server_context()).ask(FRAME, trusting(certificates.authority), None)
    assert isinstance(outcome.error, ssl.SSLCertVerificationError)
    assert "'server'" in str(outcome.error)


@pytest.mark.parametrize("after_s", [0.0012, 0.0016, 0.002, 0.01])
def test_a_server_that_is_killed_ends_what_its_clients_have(certificates: Certificates, after_s: float) -> None:
    """Within the handshake and behind it. Nobody complains of what a dead process has not closed."""
    pair = Pair(certificates.server_context())
    for line in (pair.bench.network.line("client", "server"), pair.bench.network.line("server", "client")):
        line.bytes_per_ms = 100.0
    pair.server.when_killed(lambda: pair.bench.network.process_ended(pair.server, is_silent=False))
    pair.bench.scheduler.after(after_s, pair.server.kill)
    outcome = pair.ask(HELLO, trusting(certificates.authority))
    assert outcome.is_lost or isinstance(outcome.error, ConnectionError)
    assert outcome.received != HELLO
    assert pair.bench.network.between("server", "client") == []


def test_a_client_that_is_killed_leaves_nothing(certificates: Certificates) -> None:
    pair = Pair(certificates.server_context())
    pair.client.when_killed(lambda: pair.bench.network.process_ended(pair.client, is_silent=False))

    async def connect() -> None:
        environment = pair.environment(pair.client)
        trust = trusting(certificates.authority)
        await environment.connect(lambda: Asking(FRAME), "server", PORT, ssl=trust, server_hostname="kafka.test")

    pair.bench.do(pair.client, connect(), 5.0)
    pair.client.kill()
    pair.bench.run(5.0)
    assert pair.told == ["made", "lost"]
    assert pair.bench.network.between("server", "client") == []
