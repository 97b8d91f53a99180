"""Whether a snapshot of the producers holds what the log before it says (snapshots.py).

What a replay of the batches before the snapshot's offset ends with is compared, producer by producer. It does not know
everything (replay.py), so these are no inconsistencies:

- a producer whose last batch stands before all that was replayed, or was taken out by compaction;
- after compaction: other timestamps, coordinator epochs and beginnings of transactions, for these hang on markers and
  records that are gone;
- a producer that is missing in the snapshot: it expired (`producer.id.expiration.ms`), which is a note.
"""

from odradek.broker.log.producers import NO_EPOCH, NO_OFFSET, ProducedBatch, ProducerState
from odradek.broker.log.snapshots import CorruptSnapshot, SnapshotEntry, decode_snapshot, read_entries
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.replay import Replay

_ENTRIES_POSITION = 10
_ENTRY_BYTES = 46


def check_snapshot(path: str, data: bytes, replay: Replay) -> list[Note]:
    """Compares the snapshot with the replay, which has passed all batches before its offset, and lets it go on with
    what the snapshot says. Raises Inconsistency."""
    entries, earlier = read_snapshot(path, data)
    for number, entry in enumerate(entries):
        state = replay.producers.get(entry.producer_id)
        reason = _fault(entry, state, replay)
        if reason is not None:
            position = _ENTRIES_POSITION + number * _ENTRY_BYTES
            raise Inconsistency(path, f"producer {entry.producer_id}: {reason}", position=position)
    for producer_id, batch in earlier:
        if _is_invented(batch, replay.producers.get(producer_id), replay):
            raise Inconsistency(path, f"producer {producer_id}: no batch in the log is {batch}")
    found = {entry.producer_id for entry in entries}
    missing = [producer_id for producer_id, _ in replay.producers.states() if producer_id not in found]
    replay.begin_anew(decode_snapshot(data), replay.next_offset)
    if not missing:
        return []
    text = f"{len(missing)} producers of the log are not in it, {missing[0]} for one: they expired, or it lost them"
    return [Note(path, text)]


def read_snapshot(path: str, data: bytes) -> tuple[list[SnapshotEntry], list[tuple[int, ProducedBatch]]]:
    """The content, if it can be one without a look at the log. Raises Inconsistency."""
    try:
        entries, earlier = read_entries(data)
    except CorruptSnapshot as error:
        raise Inconsistency(path, str(error)) from error
    producer_ids = [entry.producer_id for entry in entries]
    open_txns = [entry.current_txn_first_offset for entry in entries if entry.current_txn_first_offset != NO_OFFSET]
    for what, numbers in (("producer", producer_ids), ("transaction from offset", open_txns)):
        if len(set(numbers)) < len(numbers):
            twice = next(number for number in numbers if numbers.count(number) > 1)
            raise Inconsistency(path, f"{what} {twice} stands in it twice")
    return entries, earlier


def _is_invented(batch: ProducedBatch, state: ProducerState | None, replay: Replay) -> bool:
    """Whether the log would have the batch, and has not."""
    batches = () if state is None else state.batches
    since = min([replay.since, *(known.base_offset for known in batches)])
    return not any(_is_same(batch, known, replay) for known in batches) and (
        batch.base_offset >= since and not replay.is_compacted
    )


def _is_same(batch: ProducedBatch, known: ProducedBatch, replay: Replay) -> bool:
    """A batch that is known from a snapshot may have the timestamp of a marker behind it: an entry has but one."""
    return batch[:4] == known[:4] and (batch.timestamp_ms == known.timestamp_ms or known.base_offset < replay.since)


def _fault(entry: SnapshotEntry, state: ProducerState | None, replay: Replay) -> str | None:
    """What cannot be true of an entry."""
    last = state.batches[-1] if state is not None and state.batches else None
    last_offset = NO_OFFSET if last is None else last.last_offset
    if state is None or entry.last_offset > last_offset:
        return _unknown(entry, last_offset, replay)
    if entry.last_offset < last_offset:
        is_cut_short = replay.is_compacted and entry.epoch != state.epoch  # the marker that raised the epoch is gone
        return None if is_cut_short else f"its last batch ends with {entry.last_offset}, in the log with {last_offset}"
    known: dict[str, int] = {}
    if last is not None:
        offset_delta = last.last_offset - last.base_offset
        known = {"epoch": state.epoch, "last_sequence": last.last_sequence, "offset_delta": offset_delta}
    if not replay.is_compacted:
        known |= _from_markers(entry, state, replay)
    for field, value in known.items():
        if getattr(entry, field) != value:
            return f"a {field} of {getattr(entry, field)}, by the log it is {value}"
    return None


def _from_markers(entry: SnapshotEntry, state: ProducerState, replay: Replay) -> dict[str, int]:
    """The fields that markers and transactions change, as far as they can be known."""
    known = {"epoch": state.epoch, "timestamp_ms": state.last_timestamp_ms}
    if replay.is_complete or state.coordinator_epoch != NO_EPOCH:
        known["coordinator_epoch"] = state.coordinator_epoch
    began_before = NO_OFFSET < entry.current_txn_first_offset < replay.since
    if replay.is_complete or not began_before:
        known["current_txn_first_offset"] = state.current_txn_first_offset
    return known


def _unknown(entry: SnapshotEntry, last_offset: int, replay: Replay) -> str | None:
    """The entry names a batch that the replay has not met."""
    if entry.last_offset < replay.since:
        may_be = not replay.is_complete or entry.last_offset == NO_OFFSET
    else:
        may_be = replay.is_gone(entry.last_offset)
    if may_be:
        return None
    instead = "of it there is none" if last_offset == NO_OFFSET else f"its last one ends with {last_offset}"
    return f"its last batch ends with {entry.last_offset}, in the log {instead}"
