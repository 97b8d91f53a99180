"""A line in the log for each transaction that holds readers up for too long: who it is, since when, what to do.

Each leader tells of its own partitions. The transactional id is named where its coordinator is on this broker; a
transaction that no coordinator has open there hangs, and only an operator ends it.
"""

import logging
from datetime import UTC, datetime
from typing import Final

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.coordinator.shards import Shards
from odradek.broker.partitions.late_transactions import HeldUp, Late, Told, held_up, late_ms
from odradek.broker.partitions.table import Partitions
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.transaction import Transaction
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe

logger = logging.getLogger(__name__)

LOOKED_EVERY_MS: Final = 60_000
LOOKED_AT_TOGETHER: Final = 100
"""So many partitions are looked at in one turn of the loop."""
MS_PER_MINUTE: Final = 60_000


class LateWarnings:
    """Those of one broker."""

    def __init__(
        self,
        partitions: Partitions,
        shards: Shards[TransactionMachine],
        config: BrokerConfig,
        environment: Environment,
    ) -> None:
        self._partitions = partitions
        self._shards = shards
        self._config = config
        self._environment = environment
        self._told = Told()

    async def run(self) -> None:
        """Looks every minute; does not return."""
        while True:
            await self._environment.sleep(LOOKED_EVERY_MS)
            await self.look()

    async def look(self) -> None:
        """Tells of what is late and due to be told of."""
        now_ms, late = self._environment.now_ms(), list[HeldUp]()
        for number, partition in enumerate(list(self._partitions)):
            if number % LOOKED_AT_TOGETHER == LOOKED_AT_TOGETHER - 1:
                await breathe()
            held = held_up(partition) if partition.is_leader else None
            if held is not None and held.age_ms(now_ms) > late_ms(self._config):
                late.append(held)
        for each in self._told.due(late, now_ms):
            logger.warning("%s", warning(each, self._known(each.worst.txn.producer_id), now_ms))

    def _known(self, producer_id: int) -> tuple[str, Transaction] | None:
        """What a coordinator on this broker has of it."""
        for shard in self._shards.all:
            if shard.state is ShardState.ACTIVE:
                for transactional_id, transaction in shard.machine.transactions:
                    if transaction.producer_id == producer_id:
                        return transactional_id, transaction
        return None


def warning(late: Late, known: tuple[str, Transaction] | None, now_ms: int) -> str:
    """The line. `known`: the transactional id and what its coordinator has of it."""
    held = late.worst
    opened = datetime.fromtimestamp(held.txn.opened_ms / 1000, UTC)
    others = f" and {late.partition_count - 1} other partitions" if late.partition_count > 1 else ""
    return (
        f"{held.partition.name}{others}: readers of read_committed wait at offset {held.txn.first_offset}, "
        f"{held.behind} offsets behind, for a transaction that is open since {opened:%Y-%m-%dT%H:%M:%SZ}, "
        f"{held.age_ms(now_ms) // MS_PER_MINUTE} minutes: producer id {held.txn.producer_id}, epoch {held.txn.epoch}, "
        f"{_advice(held, known)}"
    )


def _advice(held: HeldUp, known: tuple[str, Transaction] | None) -> str:
    txn = held.txn
    if known is None:
        return (
            "of a transactional id that is not coordinated here: `odradek transactions list --producer-id "
            f"{txn.producer_id}` names it; if there is none the transaction hangs, and `odradek transactions abort "
            f"{held.partition.name} --start-offset {txn.first_offset}` ends it"
        )
    transactional_id, transaction = known
    who = f"transactional id {transactional_id!r}, which is {transaction.state.text}"
    if transaction.state.is_prepared:
        return f"{who}: its end is decided, and the marker is tried again until the partition takes it"
    if (held.partition.topic, held.partition.index) not in transaction.partitions:
        return (
            f"{who}, without this partition: it hangs, and `odradek transactions abort {held.partition.name} "
            f"--start-offset {txn.first_offset}` ends it"
        )
    phases = ""
    if transaction.is_two_phase:
        phases = ", in two phases and without a time-out: what decides about it has to end it"
    return (
        f"{who}{phases}; `odradek transactions describe {transactional_id}` shows it, `odradek transactions abort "
        f"--transactional-id {transactional_id} --execute` ends it"
    )
