"""What compaction needs: memory, a share of the device, and what it relies on to be on the device; and its end."""

import asyncio
import random
import threading

import pytest

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.partitions.cleaner import Cleaner
from odradek.broker.replica.replicas import Replicas
from odradek.runtime.environment import Environment
from odradek.testing.sim.world.losing_disk import ALL_IS_LOST, LosingDisk
from tests.broker.keeping import COMPACTED, DATA_DIR, DIRECTORY, Kept, compacted, keyed
from tests.broker.log.logs import Crash


# ---------------------------------------------------------------------------------------------------- memory and speed
def test_with_little_memory_it_takes_several_rounds_and_ends_the_same(caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(3)
    records = [(b"%d" % rng.randrange(40), rng.choice((None, b"v"))) for _ in range(300)]
    found: list[Kept] = []
    for keys in (1000, 7):
        settings = {"log.cleaner.dedupe.buffer.size": str(24 * keys), "log.cleaner.io.buffer.load.factor": "1"}
        caplog.clear()
        caplog.set_level("INFO", "odradek.broker.partitions.cleaner")
        kept = compacted(*records, segment_bytes=700, settings=settings)
        kept.clean()
        rounds = [record for record in caplog.records if "compacted up to offset" in record.getMessage()]
        assert len(rounds) == 1 if keys == 1000 else len(rounds) > 20
        found.append(kept)
    much, little = found
    assert little.checkpoint == much.checkpoint
    assert little.read.records == much.read.records


def test_memory_for_not_even_one_key_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    kept = compacted(*keyed(20), settings={"log.cleaner.dedupe.buffer.size": "23"})
    for _ in range(3):
        kept.clean()
    assert caplog.text.count("raise log.cleaner.dedupe.buffer.size") == 1
    assert kept.read.offsets == list(range(20))


def test_it_takes_no_more_than_its_share_of_the_device() -> None:
    kept = compacted(*keyed(20), settings={"log.cleaner.io.max.bytes.per.second": "1000"})
    dirty_bytes = kept.log.size_bytes - kept.log.segments.active.size_bytes
    kept.clean()
    clean_bytes = kept.log.segments[0].size_bytes
    assert sum(kept.environment.slept_ms) == pytest.approx(2 * dirty_bytes + clean_bytes, rel=0.01)


# ------------------------------------------------------------------------------------------- what has to be there first
def test_a_record_replaces_an_older_one_only_when_the_device_has_it() -> None:
    """Power fails between two groups of a round, whose segments no helper thread has synced yet."""
    disk = LosingDisk()
    disk.make_dir(DATA_DIR)
    disk.sync_dir("")
    kept = Kept(COMPACTED, disk=disk, segment_bytes=160, group_bytes=1)
    disk.sync_dir(DATA_DIR)
    for record in ((b"a", b"old"), (b"b", b"old")):
        kept.append(record)
    kept.log.flush()
    kept.syncs_rolled = False
    for record in ((b"a", b"new"), (b"b", b"new"), (b"c", b"")):
        kept.append(record)
    assert kept.log.base_offsets == [0, 2, 4]
    assert kept.log.durable_offset == 2
    rename = disk.rename

    def dies_with_the_second_group(source: str, target: str) -> None:
        if f"{2:020d}.log." in source and source.endswith(".cleaned"):
            raise Crash
        rename(source, target)

    disk.rename = dies_with_the_second_group  # type: ignore[method-assign]
    with pytest.raises(Crash):
        kept.clean()
    kept.kill()
    kept.disk = disk.after_power_failure(ALL_IS_LOST)
    kept.start()
    assert set(kept.read.values) >= {b"a", b"b"}


def test_where_an_epoch_began_is_known_although_its_first_batch_is_gone() -> None:
    kept = compacted((b"a", b"1"), segment_bytes=1 << 20)
    kept.syncs_rolled = False
    kept.partition.become_leader(5, Replicas(0, (0,), (0,)))
    kept.append((b"a", b"2"))
    kept.roll()
    kept.append((b"a", b"3"))
    kept.roll()
    kept.append((b"z", b""))
    before = kept.log.epochs.entries
    assert kept.log.epochs.is_stale
    kept.clean()
    assert kept.read.offsets == [2, 3]
    kept.leader_epoch = 5
    kept.kill_and_start()
    assert kept.log.epochs.entries == before


def test_what_cannot_be_synced_is_not_compacted_before_the_next_start() -> None:
    kept = compacted(*keyed(20))
    log = kept.log
    durability = log.durability
    synced, durability.durable_offset, durability.recovery_point = log.durable_offset, 0, 0
    assert synced == 18

    def fails(disk: MemoryDisk, content: Content) -> None:
        if not content.startswith(b"odradek"):  # what the directory is probed with works
            raise OSError("not now")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MemoryDisk, "sync", fails)
        kept.clean()
    assert kept.read.offsets == list(range(20))
    assert kept.checkpoint is None
    kept.kill_and_start()
    kept.clean()
    assert kept.read.offsets == [15, 16, 17, 18, 19]


def test_segments_that_somebody_took_away_do_not_keep_it_busy_for_ever() -> None:
    kept = compacted(*keyed(20))
    path = f"{DIRECTORY}/{4:020d}.log"
    content = kept.disk.read_whole(path)
    kept.disk.remove(path)
    kept.clean()
    assert kept.checkpoint is None
    assert [name for name in kept.names if name.endswith(".cleaned")] == []
    kept.disk.write_whole(path, content)
    kept.clean()
    assert kept.checkpoint == 18


def test_a_log_that_cannot_be_read_further_on_is_left_alone_as_well(caplog: pytest.LogCaptureFixture) -> None:
    """What was compacted before it stays so. Each segment is a group of its own."""
    kept = Kept(COMPACTED, segment_bytes=160, group_bytes=1)
    for record in keyed(12, keys=12):
        kept.append(record)
    kept.clean()
    path = f"{DIRECTORY}/{4:020d}.log"
    content = bytearray(kept.disk.read_whole(path))
    content[-1] ^= 1
    file = kept.disk.open(path)
    file.truncate(0)
    file.append([content])
    for _ in range(3):
        for record in keyed(4, keys=1):
            kept.append(record)
        kept.clean()
    assert caplog.text.count("cannot be compacted") == 1
    assert "the batch at offset 5 cannot be compacted" in caplog.text
    assert not kept.log.segments.base_offsets[0]


def test_a_helper_thread_gives_up_at_the_next_batch_when_the_broker_stops() -> None:
    """A real thread, which nobody can cancel: it stands in a read when the task is cancelled that waits for it."""
    reached, goes_on = threading.Event(), threading.Event()

    class Slow(MemoryDisk):
        def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
            if path.endswith(f"{4:020d}.log") and any(name.endswith(".cleaned") for name in self.list_dir(DIRECTORY)):
                reached.set()
                assert goes_on.wait(30)
            return super().read_range(path, position, size_bytes)

    kept = Kept(COMPACTED, disk=Slow(), segment_bytes=160, group_bytes=1 << 20)
    for record in keyed(20):
        kept.append(record)

    async def stopped() -> None:
        environment = Environment()
        cleaner = Cleaner(kept.disk, environment, kept.config, kept.partitions)
        task = environment.loop.create_task(cleaner.clean_what_is_due())
        assert await environment.run_blocking(reached.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        goes_on.set()
        await environment.loop.shutdown_default_executor()

    asyncio.run(stopped(), debug=True)
    assert [name for name in kept.names if name.endswith((".cleaned", ".swap"))] == []
    assert kept.read.offsets == list(range(20))
