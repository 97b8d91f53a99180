"""The process of a contender: does the one job that it is given, and tells what came of it.

What is said on both sides stands in `job.py`.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module

from benchmarks.contenders.job import MODULES, Client, ContenderFailed, Job, runner
from benchmarks.contenders.open_loop import drive, dues_of


def main(text: str) -> int:
    job = Job.from_json(text)
    make: Callable[[], Client] = import_module(f"benchmarks.contenders.{MODULES[job.client]}").client
    client = make()
    if job.kind == "speed":
        tell(client.identity)
        tell(asdict(client.idioms[job.idiom](job)))
        return 0
    if job.kind == "consume":
        tell(client.identity)
        tell(asdict(client.consuming[job.idiom](job)))
        return 0
    with runner(job.loop) as running:
        running.run(latency(client, job) if job.kind == "latency" else memory(client, job))
    return 0


async def latency(client: Client, job: Job) -> None:
    """The warm-up's values go one after the other, the others when they are due."""
    assert client.awaited is not None, f"{client.name} has no awaited send"
    values = [value for value, _key in job.load.records()]
    async with client.awaited(job) as send:
        for value in values[: job.load.warm_count]:
            await send(value)
        tell(client.identity)
        begin = float(hear()) + job.phase_s
        tell(await drive(send, values[job.load.warm_count :], dues_of(job.load.count, job.rate_per_s, begin)))


async def memory(client: Client, job: Job) -> None:
    """The broker is stopped while this waits for the first line, and goes on before the second one comes."""
    assert client.filling is not None, f"{client.name} has no buffer that gets full"
    async with client.filling(job) as fill:
        tell(client.identity)
        hear()
        tell(asdict(await fill()))
        await asyncio.to_thread(hear)  # the loop goes on: there is much to send


def tell(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def hear() -> str:
    """The next line of the parent. Raises ContenderFailed when it is gone."""
    line = sys.stdin.readline()
    if not line:
        raise ContenderFailed("nobody listens any more")
    return line.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
