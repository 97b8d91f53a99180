"""Records of offsets: what is written is what is read."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.offset_records import commit_record, committed_of, tombstone
from odradek.broker.group.offsets import Committed
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.stored.group_records import UnknownValue, decode_key, decode_value
from odradek.protocol.stored.offset_commit import OffsetCommitKey

FIRST = ("orders", 0)


@given(
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=20),
    st.integers(0, 2**62),
    st.binary(min_size=16, max_size=16),
)
def test_a_record_holds_what_was_committed(
    offset: int, leader_epoch: int, metadata: str, timestamp_ms: int, topic_id: bytes
) -> None:
    committed = Committed(offset, leader_epoch, metadata, timestamp_ms, -1, topic_id)
    assert read(committed) == (committed, 4)
    with_expiry = Committed(offset, -1, metadata, timestamp_ms, timestamp_ms + 1, ZERO_UUID)
    assert read(with_expiry) == (with_expiry, 1), "the last version that has a time of expiry"


def read(committed: Committed) -> tuple[Committed, int]:
    """What the record says, and the version of its value."""
    record = commit_record("a", FIRST, committed)
    assert record.value is not None
    assert record.key == tombstone("a", FIRST).key
    key = decode_key(record.key)
    assert isinstance(key, OffsetCommitKey)
    value = decode_value(key, record.value)
    assert not isinstance(value, UnknownValue)
    return committed_of(value), int.from_bytes(record.value[:2], "big")
