"""One direction of a simulated TCP connection: between two processes, over a line that may be slow, lossy or cut.

    sender's transport -> [on the way: delay, bandwidth, retransmission] -> [arrived, in the receiver's socket] -> a
    read

It is a `Pipe` (odradek/testing/sim/world/memory_pipe.py) whose two ends are on different loops. What is on the way is
the network's, so it goes on while a process is paused or dead. TCP loses nothing: a segment that is lost, or comes to a
line that is cut, is sent again after `RETRANSMISSION_S`, and then after twice as long each time; what was sent behind
it waits. Bytes for a socket that is closed are answered with a reset, if the way back is open.
"""

from dataclasses import dataclass
from typing import Final
from zlib import crc32

from odradek.testing.sim.world.memory_pipe import Direction, End, Pipe
from odradek.testing.sim.world.memory_transport import MemoryTransport
from odradek.testing.sim.world.process import Process
from odradek.testing.sim.world.scheduler import Timer

SEGMENT_BYTES: Final = 1448
"""What is sent together and fits into one packet, travels in one."""
RETRANSMISSION_S: Final = 0.2
RETRANSMISSION_S_MAX: Final = 3.0
"""Linux goes up to 120 s. With less, what was cut flows again soon after it is repaired, and histories are short."""


@dataclass(slots=True)
class Line:
    """How packets go from one host to another. It may be changed at any time."""

    delay_ms: float = 0.2
    jitter_ms: float = 0.2
    loss: float = 0.0
    """The part of all segments that is lost."""
    bytes_per_ms: float | None = None
    is_cut: bool = False


@dataclass(slots=True)
class Host:
    """A machine, as the network sees it."""

    name: str
    address: str
    is_up: bool = True
    """It is on, and does not sleep."""


class Wire(Pipe):
    """See the module. `sender` and `receiver`, of Pipe, are the transports, as soon as there are any."""

    def __init__(
        self, sender: Process, receiver: Process, to_host: Host, from_host: Host, line: Line, back: Line
    ) -> None:
        super().__init__(sender.loop, Direction(), sender.rng.random)
        self.line = line
        self.back = back
        self.is_silent = False
        """The sender's machine has gone: nothing is sent again, and nothing more is sent."""
        self.is_open = True
        """The receiver's socket takes bytes, whether somebody has accepted the connection yet or not."""
        self.sending: MemoryTransport | None = None
        self.receiving: MemoryTransport | None = None
        self._from, self._to = sender, receiver
        self._from_host, self._to_host = from_host, to_host
        self._scheduler = sender.scheduler
        self._timer: Timer | None = None
        self._retransmission_s = RETRANSMISSION_S
        self._is_reading = False
        self._sent_at_s = -1.0
        """When what is last on the way was sent."""

    # -- sending ---------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        assert 0 < len(data) <= self.room_bytes
        self._held_bytes += len(data)
        now_s, line, on_the_way = self._scheduler.now_s, self.line, self._on_the_way
        if line.bytes_per_ms is not None:
            begin_s = max(self._free_at_s, now_s)
            self._free_at_s = begin_s + len(data) / line.bytes_per_ms / 1000.0
        elif on_the_way and self._sent_at_s == now_s:
            arrival_s, last = on_the_way[-1]
            if isinstance(last, bytes) and len(last) + len(data) <= SEGMENT_BYTES:
                on_the_way[-1] = arrival_s, last + data
                return
        self._put(data)

    def _put(self, item: bytes | End) -> None:
        if self.is_dead or self.is_silent:
            return
        line, chance, now_s = self.line, self._chance, self._scheduler.now_s
        delay_s = (line.delay_ms + line.jitter_ms * chance()) / 1000.0
        if line.loss:
            again_s = RETRANSMISSION_S
            while chance() < line.loss:
                delay_s += again_s
                again_s = min(2 * again_s, RETRANSMISSION_S_MAX)
        # What is faster than what was sent before waits behind it (`_arrive`).
        arrival_s = (self._free_at_s if self._free_at_s > now_s else now_s) + delay_s
        self._sent_at_s = now_s
        self._on_the_way.append((arrival_s, item))
        if self._timer is None:
            self._timer = self._scheduler.at(arrival_s, self._arrive)

    def send_again(self) -> None:
        """What waits for its time to be sent again is sent now."""
        if self._timer is not None and self._on_the_way and self._on_the_way[0][0] <= self._scheduler.now_s:
            self._timer.cancel()
            self._timer = self._scheduler.after(self.line.delay_ms / 1000.0, self._arrive)

    # -- arriving --------------------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        self._timer = None
        if self.is_dead:
            return
        if self.line.is_cut or not self._to_host.is_up:
            self._send_again()
            return
        self._retransmission_s = RETRANSMISSION_S
        now_s, on_the_way = self._scheduler.now_s, self._on_the_way
        checksum = size_bytes = 0
        while on_the_way and on_the_way[0][0] <= now_s:
            item = on_the_way[0][1]
            if isinstance(item, End):
                self._end = item
            elif not self.is_open:
                self._bounce()
                return
            else:
                checksum, size_bytes = crc32(item, checksum), size_bytes + len(item)
                self._arrived.append(memoryview(item))
            on_the_way.popleft()
        sender = self._from
        sender.trace.note(sender.name, ">", self._to.name, size_bytes, checksum if size_bytes else str(self._end))
        if on_the_way:
            self._timer = self._scheduler.at(on_the_way[0][0], self._arrive)
        self.flow()

    def _send_again(self) -> None:
        if self.is_silent:
            self._on_the_way.clear()
            return
        self._timer = self._scheduler.after(self._retransmission_s, self._arrive)
        self._retransmission_s = min(2 * self._retransmission_s, RETRANSMISSION_S_MAX)

    def _bounce(self) -> None:
        """Bytes for a closed socket: its machine answers with a reset."""
        if self.back.is_cut:
            self._send_again()
            return
        self.stop()
        self._timer = self._scheduler.after(self.back.delay_ms / 1000.0, self._bounced)

    def _bounced(self) -> None:
        self._timer = None
        if self.sending is not None and self._from_host.is_up:
            self._from.post(self.sending.reset)

    # -- reading ---------------------------------------------------------------------------------------------------

    def flow(self) -> None:
        receiving = self.receiving
        if receiving is None or self._is_reading or not (self._arrived or self._end is not None):
            return
        if receiving.reads():
            self._is_reading = True
            self._to.post(self._read)

    def _read(self) -> None:
        """In the receiver's loop."""
        self._is_reading = False
        receiving = self.receiving
        if self.is_dead or receiving is None or not receiving.reads():
            return
        if self._arrived:
            receiving.receive(self._read_size())
            self._tell_room()
        elif self._end is not None:
            end, self._end = self._end, None
            receiving.receive_end(end)
        self.flow()

    def _tell_room(self) -> None:
        """The sender's socket takes bytes again, if somebody waits for that."""
        if self.sending is not None and self.sending.get_write_buffer_size():
            self._scheduler.after(self.back.delay_ms / 1000.0, self._from.post, self.sending.room_came)

    # -- ending ----------------------------------------------------------------------------------------------------

    def drop_arrived(self) -> None:
        self.is_open = False
        self._arrived.clear()
        self._end = None

    def stop(self) -> None:
        self._arrived.clear()
        self._end = None
        self._on_the_way.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
