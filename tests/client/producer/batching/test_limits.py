"""The accumulator follows the settings of its producer: each is where it belongs."""

from odradek.client.producer.batching.limits import Limits
from odradek.client.producer.config import ProducerConfig
from odradek.protocol.batches.compression import Codec


def test_limits_are_those_of_the_configuration() -> None:
    config = ProducerConfig(
        bootstrap_servers="localhost:9092",
        batch_size=1234,
        linger_ms=7,
        delivery_timeout_ms=50_000,
        request_timeout_ms=2000,
        retry_backoff_ms=11,
        retry_backoff_max_ms=222,
        max_request_size=54_321,
        max_in_flight_requests_per_connection=1,
        compression_type="lz4",
        partitioner_adaptive_partitioning_enable=False,
    )
    assert Limits.of(config) == Limits(1234, 7, 50_000, 11, 222, 54_321, True, Codec.LZ4, False)
    assert not Limits.of(ProducerConfig(bootstrap_servers="localhost:9092")).is_serial
