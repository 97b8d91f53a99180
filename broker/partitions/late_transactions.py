"""Which transactions hold readers of `isolation.level=read_committed` up, and for how long; one that has been open for
longer than any producer may ask for, and five minutes more, is late (KIP-664;
ProducerStateManager.hasLateTransaction). Pure.

Kafka counts from the last batch that the producer of the oldest transaction has appended, we from the first one: a
producer that never ends its transaction, and writes on, holds readers up as well.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.log.producers import OpenTxn
from odradek.broker.replica.partition import Partition

LATE_BUFFER_MS: Final = 5 * 60_000
"""Its coordinator aborts it when its time-out is over, and has so much time for that."""
TOLD_AGAIN_MS: Final = 10 * 60_000


def late_ms(config: BrokerConfig) -> int:
    """For how long a transaction may be open before it is late."""
    return config.transaction_max_timeout_ms + LATE_BUFFER_MS


class HeldUp(NamedTuple):
    """A partition led, and the transaction that its readers wait for."""

    partition: Partition
    txn: OpenTxn
    behind: int
    """So many offsets lie between the last stable offset and the high watermark."""

    def age_ms(self, now_ms: int) -> int:
        """How long the transaction has been open."""
        return max(0, now_ms - self.txn.opened_ms)


def held_up(partition: Partition) -> HeldUp | None:
    """None where no transaction is open."""
    oldest = partition.log.producers.oldest_open_txn
    if oldest is None:
        return None
    return HeldUp(partition, oldest, partition.high_watermark.value - partition.reader.last_stable_offset)


class Late(NamedTuple):
    """A transaction that is late, where its readers are furthest behind."""

    worst: HeldUp
    partition_count: int
    """In so many partitions readers wait for it."""


class Told:
    """Which late transactions were told of, and when."""

    __slots__ = ("_told_ms",)

    def __init__(self) -> None:
        self._told_ms: dict[tuple[int, int], int] = {}

    def due(self, late: Iterable[HeldUp], now_ms: int) -> Sequence[Late]:
        """Those to tell of now: each transaction once, and again after ten minutes. `late`: all that are."""
        worst: dict[tuple[int, int], Late] = {}
        for each in late:
            key = each.txn.producer_id, each.txn.epoch
            known = worst.get(key)
            if known is None:
                worst[key] = Late(each, 1)
            else:
                worst[key] = Late(max(known.worst, each, key=_behind), known.partition_count + 1)
        self._told_ms = {key: told_ms for key, told_ms in self._told_ms.items() if key in worst}
        due = [key for key in worst if now_ms - self._told_ms.get(key, now_ms - TOLD_AGAIN_MS) >= TOLD_AGAIN_MS]
        self._told_ms |= dict.fromkeys(due, now_ms)
        return [worst[key] for key in due]


def _behind(held: HeldUp) -> int:
    return held.behind
