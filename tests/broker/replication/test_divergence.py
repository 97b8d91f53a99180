"""Where a reader's log and its leader's part: told by epochs, of which some hold nothing."""

import pytest

from odradek.broker.replica.replicas import Replicas
from odradek.broker.replication.divergence import diverging, end_offset_for_epoch, require_comparable
from odradek.protocol.errors import KafkaError
from tests.broker.replica.test_partition import ALONE, partition_with
from tests.broker.support import append, batch


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (-1, (-1, -1)),  # not an epoch
        (0, (0, 2)),
        (1, (0, 2)),  # nothing was appended in 1 and 2: the largest epoch before it, and where that ended
        (2, (0, 2)),
        (3, (3, 3)),  # the log ends with it, but it is over
        (4, (3, 3)),  # between the log's latest epoch and ours nothing was appended
        (5, (5, 3)),  # ours
        (6, (-1, -1)),  # later than ours
    ],
)
async def test_where_an_epoch_ended(asked: int, told: tuple[int, int]) -> None:
    """Epoch 0 has offsets 0 and 1, epoch 3 has offset 2, epochs 4 and 5 have begun and hold nothing."""
    partition = partition_with()
    append(partition, batch(b"a", b"b"))
    for epoch in (3, 4, 5):
        partition.become_leader(epoch, Replicas(0, ALONE, ALONE))
        if epoch == 3:
            append(partition, batch(b"c"))
    assert end_offset_for_epoch(partition, asked) == told


async def test_in_an_empty_log_every_epoch_so_far_ends_where_it_began() -> None:
    partition = partition_with()
    partition.become_leader(5, Replicas(0, ALONE, ALONE))
    assert [end_offset_for_epoch(partition, epoch) for epoch in (0, 4, 5, 6)] == [(0, 0), (4, 0), (5, 0), (-1, -1)]


async def test_an_epoch_before_all_that_is_left_ends_where_the_log_starts() -> None:
    """Epoch 0 was deleted by DeleteRecords (KIP-101: its own number, the start of the first one known)."""
    partition = partition_with()
    append(partition, batch(b"a", b"b"))
    partition.become_leader(3, Replicas(0, ALONE, ALONE))
    append(partition, batch(b"c"))
    partition.log.advance_log_start(2)
    assert end_offset_for_epoch(partition, 0) == (0, 2)
    assert end_offset_for_epoch(partition, 3) == (3, 3)


@pytest.mark.parametrize(
    ("last_fetched_epoch", "fetch_offset", "told"),
    [
        (-1, 99, None),  # a consumer
        (0, 2, None),
        (0, 1, None),
        (0, 3, (0, 2)),  # more of the epoch than there is
        (2, 2, (0, 2)),  # an epoch that is not here
        (3, 3, None),
        (3, 4, (3, 3)),
        (5, 3, None),
    ],
)
async def test_a_reader_is_told_where_its_log_parts(
    last_fetched_epoch: int, fetch_offset: int, told: tuple[int, int] | None
) -> None:
    """Epoch 0 has offsets 0 and 1, epoch 3 has offset 2, epoch 5 is ours."""
    partition = partition_with()
    append(partition, batch(b"a", b"b"))
    partition.become_leader(3, Replicas(0, ALONE, ALONE))
    append(partition, batch(b"c"))
    partition.become_leader(5, Replicas(0, ALONE, ALONE))
    assert diverging(partition, last_fetched_epoch, fetch_offset) == told
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        diverging(partition, 6, fetch_offset)


@pytest.mark.parametrize(
    ("last_fetched_epoch", "fetch_offset", "log_start_offset", "is_comparable"),
    [
        (0, 2, 1, False),  # what it has lies before our log, and may be what epoch 0 never had
        (0, 2, 2, True),  # it has nothing
        (-1, 2, 0, True),  # it begins anew
        (3, 2, 0, True),  # epoch 3 is known here, and it has the beginning of it
        (0, 3, 0, True),  # `diverging` says where
    ],
)
async def test_a_past_that_nobody_can_compare(
    last_fetched_epoch: int, fetch_offset: int, log_start_offset: int, is_comparable: bool
) -> None:
    """Epoch 0 had offsets 0 and 1, which were deleted; epoch 3 has offset 2."""
    partition = partition_with()
    append(partition, batch(b"a", b"b"))
    partition.become_leader(3, Replicas(0, ALONE, ALONE))
    append(partition, batch(b"c"))
    position = last_fetched_epoch, fetch_offset, log_start_offset
    require_comparable(partition, *position)
    partition.log.advance_log_start(2)
    if is_comparable:
        require_comparable(partition, *position)
    else:
        with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
            require_comparable(partition, *position)


async def test_a_log_that_holds_nothing_compares_with_no_past() -> None:
    """It was begun anew at offset 7, and leads."""
    partition = partition_with()
    partition.log.truncate_fully_and_start_at(7)
    partition.become_leader(5, Replicas(0, ALONE, ALONE))
    require_comparable(partition, 3, 7, 7)
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        require_comparable(partition, 3, 7, 6)
