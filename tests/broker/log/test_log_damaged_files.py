"""Each derived file of a log damaged in any way, by Hypothesis: the log answers what it answered before.

Arbitrary bytes, rows that hold arbitrary numbers, and valid files of which bits were flipped, bytes cut off, rows
repeated, exchanged or taken out. After a clean stop and after a kill. What is asked: reads, timestamps, leader epochs,
producers, aborted transactions; then appends, a truncation, another start.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.batches.batch import iterate_batches
from tests.broker.log.damaged_logs import (
    COUNT,
    Written,
    add,
    check_epochs,
    check_goes_on,
    check_lookups,
    check_reads,
)
from tests.broker.log.damages import damages
from tests.broker.log.logs import DIRECTORY, Model, copied, known_producers, open_log
from tests.broker.log.transactions import TxnModel

DAMAGES = settings(max_examples=20)
TXN_CONFIG = LogConfig(segment_bytes=600)
STOPPED, KILLED = Written(is_clean=True), Written(is_clean=False)
ENDS = pytest.mark.parametrize("written", [STOPPED, KILLED], ids=["stopped", "killed"])
WHICH = pytest.mark.parametrize("which", [1, -1], ids=["closed", "active"])
ROWS = {".index": ">ii", ".timeindex": ">qi"}


def with_transactions() -> tuple[MemoryDisk, TxnModel, Log]:
    """Three producers' transactions, which overlap, in several segments; all but one are aborted."""
    disk, model = MemoryDisk(), TxnModel()
    log = open_log(disk, TXN_CONFIG)
    for number in range(18):
        model.write(log, number % 3, b"x" * 20)
        if number % 4 == 3:
            model.end(log, number % 3, is_abort=number != 11)
        model.write(log, 7, b"y", is_transactional=False)
    log.close()
    return disk, model, log


def damaged(written: Written, name: str, content: bytes) -> MemoryDisk:
    disk = copied(written.disk, MemoryDisk())
    disk.write_whole(f"{DIRECTORY}/{name}", content)
    return disk


def check(log: Log, model: Model, context: object) -> None:
    for one in (check_reads, check_lookups, check_epochs):
        one(log, model, context)
    assert known_producers(log) == model.producers(), context


@ENDS
@WHICH
@pytest.mark.parametrize("suffix", list(ROWS))
@DAMAGES
@given(data=st.data())
def test_an_index(written: Written, which: int, suffix: str, data: st.DataObject) -> None:
    name = written.file(suffix, which)
    content = data.draw(damages(written.disk.read_whole(f"{DIRECTORY}/{name}"), ROWS[suffix]))
    disk = damaged(written, name, content)
    log = written.open(disk)
    order = [check_reads, check_lookups] if data.draw(st.booleans()) else [check_lookups, check_reads]
    for one in order:
        one(log, written.model, content)
    if data.draw(st.booleans()):
        check_goes_on(log, written.model, disk, content)


@ENDS
@DAMAGES
@given(data=st.data())
def test_an_index_where_the_log_goes_on_at_once_or_is_cut(written: Written, data: st.DataObject) -> None:
    """The first use of the index is not a read."""
    suffix = data.draw(st.sampled_from(list(ROWS)))
    name = written.file(suffix, -1)
    content = data.draw(damages(written.disk.read_whole(f"{DIRECTORY}/{name}"), ROWS[suffix]))
    disk = damaged(written, name, content)
    log, model = written.open(disk), written.model.copy()
    if data.draw(st.booleans()):
        offset = data.draw(st.integers(written.bases[-1], model.log_end_offset))
        log.truncate_to(offset)
        model.truncate_to(offset)
    number = len(model.batches)
    log.begin_epoch(COUNT // 6)
    add(log, model, number)
    add(log, model, number + 1)
    check_reads(log, model, content)
    check_lookups(log, model, content)


@ENDS
@WHICH
@DAMAGES
@given(data=st.data())
def test_a_snapshot(written: Written, which: int, data: st.DataObject) -> None:
    names = sorted(name for name in written.disk.list_dir(DIRECTORY) if name.endswith(".snapshot"))
    name = names[which]
    content = data.draw(damages(written.disk.read_whole(f"{DIRECTORY}/{name}"), ">qhiqiqiq"))
    disk = damaged(written, name, content)
    log = written.open(disk)
    check(log, written.model, content)
    check_goes_on(log, written.model, disk, content)


@DAMAGES
@given(data=st.data())
def test_a_transaction_index(data: st.DataObject) -> None:
    """Of what was aborted nothing is told wrong; and nothing is left out, but where whole rows are."""
    disk, model, before = with_transactions()
    names = [name for name in disk.list_dir(DIRECTORY) if name.endswith(".txnindex")]
    name = data.draw(st.sampled_from(names))
    good = disk.read_whole(f"{DIRECTORY}/{name}")
    content = data.draw(damages(good, ">hqqqq"))
    disk.write_whole(f"{DIRECTORY}/{name}", content)
    log = open_log(disk, TXN_CONFIG, recovery_point=before.recovery_point, is_clean=True)
    rows = [content[at : at + 34] for at in range(0, len(content), 34)]
    are_all_true = all(good.find(row) % 34 == 0 and len(row) == 34 for row in rows)
    for offset in range(model.log_end_offset):
        records = log.fetch(offset, 1 << 20, model.log_end_offset, True).records
        end = max(header.last_offset for _, header in iterate_batches(records)) + 1
        wanted = {(txn[0], txn[1]) for txn in model.aborted(offset, end)}
        told = {(txn.producer_id, txn.first_offset) for txn in log.aborted_transactions(offset, records)}
        assert told <= wanted if are_all_true else told == wanted, (content, offset)


EPOCH_LINE = st.tuples(
    st.one_of(st.integers(-2, 5), st.integers(), st.text(max_size=5)),
    st.one_of(st.integers(-2, 50), st.integers(), st.text(max_size=5)),
).map(lambda words: f"{words[0]} {words[1]}")


def as_checkpoint(lines: list[str]) -> bytes:
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode(errors="surrogatepass")


@ENDS
@DAMAGES
@given(data=st.data())
def test_the_leader_epochs(written: Written, data: st.DataObject) -> None:
    good = written.disk.read_whole(f"{DIRECTORY}/leader-epoch-checkpoint")
    lines = st.lists(st.one_of(EPOCH_LINE, st.sampled_from(good.decode().splitlines()[2:])), max_size=5)
    content = data.draw(st.one_of(damages(good, "c"), lines.map(as_checkpoint)))
    disk = damaged(written, "leader-epoch-checkpoint", content)
    log = written.open(disk)
    check(log, written.model, content)
    check_goes_on(log, written.model, disk, content)


@pytest.mark.parametrize("kept", [slice(-1), slice(1), slice(-1, None)], ids=str)
def test_entries_of_the_time_index_that_are_missing_are_missed(kept: slice) -> None:
    """Without its last ones a segment would look older than it is, to ListOffsets and to retention."""
    name = STOPPED.file(".timeindex", 1)
    good = STOPPED.disk.read_whole(f"{DIRECTORY}/{name}")
    rows = [good[at : at + 12] for at in range(0, len(good), 12)]
    assert len(rows) > 1
    disk = damaged(STOPPED, name, b"".join(rows[kept]))
    log = STOPPED.open(disk)
    check_lookups(log, STOPPED.model, rows)
