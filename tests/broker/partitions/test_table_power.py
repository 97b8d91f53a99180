"""After a loss of power a replica's log goes back to what is certain, if others have the rest."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.directories.checkpoints import Checkpoints
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.log import Log
from odradek.broker.log.segment import LOG_SUFFIX, segment_path
from odradek.broker.partitions.table import Partitions
from odradek.broker.replica.leadership import Leadership
from tests.broker.alone import hosted, roles_alone
from tests.broker.support import DATA_DIR, append, batch, make_topic, running_broker


@pytest.mark.parametrize(("isr", "is_cut"), [((1,), True), ((0,), False)], ids=["others are in sync", "nobody else is"])
async def test_power_loss_truncates_a_log_to_what_is_certain_if_others_have_the_rest(
    isr: tuple[int, ...], is_cut: bool
) -> None:
    async with after_a_loss_of_power(isr) as (partitions, load):
        load()
        assert partitions.find("orders", 0).log.log_end_offset == (3 if is_cut else 5)
        assert partitions.gone_back() == [DATA_DIR]


@pytest.mark.parametrize(("isr", "kept"), [((1,), (0, 0)), ((0,), (3, 5))], ids=["others have it", "nobody else"])
async def test_after_power_loss_of_its_first_segment_no_replica_fetches_from_behind_it(
    isr: tuple[int, ...], kept: tuple[int, int]
) -> None:
    """The name of a new file is durable when its directory was synced: a later file may be there, and it not. Nor was
    anything deleted, as far as the checkpoints know. The replica that followed from there would be in sync without what
    is missing."""
    async with after_a_loss_of_power(isr, takes_first_segment=True) as (partitions, load):
        load()
        log = partitions.find("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == kept


async def test_after_power_loss_a_log_that_cannot_be_opened_is_truncated_once_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, nobody may write down that the start has come so far: the next one has to look again."""

    def fail(*_: object) -> Log:
        raise OSError("not now")

    monkeypatch.setattr("odradek.broker.partitions.table.RETRY_MS", 0)
    async with after_a_loss_of_power((1,)) as (partitions, load):
        with monkeypatch.context() as patch:
            patch.setattr(DataDirectory, "open_log", fail)
            load()
        assert partitions.gone_back() == []
        assert partitions.find("orders", 0).log.log_end_offset == 3
        assert partitions.gone_back() == [DATA_DIR]


@asynccontextmanager
async def after_a_loss_of_power(
    isr: tuple[int, ...], *, takes_first_segment: bool = False
) -> AsyncGenerator[tuple[Partitions, Callable[[], None]]]:
    """Five batches, three of them in the first segment. The checkpoint says that these are on the device; without it,
    that nothing is."""
    disk = MemoryDisk()
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", replicas=(0, 1), isr=(0,))
        for value in b"abcde":
            partition = context.partitions.leader("orders", 0)
            append(partition, batch(bytes([value])))
            if value == ord("c"):
                partition.log.roll(0)
        topic_id = context.metadata.image.topics["orders"].topic_id
    checkpoints = Checkpoints(disk, DATA_DIR)
    checkpoints.load()
    checkpoints.recovery_points["orders", 0] = 0 if takes_first_segment else 3
    checkpoints.writing_recovery_points()()
    if takes_first_segment:
        disk.remove(segment_path(f"{DATA_DIR}/orders-0", 0, LOG_SUFFIX))

    state = PartitionState(topic_id, (0, 1), isr, 1)
    async with running_broker() as other:
        roles = roles_alone(0, other.environment, other.tasks)
        directories = DataDirectories(disk, [DATA_DIR], other.environment, other.tasks)
        partitions = Partitions(directories, hosted(other.environment, other.tasks), other.config, roles, Leadership())
        image = ClusterImage(topics={"orders": TopicImage("orders", topic_id, (state,))})
        directories.first.lacks_the_newest = True
        yield partitions, lambda: partitions.load(image)
        partitions.close()
