"""Interceptors see every record before it is serialized, and learn how it ended: here to trace orders."""

import asyncio
import sys
import uuid

from odradek import Ack, ClientError, Interceptor, Producer, ProducerRecord, serialize_json, serialize_str


class Tracing(Interceptor):
    """Gives each record an id in a header, and counts."""

    def __init__(self) -> None:
        self.sent = 0
        self.acknowledged = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.sent += 1
        return record._replace(headers=[*record.headers, ("trace-id", uuid.uuid4().bytes)])

    def on_acknowledgement(self, ack: Ack, error: ClientError | None) -> None:
        if error is None:
            self.acknowledged += 1


async def main(bootstrap_servers: str) -> None:
    tracing = Tracing()
    async with Producer(
        bootstrap_servers, interceptors=[tracing], key_serializer=serialize_str, value_serializer=serialize_json
    ) as producer:
        for number in range(10):
            await producer.send("orders", {"number": number, "item": "Odradek"}, key="customer-1")
    print(f"{tracing.sent} orders sent, {tracing.acknowledged} acknowledged")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"))
