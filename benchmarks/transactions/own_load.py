"""Our own producer, a process of its own: `python -m benchmarks.transactions.own_load LOAD`.

LOAD is an `OwnLoad` in JSON. It prints how many records a second were acknowledged or committed, a number, in JSON. A
tenth of the records are sent before the clock runs. Where there are no transactions, it waits for what it has sent at
the end, and nowhere else.
"""

import asyncio
import gc
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final, Literal, Self

from benchmarks.load.generator import run_generator
from odradek import ClientError, Producer, Transaction

TOGETHER: Final = 10_000
"""Records of a transaction, or of a call of `send_batch`."""
WARM_SHARE: Final = 0.1

Idiom = Literal["send", "send_batch"]


@dataclass(frozen=True, slots=True)
class OwnLoad:
    """`times` as many records as `TOGETHER`, in transactions of so many or in none."""

    bootstrap: str
    topic: str
    idiom: Idiom
    is_transactional: bool
    times: int
    value_bytes: int = 100

    @property
    def warm_times(self) -> int:
        """The same of those that are sent before the clock runs."""
        return max(1, round(WARM_SHARE * self.times))

    @property
    def records(self) -> int:
        """All of them."""
        return (self.warm_times + self.times) * TOGETHER

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def run_own(load: OwnLoad) -> float:
    """Runs the process; records a second. Raises LoadFailed."""
    return float(run_generator("benchmarks.transactions.own_load", load.to_json()))


async def produce(load: OwnLoad) -> float:
    """Raises ClientError."""
    transactional_id = load.topic if load.is_transactional else None
    async with Producer(load.bootstrap, acks="all", transactional_id=transactional_id) as producer:
        await _send_all(producer, load, load.warm_times)
        gc.collect()
        began = time.perf_counter()
        await _send_all(producer, load, load.times)
        return load.times * TOGETHER / (time.perf_counter() - began)


async def _send_all(producer: Producer, load: OwnLoad, times: int) -> None:
    values = [number.to_bytes(load.value_bytes, "big") for number in range(TOGETHER)]
    for _ in range(times):
        if load.is_transactional:
            async with producer.transaction() as transaction:
                await _send(transaction, load, values)
        else:
            await _send(producer, load, values)
    await producer.flush()


async def _send(to: Producer | Transaction, load: OwnLoad, values: list[bytes]) -> None:
    if load.idiom == "send_batch":
        await to.send_batch(load.topic, values)
    else:
        for value in values:
            await to.send(load.topic, value)


def main(text: str) -> int:
    try:
        rate = asyncio.run(produce(OwnLoad.from_json(text)))
    except ClientError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{rate}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
