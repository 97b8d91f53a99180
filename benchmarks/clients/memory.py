"""How far a full buffer makes a process grow: the broker stands still, the caller sends and keeps nothing.

The broker's process is stopped by a signal once the producer knows the topic, so that it takes bytes and answers
nothing. The producer is filled until it refuses more; what it grew by is held against the bytes of the keys and values
that it took. The broker goes on then, and every record that was taken has to arrive.
"""

import os
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.clients.process import contending
from benchmarks.clients.runs import Topics, existing_topic
from benchmarks.clients.speed import KEY_BYTES
from benchmarks.clients.topics import record_count
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import OURS, Filled, Job, Loop
from benchmarks.figures.figures import Bar, Figure, Summary
from benchmarks.harness.servers import Server
from benchmarks.produce import LogDiffers

MEGABYTE = 1_000_000
BUFFER_BYTES = 32 * 1024 * 1024
"""The default of buffer.memory."""
WARM_SENDS = 200


@dataclass(frozen=True, slots=True)
class Filling:
    """Records of one size, and how much more than their bytes they may take."""

    name: str
    value_bytes: int
    key_bytes: int
    bound: float

    @property
    def load(self) -> ClientLoad:
        """More records than there is room for."""
        count = 2 * BUFFER_BYTES // (self.value_bytes + self.key_bytes)
        return ClientLoad("", count, WARM_SENDS, self.value_bytes, self.value_bytes, self.key_bytes)


FILLINGS = (
    Filling("1 KiB, no keys", 1024, 0, 1.4),
    Filling("1 KiB, keys", 1024, KEY_BYTES, 1.4),
    Filling("100 B, no keys", 100, 0, 2.2),
    Filling("100 B, keys", 100, KEY_BYTES, 2.2),
)


def measure_memory(
    server: Server,
    topics: Topics,
    *,
    runs: int,
    say: Callable[[str], None],
    loop: Loop,
    fillings: Sequence[Filling] = FILLINGS,
    client: str = OURS,
) -> list[Figure]:
    """A figure for each filling: growth as ours, what was put in as theirs. Raises what `fill` raises."""
    done: dict[Filling, list[Filled]] = {filling: [] for filling in fillings}
    for number in range(1, runs + 1):
        for filling in fillings:
            filled = fill(server, topics, filling.load, loop, client)
            done[filling].append(filled)
            say(
                f"memory {number}/{runs} {filling.name}: {filled.growth_bytes / MEGABYTE:.1f} MB "
                f"for {filled.payload_bytes / MEGABYTE:.1f} MB in {filled.records:,} records"
            )
    return [figure_of(filling, done[filling]) for filling in fillings]


def figure_of(filling: Filling, runs: Sequence[Filled]) -> Figure:
    growth, payload = (
        Summary(tuple(size / MEGABYTE for size in sizes))
        for sizes in ([run.growth_bytes for run in runs], [run.payload_bytes for run in runs])
    )
    name = f"growth beside keys and values in a full buffer, {filling.name}"
    return Figure(name, "MB", growth, payload, Bar("≤", filling.bound), 1)


def fill(server: Server, topics: Topics, load: ClientLoad, loop: Loop, client: str = OURS) -> Filled:
    """One run. Raises ContenderFailed, and LogDiffers when what was taken did not arrive."""
    named = topics.named(load)
    job = Job("memory", client, "", server.process.host, server.process.port, named, loop)
    with existing_topic(server, named.topic) as wire:
        with contending(job) as conversation:
            with stopped(server):
                conversation.say("fill")
                filled = Filled(**conversation.hear())
            conversation.say("end")
        arrived, taken = record_count(wire, named.topic), load.warm_count + filled.records
        if arrived != taken:
            raise LogDiffers(f"{named.topic} holds {arrived} records, {taken} were taken")
        if filled.records == load.count:
            raise LogDiffers(f"the buffer of {job.client} was not full with {load.count} records")
    return filled


@contextmanager
def stopped(server: Server) -> Generator[None, None, None]:
    """Has the server's process stand still as long as the block."""
    pid = server.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
