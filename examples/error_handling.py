"""What can go wrong, and where it shows. Every error is a ClientError: it says whether trying again may help."""

import asyncio
import sys

from odradek import BatchError, BufferFull, ClientError, Producer, RecordTooLarge


async def main(bootstrap_servers: str) -> None:
    async with Producer(bootstrap_servers, delivery_timeout_ms=60_000, max_request_size=100_000) as producer:
        # `send` raises as long as the record is not accepted. Then nothing of it is sent.
        try:
            await producer.send("orders", bytes(200_000))
        except RecordTooLarge as why:
            print(f"refused: {why}")

        # Once it is accepted, its delivery tells, after `delivery_timeout_ms` at the latest.
        delivery = await producer.send("orders", b"an order")
        try:
            print(f"delivered at offset {(await delivery).offset}")
        except ClientError as why:
            print(f"not delivered, {'try again later' if why.retriable else 'for good'}: {why}")

        # `send_nowait` raises where `send` would wait, here for room.
        for number in range(1_000):
            try:
                producer.send_nowait("orders", b"order %d" % number)
            except BufferFull:
                await producer.send("orders", b"order %d" % number)
        await producer.flush()

        # A bulk says of each record what became of it.
        try:
            await producer.send_batch("orders", [b"small", bytes(200_000), b"small again"])
        except BatchError as failed:
            for index, error in failed.errors.items():
                print(f"record {index} of the bulk: {error}")
            print(f"record 2 of the bulk: delivered at offset {failed.acks[2].offset}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"))
