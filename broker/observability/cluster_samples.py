"""What a broker tells of its cluster: offline partitions, brokers, the store, clocks. Pure."""

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.sample import Sample


def cluster_samples(
    image: ClusterImage, *, is_controller: bool, is_store_silent: bool, clock_offset_ms: float
) -> list[Sample]:
    """Of one broker."""
    return [
        (rows.ACTIVE_CONTROLLERS, (), is_controller),
        (rows.OFFLINE_PARTITIONS, (), image.led_by(NO_LEADER) if is_controller else 0),
        (rows.ACTIVE_BROKERS, (), len(image.brokers)),
        (rows.FENCED_BROKERS, (), len(image.registered) - len(image.brokers)),
        (rows.STORE_SILENT, (), is_store_silent),
        (rows.CLOCK_OFFSET, (), clock_offset_ms / 1000.0),
    ]
