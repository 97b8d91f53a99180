"""What a consumer has to do in a run: read a topic of `client_load` from end to end, and look at every record.

Of each record its offset and timestamp and the last bytes of its key and value are added up, in the run itself, by a
loop over the records as the client hands them out: who did not get the same records has another sum. The records of
the load's warm-up come before the clock starts, and as many as `count` says are read while it runs.

All assign themselves every partition and read from the beginning, with a group that nobody else has, to which they
commit every 5 s by themselves. What they fetch is Kafka's default: 1 MiB of a partition and 50 MiB an answer at most,
at least one byte within 500 ms. All verify checksums.
"""

import os
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import ContenderFailed, Job, Reading, Stopwatch, runner

C = TypeVar("C")

BATCH_RECORDS = 10_000
"""So many are asked for in one call, where a call gives many."""
SILENCE_S = 10.0
"""So long a call waits for a record that has to be there."""


def group_of(job: Job) -> str:
    """A group of this process alone."""
    return f"{job.load.topic}-{os.getpid()}"


def read(load: ClientLoad, take: Callable[[int], int]) -> Reading:
    """Runs a consumer that blocks. `take` reads so many records, and answers their sum. Raises what it raises."""
    total = take(load.warm_count)
    with Stopwatch() as watch:
        total += take(load.count)
    return Reading(watch.timing.seconds, watch.timing.cpu_seconds, total)


def run_reading(
    job: Job,
    consumer_of: Callable[[Job], AbstractAsyncContextManager[C]],
    take: Callable[[C, int], Coroutine[object, object, int]],
) -> Reading:
    """The same for a consumer of asyncio, in a loop of the kind that the job asks for."""

    async def main() -> Reading:
        async with consumer_of(job) as consumer:
            total = await take(consumer, job.load.warm_count)
            with Stopwatch() as watch:
                total += await take(consumer, job.load.count)
        return Reading(watch.timing.seconds, watch.timing.cpu_seconds, total)

    with runner(job.loop) as running:
        return running.run(main())


def went_silent(client: str, count: int, wanted: int) -> ContenderFailed:
    """Records are there, and the client gives none."""
    return ContenderFailed(f"{client} gave {count} of {wanted} records, and nothing more within {SILENCE_S:g} s")
