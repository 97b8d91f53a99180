"""A callback learns how each record ended, without a task or an await for it.

`send_nowait` may be called by any code that runs in the producer's event loop, such as callbacks and functions that
are not `async`; other threads have `send_threadsafe`.
"""

import asyncio
import sys
from collections import Counter

from odradek import Delivery, Producer

delivered: Counter[int] = Counter()


def count(delivery: Delivery) -> None:
    if (error := delivery.exception()) is None:
        delivered[delivery.result().partition] += 1
    else:
        print(f"not delivered: {error}", file=sys.stderr)


async def main(bootstrap_servers: str) -> None:
    async with Producer(bootstrap_servers, on_delivery=count) as producer:
        await producer.prepare("clicks")  # `send_nowait` does not wait until it knows the topic
        for number in range(1_000):
            producer.send_nowait("clicks", b"click %d" % number, key=b"user %d" % (number % 50))
    print(f"{delivered.total()} clicks delivered, to {len(delivered)} partition(s)")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"))
