"""Each record is awaited: when the program goes on, the record is on every replica that is in sync."""

import asyncio
import sys

from odradek import Producer


async def main(bootstrap_servers: str) -> None:
    async with Producer(bootstrap_servers, linger_ms=0) as producer:
        for number in range(10):
            delivery = await producer.send("orders", b"order %d" % number, key=b"customer-1")
            ack = await delivery
            print(f"order {number} is at {ack.topic}-{ack.partition}, offset {ack.offset}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"))
