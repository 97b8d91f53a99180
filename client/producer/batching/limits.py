"""The settings of a producer that its accumulator follows, as plain numbers."""

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.batches.compression import Codec

if TYPE_CHECKING:  # it knows the event loop, which the accumulator does not
    from odradek.client.producer.config import ProducerConfig

__all__ = ["Limits"]


class Limits(NamedTuple):
    """In bytes and milliseconds."""

    batch_size: int
    linger_ms: float
    delivery_timeout_ms: float
    retry_backoff_ms: float
    retry_backoff_max_ms: float
    max_request_size: int
    is_serial: bool = False
    """One batch of a partition in flight at a time (max_in_flight_requests_per_connection=1)."""
    codec: Codec = Codec.NONE
    is_adaptive: bool = True
    """partitioner_adaptive_partitioning_enable."""
    is_transactional: bool = False

    @classmethod
    def of(cls, config: "ProducerConfig") -> "Limits":
        return cls(
            batch_size=config.batch_size,
            linger_ms=config.linger_ms,
            delivery_timeout_ms=config.delivery_timeout_ms,
            retry_backoff_ms=config.retry_backoff_ms,
            retry_backoff_max_ms=config.retry_backoff_max_ms,
            max_request_size=config.max_request_size,
            is_serial=config.max_in_flight_requests_per_connection == 1,
            codec=config.codec,
            is_adaptive=config.partitioner_adaptive_partitioning_enable,
            is_transactional=config.transactional_id is not None,
        )
