"""`ProducerConfig`: batches, acknowledgement, idempotence, partitioner, serializers."""
# ruff: noqa: RUF009  (the calls make fields of the dataclass, as `dataclasses.field` does)

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, cast

from odradek.client.arguments import is_coroutine_function, is_plain_callable
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.configuration.settings import (
    INT_MAX,
    Accepting,
    DefaultInt,
    Kind,
    choice,
    converted,
    flag,
    is_default,
    optional_flag,
    optional_text,
    rows,
    thing,
    whole,
)
from odradek.client.errors.client_errors import ConfigError
from odradek.client.producer.hooks.interceptors import Interceptor, are_interceptors
from odradek.client.producer.hooks.partitioner import Partitioner
from odradek.client.producer.hooks.serialization import Serializer
from odradek.client.producer.results.delivery import Callback
from odradek.protocol.batches.compression import Codec

__all__ = ["ProducerConfig"]

logger = logging.getLogger(__name__)

AcksSetting = Literal[0, 1, -1, "all", "-1", "0", "1"]
CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]

IN_FLIGHT_MAX_IDEMPOTENT: Final = 5
"""A broker remembers so many batches of a producer and partition, by which it knows a repeated one."""
_ACKS: Final[dict[object, int]] = {"all": -1, "-1": -1, "0": 0, "1": 1, -1: -1, 0: 0, 1: 1}
_ACKS_EXPECTED: Final = "0, 1, -1 or 'all'"


def _acks(value: object) -> int:
    folded = value.strip().lower() if isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(folded, str | int) or folded not in _ACKS:
        raise ValueError(_ACKS_EXPECTED)
    return _ACKS[folded]


def _is_partitioner(value: object) -> bool:
    on_new_batch = getattr(value, "on_new_batch", None)  # see NewBatchListener
    return is_plain_callable(getattr(value, "partition", None)) and not is_coroutine_function(on_new_batch)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProducerConfig(ClientConfig):
    """The settings of a producer."""

    NAME: ClassVar[str] = "producer"

    acks: Accepting[AcksSetting, int] = converted(
        _acks,
        "Who must have a batch before it is acknowledged: nobody, the leader, or all replicas in sync (`all`, -1).",
        default="all",
        expected=_ACKS_EXPECTED,
    )
    enable_idempotence: bool | None = optional_flag(
        "Whether a batch that is sent again is written once only. Unset: if `acks` and `retries` allow it."
    )
    max_in_flight_requests_per_connection: int = whole(
        5, "So many requests may be unanswered; at most 5 with idempotence.", minimum=1, maximum=INT_MAX
    )
    delivery_timeout_ms: int = whole(
        120_000,
        "An accepted record has ended after so long; at least `linger_ms` + `request_timeout_ms`.",
        maximum=INT_MAX,
        unit="ms",
    )
    linger_ms: int = whole(5, "How long a batch that is not full waits for more records.", unit="ms")
    batch_size: int = whole(
        16_384, "A batch is full with so many bytes; 0: one record in each.", maximum=INT_MAX, unit="bytes"
    )
    buffer_memory: int = whole(33_554_432, "Bytes of accepted records that have not ended.", unit="bytes")
    max_block_ms: int = whole(60_000, "How long `send` waits for room and for metadata.", unit="ms")
    max_request_size: int = whole(1_048_576, "Largest request, and largest record.", maximum=INT_MAX, unit="bytes")
    compression_type: CompressionType = choice("none", CompressionType, "Codec of the batches.")
    compression_gzip_level: int = whole(-1, "-1: what zlib thinks best, 6.", minimum=1, maximum=9, also=(-1,))
    compression_lz4_level: int = whole(9, "9 is the fast compressor, as in Kafka.", minimum=1, maximum=17)
    compression_zstd_level: int = whole(3, "Higher is smaller and slower.", minimum=-131_072, maximum=22)
    partitioner: Partitioner | None = thing(
        None,
        "Chooses the partition of every record that does not name its own.",
        expected="an object with a method `partition` (odradek.Partitioner), no coroutine function",
        check=_is_partitioner,
        kafka_name="partitioner.class",
    )
    partitioner_adaptive_partitioning_enable: bool = flag(
        True, "Records without a key go less to partitions whose brokers are slow (KIP-794)."
    )
    partitioner_availability_timeout_ms: int = whole(
        0, "And not at all to brokers that took nothing for so long; 0: switched off.", unit="ms"
    )
    partitioner_ignore_keys: bool = flag(False, "Records with a key are spread as those without.")
    key_serializer: Serializer | None = thing(
        None,
        "Makes bytes of keys; without one they must be bytes.",
        expected="a callable (topic, key) -> bytes or None, no coroutine function",
    )
    value_serializer: Serializer | None = thing(
        None,
        "Makes bytes of values; without one they must be bytes.",
        expected="a callable (topic, value) -> bytes or None, no coroutine function",
    )
    interceptors: Accepting[Sequence[Interceptor], tuple[Interceptor, ...]] = converted(
        are_interceptors,
        "See each record before it is serialized, and when it has ended.",
        default=(),
        kind=Kind.OBJECT,
        expected="a list of Interceptor objects",
        kafka_name="interceptor.classes",
    )
    on_delivery: Callback | None = thing(
        None,
        "Called with the Delivery of each record that has ended.",
        expected="a callable (delivery), no coroutine function",
        is_ours=True,
    )
    transactional_id: str | None = optional_text(
        "The name under which the producer has transactions; it implies idempotence, and fences whoever had it before."
    )
    transaction_timeout_ms: int = whole(
        60_000,
        "The coordinator aborts a transaction that is open for so long; at most its `transaction.max.timeout.ms`.",
        minimum=1,
        maximum=INT_MAX,
        unit="ms",
    )
    transaction_two_phase_commit_enable: bool = flag(
        False, "Transactions have no time-out, and may be prepared here and ended elsewhere (KIP-939)."
    )
    close_timeout_ms: int = whole(
        30_000, "How long closing waits until all accepted records have ended.", unit="ms", is_ours=True
    )

    @property
    def is_idempotent(self) -> bool:
        """Whether the producer is idempotent: as `enable_idempotence` says or, where it is unset, if it can be."""
        if self.enable_idempotence is not None:
            return self.enable_idempotence
        return self.acks == -1 and self.retries > 0

    @property
    def codec(self) -> Codec:
        return Codec[self.compression_type.upper()]

    @property
    def compression_level(self) -> int | None:
        """The level of the codec. None: its default."""
        name = f"compression_{self.compression_type}_level"
        row = rows(ProducerConfig).get(name)
        if row is None:
            return None
        level = cast(int, getattr(self, name))
        return None if level == row.default else int(level)

    def _resolve(self) -> None:
        self._resolve_transactions()
        self._resolve_idempotence()
        self._resolve_delivery_timeout()

    def _resolve_transactions(self) -> None:
        """ProducerConfig.java `postProcessAndValidateIdempotenceConfigs`: a transaction needs idempotence."""
        if self.transactional_id is None:
            if self.transaction_two_phase_commit_enable:
                raise ConfigError(
                    "transaction_two_phase_commit_enable=True does not go without a transactional_id",
                    settings=("transaction_two_phase_commit_enable", "transactional_id"),
                    hint="Give the producer a transactional_id of its own.",
                )
            return
        if not self.transactional_id:
            hint = "Leave it out for a producer without transactions."
            raise ConfigError("transactional_id is empty", settings=("transactional_id",), hint=hint)
        against: list[str] = []
        if self.enable_idempotence is False:
            against.append("enable_idempotence=False")
        if self.retries == 0:
            against.append("retries=0")
        if self.acks != -1:
            against.append(f"acks={self.acks}")
        if against:
            raise ConfigError(
                f"transactional_id={self.transactional_id!r} does not go with {' and '.join(against)}",
                settings=("transactional_id", *(each.partition("=")[0] for each in against)),
                hint="Leave acks, retries and enable_idempotence as they are, or use no transactions.",
            )

    def _resolve_idempotence(self) -> None:
        """KIP-679, and ProducerConfig.java `postProcessAndValidateIdempotenceConfigs` of 4.x."""
        if self.enable_idempotence is False:
            return
        against: list[str] = []
        if self.retries == 0:
            against.append("retries=0")
        if self.acks != -1:
            against.append(f"acks={self.acks}")
        if against and self.enable_idempotence:
            raise ConfigError(
                f"enable_idempotence=True does not go with {' and '.join(against)}",
                settings=("enable_idempotence", *(each.partition("=")[0] for each in against)),
                hint="Set acks='all' and leave retries as it is, or set enable_idempotence=False.",
            )
        if self.max_in_flight_requests_per_connection > IN_FLIGHT_MAX_IDEMPOTENT:
            raise ConfigError(
                f"max_in_flight_requests_per_connection={self.max_in_flight_requests_per_connection} does not go with "
                f"enable_idempotence, which is on unless it is switched off and allows {IN_FLIGHT_MAX_IDEMPOTENT}",
                settings=("max_in_flight_requests_per_connection", "enable_idempotence"),
                hint=f"Set it to {IN_FLIGHT_MAX_IDEMPOTENT} or less, or set enable_idempotence=False.",
            )
        if against:
            logger.info("%s: idempotence is switched off, because of %s", self.client_id, " and ".join(against))

    def _resolve_delivery_timeout(self) -> None:
        """KIP-91, and KafkaProducer.java `configureDeliveryTimeout`."""
        least_ms = min(self.linger_ms + self.request_timeout_ms, INT_MAX)
        if self.delivery_timeout_ms >= least_ms:
            return
        if not is_default(self.delivery_timeout_ms):
            raise ConfigError(
                f"delivery_timeout_ms={self.delivery_timeout_ms} is less than linger_ms={self.linger_ms} + "
                f"request_timeout_ms={self.request_timeout_ms}",
                settings=("delivery_timeout_ms", "linger_ms", "request_timeout_ms"),
                hint=f"Set it to {least_ms} or more, or lower the other two.",
            )
        logger.warning(
            "%s: delivery_timeout_ms is raised to linger_ms + request_timeout_ms=%d", self.client_id, least_ms
        )
        self._set("delivery_timeout_ms", DefaultInt(least_ms))
