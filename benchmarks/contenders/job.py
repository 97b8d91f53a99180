"""What a contender's process is to do, what it answers, and the clock that both are measured by.

    python -m benchmarks.contenders JOB      JOB is a `Job` in JSON; answers are lines of JSON

Each process first tells which client it is. A speed run answers with a `Timing` then, and a run that consumes with a
`Reading`. A latency run is warm when it has told who it is; it waits for a line with the moment to begin at, and
answers with the seconds that each send took. A memory run waits for a line, fills its buffer, answers with a `Filled`,
and waits for another line before it ends.
"""

import asyncio
import gc
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, TypeVar

from benchmarks.contenders.client_load import ClientLoad, Pair

P = TypeVar("P")

LINGER_MS = 5
BATCH_BYTES = 64 * 1024
TASKS_AT_A_TIME = 1000
"""With one task per record: as a service would that has so many requests under way. (All at once, aiokafka wakes every
waiting task for each batch, and takes 390 µs a record where it takes 16 with a thousand.)"""
DELIVERY_TIMEOUT_S = 60.0

OURS = "Odradek"
MODULES = {
    "kafka-python": "kafka_python",
    "aiokafka": "aiokafka",
    "confluent-kafka": "confluent",
    OURS: "odradek",
}
"""The adapters, in this package. A process imports no other client than its own."""

Kind = Literal["speed", "latency", "memory", "consume"]
Loop = Literal["asyncio", "uvloop"]


class ContenderFailed(Exception):
    """A process did not do its job, or a client lost a record."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one client. For latency: `rate_per_s` sends a second, the first `phase_s` after the beginning."""

    kind: Kind
    client: str
    idiom: str
    host: str
    port: int
    load: ClientLoad
    loop: Loop = "asyncio"
    rate_per_s: float = 0.0
    phase_s: float = 0.0

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: dict[str, Any] = json.loads(text)
        values["load"] = ClientLoad(**values["load"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Timing:
    """From the first record to the last acknowledgement; the CPU time of all threads of the client's process."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Filled:
    """How far a full buffer made the process grow, and how many bytes of keys and values were put into it."""

    growth_bytes: int
    payload_bytes: int
    records: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How long the timed records took to read, with the CPU time of all threads; the sum of all that was read."""

    seconds: float
    cpu_seconds: float
    total: int


class Stopwatch:
    """Times what is done within it. Garbage of what came before is collected first, at nobody's expense."""

    def __enter__(self) -> Self:
        gc.collect()
        self._cpu, self._clock = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._clock
        self.timing = Timing(seconds, time.process_time() - self._cpu)


Idiom = Callable[[Job], Timing]
"""Sends the warm-up's records, then the others within a `Stopwatch`, and learns of each that it has arrived.

Raises ContenderFailed, and whatever the client raises.
"""
ReadingIdiom = Callable[[Job], Reading]
"""Reads the load's topic from end to end, the timed records within a `Stopwatch`; see `reading.py`.

Raises ContenderFailed, and whatever the client raises.
"""
AwaitedSend = Callable[[bytes], Coroutine[Any, Any, object]]
"""Sends a value and returns when it is acknowledged."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client: its name and version as it says them itself, and what it can do."""

    name: str
    version: str
    idioms: Mapping[str, Idiom]
    note: str = ""
    """What has to be known of it besides, such as that it really uses what makes it fast."""
    awaited: Callable[[Job], AbstractAsyncContextManager[AwaitedSend]] | None = None
    """A producer that is connected and lingers for nothing, for the latency runs."""
    filling: Callable[[Job], AbstractAsyncContextManager[Callable[[], Coroutine[Any, Any, Filled]]]] | None = None
    """A producer that is warm, and a function that sends until its buffer is full, for the memory runs."""
    consuming: Mapping[str, ReadingIdiom] = field(default_factory=dict[str, ReadingIdiom])
    """Its ways to consume."""

    @property
    def identity(self) -> str:
        return f"{self.name} {self.version}{f' {self.note}' if self.note else ''}"


def run_sending(
    job: Job,
    producer_of: Callable[[Job], AbstractAsyncContextManager[P]],
    sending: Callable[[P, str, list[Pair]], Coroutine[Any, Any, None]],
) -> Timing:
    """Runs an idiom of an asyncio client, in a loop of the kind that the job asks for."""

    async def main() -> Timing:
        warm, timed = job.load.split()
        async with producer_of(job) as producer:
            await sending(producer, job.load.topic, warm)
            with Stopwatch() as watch:
                await sending(producer, job.load.topic, timed)
        return watch.timing

    with runner(job.loop) as running:
        return running.run(main())


def runner(loop: Loop) -> asyncio.Runner:
    if loop == "uvloop":
        import uvloop

        return asyncio.Runner(loop_factory=uvloop.new_event_loop)
    return asyncio.Runner()
