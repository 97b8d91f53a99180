"""Writes in-sync sets to the metadata store: what the leader decides about its followers.

A write names what it relies on, and fails as a whole once any of it has moved:

| condition | why |
|---|---|
| the partition's key, at the revision known here | somebody else decided meanwhile; and it holds the leader epoch |
| this broker's registration | a leader that was restarted must not write for its former life |
| the registration of each broker that is added, at the epoch of its fetches | restarted since, it may lack a part |
| no `/stopping/` of a broker that is added | it would be in sync and gone |

**No answer** says nothing: the write may have happened, or may happen yet. So the same write is repeated until there is
an answer. All attempts expect the same revision, so one of them at most is ever applied, and a conflict says that the
others never will be. Until then the additions count (`Replicas.maximal_isr`) and the removals do not.

**Another leader epoch** found in the store, before the image tells of it, ends leadership at once: an addition without
an answer may have been stored before it, and whoever was added may lead.

Writes go one after the other; what comes together goes together, as many partitions as a commit has conditions for.
One that is refused is looked at again in a moment. Without a store nothing is written, and a leader goes on with the
in-sync set that is stored.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState, broker_key, decode_partition, partition_key, stopping_key
from odradek.broker.cluster.partition_changes import changed, with_isr
from odradek.broker.cluster.store import OPERATIONS_MAX, Conflict, Entry, MetadataStore, StoreClosed, Txn
from odradek.broker.replica.partition import Partition
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

RETRY_MS = 100.0
RETRY_MS_MAX = 1000.0


@dataclass(frozen=True, slots=True)
class IsrWrite:
    """A partition, the state that it should get, and the epochs of the brokers that are added."""

    partition: Partition
    before: PartitionState
    after: PartitionState
    added: tuple[tuple[int, int], ...]

    @property
    def key(self) -> str:
        return partition_key(self.partition.topic, self.partition.index)


class IsrWriter:
    """The in-sync writes of one broker."""

    def __init__(
        self,
        store: MetadataStore,
        node_id: int,
        environment: Environment,
        tasks: Tasks,
        image: Callable[[], ClusterImage],
        broker_epoch: Callable[[], int],
    ) -> None:
        """`broker_epoch`: of this broker's present registration."""
        self._store = store
        self._node_id = node_id
        self._environment = environment
        self._tasks = tasks
        self._image = image
        self._broker_epoch = broker_epoch
        self._due: dict[Partition, None] = {}
        self._is_writing = False
        self._is_stopped = False
        self.is_waiting_for_store = False
        """Whether the last attempt got no answer: in-sync sets stay as they are stored."""

    def wake(self, partition: Partition) -> None:
        """The partition's in-sync set may have to change."""
        self._due[partition] = None
        if not self._is_writing and not self._is_stopped:
            self._is_writing = True
            self._tasks.start(self._work(), "write in-sync sets")

    def stop(self) -> None:
        """Nothing is written any more, but for what is under way."""
        self._is_stopped = True

    async def _work(self) -> None:
        try:
            while self._due and not self._is_stopped:
                due, self._due = list(self._due), {}
                writes = [write for partition in due if (write := self._write_for(partition)) is not None]
                while writes:
                    count = _fitting(writes)
                    await self._store_all(writes[:count])
                    writes = writes[count:]
        except StoreClosed:
            return
        finally:
            self._is_writing = False

    def _write_for(self, partition: Partition) -> IsrWrite | None:
        """What is to be written for the partition now. From here on its additions count."""
        wanted, stored = partition.wanted_isr(), partition.state
        if wanted is None or stored is None:
            return None
        replicas = partition.replicas
        added = tuple(broker_id for broker_id in wanted if broker_id not in replicas.isr)
        after = changed(stored, with_isr(stored, wanted, partition.config.min_insync_replicas))
        if after is stored:
            return None
        for broker_id in replicas.isr:
            if broker_id not in wanted and replicas.has_lost(broker_id, partition.high_watermark.value):
                logger.error(
                    "%r: broker %d, which is in sync, asks for offset %d, and had all up to %d: it has lost data, and "
                    "leaves; look at its device, and whether its data directory is an older copy",
                    *(partition, broker_id, replicas.followers[broker_id].log_end_offset),
                    partition.high_watermark.value,
                )
        replicas.pending_isr = added
        epochs = tuple((broker_id, replicas.followers[broker_id].broker_epoch) for broker_id in added)
        return IsrWrite(partition, stored, after, epochs)

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a broker may come into an in-sync set, as far as it is known here."""
        image = self._image()
        return image.is_usable(broker_id) and image.brokers[broker_id].epoch == broker_epoch

    def live_replicas(self, partition: Partition) -> Collection[int]:
        """Those on brokers that are there, but for what lies in a data directory that cannot be used: it moves no log
        start, and has to join again when it is back."""
        brokers, state = self._image().brokers, partition.state
        offline = () if state is None else state.offline
        return [each for each in partition.replicas.assigned if each in brokers and each not in offline]

    async def _store_all(self, writes: Sequence[IsrWrite]) -> None:
        """Stores them together if they can be, else each by itself."""
        revision = await self._commit(writes)
        if revision is not None:
            for write in writes:
                self._stored(write, replace(write.after, revision=revision))
        elif len(writes) == 1:
            await self._refused(writes[0])
        else:
            for write in writes:
                await self._store_all([write])

    async def _commit(self, writes: Sequence[IsrWrite]) -> int | None:
        """The revision at which all were stored; None where a condition does not hold any more, and none was."""
        expect = {broker_key(self._node_id): self._broker_epoch()}
        for write in writes:
            expect[write.key] = write.before.revision
            for broker_id, broker_epoch in write.added:
                if expect.setdefault(broker_key(broker_id), broker_epoch) != broker_epoch:
                    return None  # two partitions know different lives of it: one of them is wrong
                expect[stopping_key(broker_id)] = 0
        txn = Txn(expect=expect, put={write.key: write.after.encode() for write in writes})
        delay_ms = RETRY_MS
        while True:
            try:
                revision = await self._store.commit(txn)
            except Conflict:
                self._heard_of_store()
                return None
            except OSError as error:
                self._missed_store(error)
                await self._environment.sleep(delay_ms)
                delay_ms = min(2 * delay_ms, RETRY_MS_MAX)
            else:
                self._heard_of_store()
                return revision

    async def _refused(self, write: IsrWrite) -> None:
        """Something moved. What is stored now is read, and the partition is looked at again."""
        entry = await self._read(write.key)
        partition = write.partition
        if entry is None:
            self._deposed(write)
            return
        self._stored(write, decode_partition(entry.value, partition.topic, partition.index, entry.revision))
        logger.info("%r: the in-sync set was not changed, for the metadata has moved on", partition)
        self._tasks.start(self._look_again(partition), f"look again who is in sync in {partition!r}")

    async def _look_again(self, partition: Partition) -> None:
        """A follower that has nothing to fetch says nothing that would have it looked at."""
        await self._environment.sleep(RETRY_MS)
        self.wake(partition)

    async def _read(self, key: str) -> Entry | None:
        while True:
            try:
                return (await self._store.read(key)).entries.get(key)
            except OSError as error:
                self._missed_store(error)
                await self._environment.sleep(RETRY_MS)

    def _stored(self, write: IsrWrite, state: PartitionState) -> None:
        """The answer is known: nothing is pending any more."""
        partition = write.partition
        if partition.leader_epoch != write.before.leader_epoch:
            return  # another epoch has begun, with replicas of its own
        if state.topic_id != partition.topic_id or state.leader_epoch != partition.leader_epoch:
            self._deposed(write)
            return
        partition.replicas.pending_isr = ()
        partition.learn(state)
        if state.partition_epoch == write.after.partition_epoch and state.isr != write.before.isr:
            logger.info("%r: in sync are %s, were %s", partition, list(state.isr), list(write.before.isr))
        partition.acknowledgements.update()

    def _deposed(self, write: IsrWrite) -> None:
        """The store has begun another leader epoch, or deleted the topic, and our image will say so. Until then nothing
        is acknowledged any more: the addition may have been stored before, so the set that counts is not known."""
        partition = write.partition
        if partition.leader_epoch == write.before.leader_epoch and partition.is_leader:
            logger.info("%r: this broker was replaced as its leader", partition)
            partition.resign()

    def _missed_store(self, error: OSError) -> None:
        if not self.is_waiting_for_store:
            logger.warning("in-sync sets cannot be written while the metadata store does not answer: %s", error)
        self.is_waiting_for_store = True

    def _heard_of_store(self) -> None:
        if self.is_waiting_for_store:
            logger.info("the metadata store answers again")
        self.is_waiting_for_store = False


def _fitting(writes: Sequence[IsrWrite]) -> int:
    """How many of the writes, the first ones, fit into one commit."""
    conditions = 1  # our own registration
    added: set[int] = set()
    for count, write in enumerate(writes):
        new = {broker_id for broker_id, _ in write.added} - added
        conditions += 1 + 2 * len(new)
        if conditions > OPERATIONS_MAX and count:
            return count
        added |= new
    return len(writes)
