"""Read, process, write, exactly once: each order becomes one payment, whoever crashes, comes or goes meanwhile.

    python exactly_once.py [SERVERS [PROTOCOL [INSTANCE]]]

PROTOCOL: of the group, classic (the default) or consumer. INSTANCE: makes the member a static one. Start it as often as
the topic has partitions, each with another INSTANCE.
"""

import asyncio
import sys

from odradek import ClientError, Consumer, ConsumerConfig, Producer


async def main(servers: str, protocol: str = "classic", instance: str | None = None) -> None:
    async with Producer(servers) as producer:
        await producer.send_batch("orders", [b"order %d" % number for number in range(1_000)])
    config = ConsumerConfig.from_dict(
        {
            "bootstrap_servers": servers,
            "group_id": "payments",
            "group_protocol": protocol,
            "group_instance_id": instance,
            "topics": "orders",
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
        }
    )
    transactional_id = f"payments-{instance or '1'}"  # one for each process, and the same when it is started again
    async with Consumer(config=config) as consumer, Producer(servers, transactional_id=transactional_id) as producer:
        while count := await pay(consumer, producer):
            print(f"{count} orders paid")


async def pay(consumer: Consumer, producer: Producer) -> int:
    """Pays some orders in one transaction; none are left where it returns 0."""
    while True:
        try:
            async with producer.transaction(consumer=consumer) as txn:
                batch = await consumer.get_batch(max_records=500, timeout_ms=5_000)
                await txn.send_batch("payments", [b"paid: " + record.value for record in batch.records])
            return len(batch)
        except ClientError as error:
            if error.fatal:
                raise  # another process has the transactional id, or a right is missing
            print(f"aborted, and read again: {error}")
            await asyncio.sleep(1)


if __name__ == "__main__":
    asyncio.run(main(*(sys.argv[1:] or ["localhost:9092"])))
