"""What the answer to a repeated batch tells of its records, on a scripted cluster in virtual time."""

from typing import Any

import pytest

from odradek.client.producer.producer import Producer
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.client.broker_faults import disconnect_after, edited
from tests.client.scripted_broker import scripted_cluster

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(("answered_ms", "expected_ms"), [(3_000, [1_000, 3_000, 2_000]), (7_000, [7_000] * 3)])
async def test_a_duplicate_is_acknowledged_with_the_timestamps_of_its_records(
    answered_ms: int, expected_ms: list[int]
) -> None:
    """Kafka answers a duplicate's largest timestamp where else the time of the append stands (UnifiedLog.append)."""

    def as_kafka_does(response: ProduceResponse) -> None:
        response.responses[0].partition_responses[0].log_append_time_ms = answered_ms

    settings: dict[str, Any] = {"linger_ms": 10}
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        cluster.on(ProduceRequest, disconnect_after())
        cluster.on(ProduceRequest, edited(as_kafka_does), nth=2)
        async with Producer(cluster.bootstrap, environment=lambda: cluster.environment, **settings) as producer:
            acks = await producer.send_batch("orders", [b"1", b"2", b"3"], timestamps_ms=[1_000, 3_000, 2_000])
    assert [ack.timestamp_ms for ack in acks] == expected_ms
    assert cluster.values("orders") == [b"1", b"2", b"3"]
