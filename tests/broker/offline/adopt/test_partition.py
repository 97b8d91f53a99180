"""What the directory of a partition says, on logs made by hand; and that reading it changes nothing."""

from struct import Struct

import pytest

from odradek.broker.offline.adopt.partition import PartitionFacts, read_partition
from tests.broker.offline.adopt.kafka_files import (
    DATA,
    KafkaDirectory,
    batch,
    id_of,
    marker,
    old_message,
    snapshot,
    transactional,
)

LOG = f"{0:020d}.log"
INDEX = Struct(">ii")


def read(directory: KafkaDirectory, *, recovery_point: int = 0, is_clean: bool = True) -> PartitionFacts:
    before = directory.files()
    facts = read_partition(
        directory.disk, f"{DATA}/orders-0", "orders", 0, recovery_point=recovery_point, is_clean=is_clean
    )
    assert directory.files() == before, "nothing is changed"
    return facts


def test_a_plain_partition_is_told_as_it_is() -> None:
    directory = KafkaDirectory()
    first, second = batch(0, 3, epoch=1), batch(3, 2, epoch=4, producer_id=7)
    directory.partition("orders-0", first, second, epochs=[(1, 0), (4, 3)], snapshots={5: snapshot(7, 9)})
    facts = read(directory)
    assert facts == PartitionFacts(
        topic="orders",
        index=0,
        topic_id=id_of("orders"),
        leader_epoch=4,
        last_epoch=4,
        producer_id=9,
        log_end_offset=5,
        segment_count=1,
        size_bytes=len(first) + len(second),
    )
    assert facts.name == "orders-0"


def test_an_empty_partition_has_nothing_to_tell() -> None:
    directory = KafkaDirectory()
    directory.partition("orders-0", epochs=[])
    assert read(directory) == PartitionFacts("orders", 0, id_of("orders"), segment_count=1)
    directory.disk.remove(f"{DATA}/orders-0/leader-epoch-checkpoint")
    assert read(directory).leader_epoch == -1


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize(("epochs", "found"), [([(3, 0)], 6), ([(9, 0)], 9), ([], 6)])
def test_the_largest_epoch_is_that_of_the_checkpoint_or_of_the_last_batches(
    epochs: list[tuple[int, int]], found: int, is_clean: bool
) -> None:
    """A batch may be in the log before the checkpoint is written; after a rollover the last segment is empty."""
    directory = KafkaDirectory()
    directory.partition("orders-0", batch(0, epoch=5), batch(1, epoch=6), epochs=epochs)
    directory.segment("orders-0", 2)
    assert read(directory, is_clean=is_clean).leader_epoch == found


def test_an_epoch_behind_the_last_index_entry_is_found_wherever_the_entry_points() -> None:
    directory = KafkaDirectory()
    data = [batch(offset, epoch=offset) for offset in range(6)]
    positions = [sum(map(len, data[:number])) for number in range(6)]
    directory.partition("orders-0", *data, epochs=[])
    for relative_offset, position in [(3, positions[3]), (0, 0), (3, positions[3] + 1), (2, positions[3]), (9, 10**6)]:
        directory.segment("orders-0", 0, *data, index=INDEX.pack(relative_offset, position))
        assert read(directory).leader_epoch == 5, (relative_offset, position)


def test_of_a_closed_log_all_segments_but_the_last_are_only_looked_at() -> None:
    """A damaged batch behind the first one of an older segment is not met; in the last segment it is."""
    directory = KafkaDirectory()
    directory.partition("orders-0", batch(0), b"x" * 100)
    directory.segment("orders-0", 7, batch(7))
    assert read(directory).remarks == []
    assert read(directory, recovery_point=7, is_clean=False).remarks == []
    (remark,) = read(directory, recovery_point=6, is_clean=False).remarks
    assert remark.startswith(
        f"{LOG} is no log from position {len(batch(0))} on (no batch starts here): a start cuts off"
    )
    assert "of 100 bytes" in remark


@pytest.mark.parametrize("tail", [batch(1)[:-1], batch(1)[:30], b"\1"])
def test_a_torn_end_is_told_with_its_size_and_zeros_are_not(tail: bytes) -> None:
    directory = KafkaDirectory(is_clean=False)
    directory.partition("orders-0", batch(0), tail)
    (remark,) = read(directory, is_clean=False).remarks
    assert f"such an end of {len(tail)} bytes" in remark
    directory.partition("orders-0", batch(0), bytes(len(tail)))
    facts = read(directory, is_clean=False)
    assert (facts.remarks, facts.obstacles, facts.log_end_offset) == ([], [], 1)


@pytest.mark.parametrize("version", [0, 1])
def test_old_format_messages_are_an_obstacle_at_a_segment_start_or_the_log_end(version: int) -> None:
    for logs in (
        [[old_message(0, version)]],
        [[old_message(0, version)], [batch(1)]],
        [[batch(0), old_message(1, version)]],
    ):
        directory = KafkaDirectory()
        directory.partition("orders-0", *logs[0])
        for segment in logs[1:]:
            directory.segment("orders-0", 1, *segment)
        (obstacle,) = read(directory).obstacles
        assert f"has messages of format {version}, from before Kafka 0.11, at position" in obstacle


def test_what_only_resembles_an_older_message_is_damage() -> None:
    directory = KafkaDirectory()
    message = bytearray(old_message(0, 1))
    message[-1] ^= 1
    directory.partition("orders-0", bytes(message))
    facts = read(directory)
    assert facts.obstacles == []
    assert len(facts.remarks) == 1


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_with_gaps_is_told_by_its_batches(is_clean: bool) -> None:
    def has_gaps(*batches: bytes) -> bool:
        directory = KafkaDirectory(is_clean=is_clean)
        directory.partition("orders-0", *batches)
        return read(directory, is_clean=is_clean).has_gaps

    assert not has_gaps(batch(0, 3), batch(3, 3))
    assert has_gaps(batch(0, 3, gaps=[1]), batch(3, 3))
    assert has_gaps(batch(0, 3), batch(4, 3))
    assert has_gaps(batch(2, 3))


def test_the_end_of_a_transaction_is_no_gap() -> None:
    directory = KafkaDirectory()
    directory.partition("orders-0", transactional(0, producer_id=4), marker(1, producer_id=4))
    facts = read(directory)
    assert (facts.has_gaps, facts.producer_id, facts.log_end_offset) == (False, 4, 2)


def test_a_producer_is_found_in_any_snapshot_and_on_batches_behind_them() -> None:
    directory = KafkaDirectory()
    directory.partition(
        "orders-0", batch(0, producer_id=2), batch(1, producer_id=5), snapshots={0: snapshot(11), 1: snapshot(3)}
    )
    assert read(directory).producer_id == 11
    directory.partition("orders-0", batch(0, producer_id=2), batch(1, producer_id=50))
    assert read(directory).producer_id == 50


def test_damaged_small_files_are_told_and_done_without() -> None:
    directory = KafkaDirectory()
    directory.partition("orders-0", batch(0, epoch=3), snapshots={1: b"damaged"})
    directory.write("orders-0/leader-epoch-checkpoint", b"nonsense")
    facts = read(directory)
    assert (facts.obstacles, facts.leader_epoch) == ([], 3)
    epochs, producers = facts.remarks
    assert epochs.startswith(
        "its leader epochs are taken from the batches: data/orders-0/leader-epoch-checkpoint has v"
    )
    assert producers.startswith("a snapshot of its producers is damaged")


def test_missing_indexes_are_told_after_a_clean_stop_only() -> None:
    directory = KafkaDirectory()
    directory.partition("orders-0", batch(0))
    directory.disk.remove(f"{DATA}/orders-0/{0:020d}.timeindex")
    directory.write(f"orders-0/{0:020d}.index", b"123")
    assert read(directory).remarks == [
        "2 of its indexes are missing or cut short; they are built anew when they are used"
    ]
    assert read(directory, is_clean=False).remarks == []


def test_without_a_topic_id_it_cannot_be_taken() -> None:
    directory = KafkaDirectory()
    directory.partition("orders-0", batch(0), has_metadata=False)
    facts = read(directory)
    assert facts.topic_id is None
    assert facts.obstacles == ["it has no partition.metadata, so nothing says which topic it is of"]
    directory.write("orders-0/partition.metadata", b"nonsense")
    (obstacle,) = read(directory).obstacles
    assert obstacle.startswith("its topic id cannot be read: data/orders-0/partition.metadata")


def test_other_files_count_for_nothing() -> None:
    directory = KafkaDirectory()
    directory.partition("orders-0", batch(0, producer_id=3))
    plain = read(directory)
    for name in (
        "notes.log",
        f"{7:020d}.log.deleted",
        f"{7:020d}.log.swap",
        f"{7:019d}.log",
        f"{7:020d}.snapshot.deleted",
    ):
        directory.write(f"orders-0/{name}", batch(70, producer_id=99))
    directory.disk.make_dir(f"{DATA}/orders-0/{9:020d}.log")
    assert read(directory) == plain
