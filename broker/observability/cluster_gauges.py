"""What a broker tells of its cluster on the metrics page: offline partitions, brokers, the store, clocks. Pure.

Names are Kafka's, as its JMX exporter writes them, where Kafka has such a gauge.
"""

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER

Gauge = tuple[str, str, float]
"""Name, meaning and value."""


def cluster_gauges(
    image: ClusterImage, *, is_controller: bool, is_store_silent: bool, clock_offset_ms: float
) -> list[Gauge]:
    """Of one broker. Partitions without a leader are counted by the controller alone, so that a sum over all brokers is
    their number."""
    return [
        ("kafka_controller_kafkacontroller_activecontrollercount", "Whether this broker decides", is_controller),
        (
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            "Partitions without a leader, by the controller's count",
            image.led_by(NO_LEADER) if is_controller else 0,
        ),
        ("kafka_controller_kafkacontroller_activebrokercount", "Brokers that are there", len(image.brokers)),
        (
            "kafka_controller_kafkacontroller_fencedbrokercount",
            "Brokers that are registered, and not there",
            len(image.registered) - len(image.brokers),
        ),
        ("odradek_metadata_store_silent", "Whether the metadata store does not answer this broker", is_store_silent),
        (
            "odradek_clock_offset_seconds",
            "By how much this machine's clock is ahead of the controller's",
            clock_offset_ms / 1000.0,
        ),
    ]
