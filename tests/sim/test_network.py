"""The simulated network: what TCP promises holds, whatever becomes of lines, hosts and processes."""

import asyncio

import pytest

from odradek.testing.sim.world.process import Process
from odradek.testing.sim.world.wire import SEGMENT_BYTES
from tests.sim.support import Bench

PORT = 9092


class Talker(asyncio.Protocol):
    """Keeps what comes, and says nothing unless told."""

    def __init__(self) -> None:
        self.received = b""
        self.reads: list[int] = []
        self.ended: list[str] = []
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.reads.append(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.append("closed" if exc is None else type(exc).__name__)


class Pair:
    """A server and a client, connected unless something is in the way."""

    def __init__(self, *, connects: bool = True) -> None:
        self.bench = Bench()
        self.server, self.client = self.bench.process("server"), self.bench.process("client")
        self.accepted: list[Talker] = []
        self.talkers: list[Talker] = []
        self.failures: list[str] = []
        self.server.start(self.serve(), "serve")
        self.bench.run(0.1)
        if connects:
            self.connect()
            self.bench.run(0.1)
            assert len(self.accepted) == len(self.talkers) == 1

    async def serve(self) -> None:
        server = self.bench.network.listen(self.server, self.accept, "10.0.0.1", PORT)
        await server.start_serving()

    def accept(self) -> Talker:
        self.accepted.append(Talker())
        return self.accepted[-1]

    def connect(self, timeout_s: float = 300.0) -> None:
        async def connect() -> None:
            talker = Talker()
            try:
                async with asyncio.timeout(timeout_s):
                    await self.bench.network.connect(self.client, lambda: talker, "10.0.0.1", PORT)
            except OSError as error:
                self.failures.append(type(error).__name__)
            else:
                self.talkers.append(talker)

        self.client.start(connect(), "connect")

    def say(self, data: bytes) -> None:
        """The client does."""
        self.client.post(self.talkers[0].transport.write, data)

    def answer(self, data: bytes) -> None:
        """The server does."""
        self.server.post(self.accepted[0].transport.write, data)

    def end(self, process: Process, *, is_silent: bool = False) -> None:
        process.when_killed(lambda: self.bench.network.process_ended(process, is_silent=is_silent))
        process.kill()


def test_what_is_written_together_travels_together_if_it_fits_into_one_packet() -> None:
    """A header and its body do; what is larger than a packet comes in pieces, of which later ones may take longer."""
    pair = Pair()
    pair.bench.network.line("client", "server").jitter_ms = 50.0
    transport = pair.talkers[0].transport
    pair.client.post(transport.writelines, [b"h" * 20, b"b" * (SEGMENT_BYTES - 21), b"t"])
    pair.bench.run(1.0)
    assert pair.accepted[0].reads == [SEGMENT_BYTES]
    for _ in range(20):
        pair.client.post(transport.writelines, [b"h" * 20, b"b" * SEGMENT_BYTES])
        pair.bench.run(1.0)
    assert sum(pair.accepted[0].reads) == SEGMENT_BYTES + 20 * (20 + SEGMENT_BYTES)
    assert len(pair.accepted[0].reads) > 1 + 20


def test_bytes_arrive_whole_and_in_order_both_ways() -> None:
    pair = Pair()
    line = pair.bench.network.line("client", "server")
    line.loss, line.jitter_ms = 0.3, 50.0
    sent = [b"%d " % number * 100 for number in range(200)]
    for data in sent:
        pair.say(data)
    pair.answer(b"hello")
    pair.bench.run(100.0)
    assert pair.accepted[0].received == b"".join(sent)
    assert pair.talkers[0].received == b"hello"


def test_what_was_held_by_a_cut_is_sent_again_as_soon_as_that_is_wished() -> None:
    pair = Pair()
    network = pair.bench.network
    network.cut("client", "server")
    pair.say(b"x")
    pair.bench.run(10.0)
    network.line("client", "server").is_cut = False
    network.send_again("server", "client")
    pair.bench.run(0.001)
    assert pair.accepted[0].received == b"", "that is the other way"
    network.send_again("client", "server")
    pair.bench.run(0.001)
    assert pair.accepted[0].received == b"x"


def test_what_is_on_its_way_does_not_come_sooner_for_being_sent_again() -> None:
    pair = Pair()
    line = pair.bench.network.line("client", "server")
    line.delay_ms = 500.0
    pair.say(b"x")
    pair.bench.run(0.1)
    line.delay_ms = 1.0
    steps = pair.bench.scheduler.steps
    pair.bench.network.send_again("client", "server")
    pair.bench.run(0.3)
    assert pair.bench.scheduler.steps == steps, "nothing arrives"
    pair.bench.run(0.2)
    assert pair.accepted[0].received == b"x"


def test_a_slow_line_takes_its_time() -> None:
    pair = Pair()
    pair.bench.network.line("client", "server").delay_ms = 500.0
    pair.say(b"x")
    pair.bench.run(0.4)
    assert pair.accepted[0].received == b""
    pair.bench.run(0.2)
    assert pair.accepted[0].received == b"x"


def test_a_narrow_line_lets_so_much_through() -> None:
    pair = Pair()
    pair.bench.network.line("client", "server").bytes_per_ms = 10.0
    for _ in range(10):
        pair.say(b"x" * 1_000)
    pair.bench.run(0.55)
    assert len(pair.accepted[0].received) == 5_000
    pair.bench.run(1.0)
    assert len(pair.accepted[0].received) == 10_000


def test_a_line_that_is_cut_in_one_direction_lets_the_other_through() -> None:
    pair = Pair()
    pair.bench.network.cut("client", "server")
    pair.say(b"question")
    pair.answer(b"notice")
    pair.bench.run(10.0)
    assert pair.accepted[0].received == b""
    assert pair.talkers[0].received == b"notice"
    pair.bench.network.heal()
    pair.bench.run(10.0)
    assert pair.accepted[0].received == b"question"
    assert pair.talkers[0].ended == []


def test_a_reset_tells_both_ends() -> None:
    pair = Pair()
    (connection,) = pair.bench.network.between("server", "client")
    pair.bench.network.reset(connection)
    pair.bench.run()
    assert pair.accepted[0].ended == pair.talkers[0].ended == ["ConnectionResetError"]
    assert pair.bench.network.between("server", "client") == []


def test_who_closes_is_heard() -> None:
    pair = Pair()
    pair.client.post(pair.talkers[0].transport.close)
    pair.bench.run()
    assert pair.accepted[0].ended == pair.talkers[0].ended == ["closed"]


def test_the_host_of_a_killed_process_closes_its_sockets() -> None:
    pair = Pair()
    pair.answer(b"last words")
    pair.bench.run(0.00005)  # they are on their way
    pair.end(pair.server)
    pair.bench.run()
    assert pair.talkers[0].received == b"last words"
    assert pair.talkers[0].ended == ["closed"]
    pair.connect()
    pair.bench.run()
    assert pair.failures == ["ConnectionRefusedError"]


def test_a_killed_process_that_had_not_read_everything_resets() -> None:
    pair = Pair()
    pair.server.pause()
    pair.say(b"unread")
    pair.bench.run(0.1)
    pair.end(pair.server)
    pair.bench.run()
    assert pair.talkers[0].ended == ["ConnectionResetError"]


def test_nobody_hears_of_a_machine_that_loses_power_until_it_is_back() -> None:
    pair = Pair()
    host = pair.bench.network.host("server")
    pair.end(pair.server, is_silent=True)
    host.is_up = False
    pair.bench.run(20.0)
    assert pair.talkers[0].ended == []
    pair.say(b"anybody?")
    pair.bench.run(20.0)
    assert pair.talkers[0].ended == []
    host.is_up = True
    pair.bench.run(5.0)
    assert pair.talkers[0].ended == ["ConnectionResetError"]


def test_a_paused_process_has_its_connections_and_bytes_wait() -> None:
    pair = Pair(connects=False)
    pair.server.pause()
    pair.connect()
    pair.bench.run()
    assert len(pair.talkers) == 1
    assert pair.accepted == []
    pair.say(b"waits")
    pair.bench.run()
    pair.server.resume()
    pair.bench.run()
    assert pair.accepted[0].received == b"waits"


def test_a_paused_process_takes_no_more_than_its_sockets_hold() -> None:
    pair = Pair()
    pair.server.pause()
    for _ in range(50):
        pair.say(b"x" * 10_000)
    pair.bench.run()
    waiting = pair.talkers[0].transport.get_write_buffer_size()
    assert 300_000 < waiting < 500_000
    pair.server.resume()
    pair.bench.run()
    assert pair.talkers[0].transport.get_write_buffer_size() == 0
    assert len(pair.accepted[0].received) == 500_000


def test_who_connects_over_a_line_that_is_cut_gets_through_once_it_is_whole() -> None:
    pair = Pair(connects=False)
    pair.bench.network.cut("client", "server")
    pair.connect()
    pair.bench.run(2.0)
    assert pair.talkers == []
    pair.bench.network.heal()
    pair.bench.run(2.0)
    assert len(pair.talkers) == len(pair.accepted) == 1


def test_a_client_whose_return_path_is_cut_is_accepted_and_does_not_know_it() -> None:
    pair = Pair(connects=False)
    pair.bench.network.cut("server", "client")
    pair.connect()
    pair.bench.run(2.0)
    assert (len(pair.accepted), len(pair.talkers)) == (1, 0)
    pair.bench.network.heal()
    pair.bench.run(2.0)
    assert (len(pair.accepted), len(pair.talkers)) == (1, 1)


def test_who_gives_up_connecting_leaves_no_connection_behind() -> None:
    pair = Pair(connects=False)
    pair.bench.network.cut("server", "client")
    pair.connect(timeout_s=0.5)
    pair.bench.run(0.7)
    assert pair.failures == ["TimeoutError"]
    pair.bench.network.heal()
    pair.bench.run(5.0)
    assert len(pair.accepted) == 1
    assert pair.accepted[0].ended == ["ConnectionResetError"]
    assert pair.bench.network.between("server", "client") == []


def test_nobody_answers_at_the_end_of_all_tries() -> None:
    pair = Pair(connects=False)
    pair.bench.network.cut("client", "server")
    pair.connect(timeout_s=1_000.0)
    pair.bench.run(200.0)
    assert pair.failures == ["TimeoutError"]


def test_an_address_is_bound_once_and_by_its_own_machine() -> None:
    pair = Pair()
    with pytest.raises(OSError, match="in use"):
        pair.bench.network.listen(pair.server, Talker, "10.0.0.1", PORT)
    with pytest.raises(OSError, match="assign"):
        pair.bench.network.listen(pair.client, Talker, "10.0.0.1", PORT + 1)
