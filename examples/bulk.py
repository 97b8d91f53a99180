"""Many records at once, from any iterable: the fastest way. It returns when all of them are acknowledged."""

import asyncio
import sys
from collections.abc import Iterator

from odradek import Producer


def readings() -> Iterator[bytes]:
    for number in range(100_000):
        yield b'{"sensor": %d, "reading": %d}' % (number % 100, number)


async def main(bootstrap_servers: str) -> None:
    async with Producer(bootstrap_servers, batch_size=64 * 1024, compression_type="lz4") as producer:
        acks = await producer.send_batch("readings", readings())
    last = acks[-1]
    print(f"{len(acks)} readings delivered; the last one is at {last.topic}-{last.partition}, offset {last.offset}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"))
