"""Nobody looks at single records. What could not be delivered is reported when the producer closes, or by `flush()`."""

import asyncio
import sys

from odradek import Producer, UndeliveredRecords

COUNT = 10_000


async def main(bootstrap_servers: str) -> None:
    try:
        async with Producer(bootstrap_servers, linger_ms=20) as producer:
            for number in range(COUNT):
                await producer.send("clicks", b"click %d" % number)
    except UndeliveredRecords as why:
        sys.exit(f"{why.count} of {COUNT} clicks were not delivered: {why}")
    print(f"{COUNT} clicks delivered")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"))
