"""Checkpoints of several data directories: each is written where there is news, and one that fails stops no other."""

import errno

import pytest

from odradek.broker.log.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from tests.broker.failing_disk import FailingDisk
from tests.broker.support import append, batch, make_topic, running_broker

AB = ("a", "b")


async def test_offsets_are_written_where_their_logs_lie_and_only_if_they_are_news() -> None:
    disk = FailingDisk()
    async with running_broker(disk=disk, data_dirs=AB) as context:
        await make_topic(context, "orders", 3)
        partitions, written = context.partitions, context.partitions.written
        for index in range(3):
            append(partitions.leader("orders", index), batch(b"x"))
        await written.write_high_watermarks()
        assert read_offsets(disk, f"a/{HIGH_WATERMARKS}") == {("orders", 0): 1, ("orders", 2): 1}
        assert read_offsets(disk, f"b/{HIGH_WATERMARKS}") == {("orders", 1): 1}
        assert not disk.exists(f"a/{RECOVERY_POINTS}")
        disk.remove(f"a/{HIGH_WATERMARKS}")
        append(partitions.leader("orders", 1), batch(b"x"))
        await written.write_high_watermarks()
        assert read_offsets(disk, f"b/{HIGH_WATERMARKS}") == {("orders", 1): 2}
        assert not disk.exists(f"a/{HIGH_WATERMARKS}"), "there was nothing new"


async def test_a_directory_that_cannot_be_written_is_told_of_and_stops_no_other() -> None:
    disk = FailingDisk()
    async with running_broker(disk=disk, data_dirs=AB) as context:
        await make_topic(context, "orders", 2)
        for index in range(2):
            append(context.partitions.leader("orders", index), batch(b"x"))
            await context.partitions.leader("orders", index).durability.sync_all()
        disk.fail("a", errno.ENOSPC)
        with pytest.raises(OSError, match="No space left"):
            await context.partitions.written.write_recovery_points()
        assert read_offsets(disk, f"b/{RECOVERY_POINTS}") == {("orders", 1): 1}
        disk.mend("a")
