"""What the batches say of leader epochs, where few of them are left."""

from odradek.broker.disk.memory_disk import MemoryDisk
from tests.broker.log.logs import append, batch, open_log


def test_a_log_of_which_everything_was_deleted_keeps_the_epoch_of_its_last_batch() -> None:
    """No batch says it any more. A leader that forgot it could not tell a follower where their logs part."""
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, batch(), leader_epoch=2)
    log.advance_log_start(1)
    log.flush()
    assert log.epochs.entries == ((2, 1),)
    assert log.epochs.epoch_for(1) == 2
