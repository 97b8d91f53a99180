"""Transactions go to records of `__transaction_state` and back; what is damaged, or of a later release, is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.txn.stored import stored_record, tombstone, transaction_of
from odradek.broker.txn.transaction import NO_EPOCH, NO_PRODUCER_ID, Transaction, TxnState
from odradek.protocol.codec.codec import decode_prefix, encode
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.stored.transaction_log import TransactionLogValue

ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)
longs = st.integers(-1, 2**63 - 1)
partitions = st.frozensets(st.tuples(st.sampled_from(["a", "b", "orders", "ü"]), st.integers(0, 2**31 - 1)), max_size=8)


@st.composite
def transactions(draw: st.DrawFn) -> Transaction:
    state = draw(st.sampled_from(TxnState))
    return Transaction(
        draw(longs),
        draw(st.integers(0, 32_767)),
        draw(st.integers(1, 2**31 - 1)),
        draw(longs),
        state,
        frozenset() if state is TxnState.EMPTY or state.is_complete else draw(partitions),
        draw(longs),
        draw(st.integers(0, 2)),
        draw(st.integers(-1, 32_766)),
        draw(longs),
        draw(longs),
    )


@given(ids, transactions())
def test_a_record_of_version_1_says_all_but_the_epoch_before(transactional_id: str, transaction: Transaction) -> None:
    found = transaction_of(*stored_record(transactional_id, transaction, 1))
    assert found == (transactional_id, transaction._replace(last_epoch=NO_EPOCH))


@given(ids, transactions())
def test_a_record_of_version_0_says_nothing_of_kip_890(transactional_id: str, transaction: Transaction) -> None:
    found = transaction_of(*stored_record(transactional_id, transaction, 0))
    kept = transaction._replace(
        last_epoch=NO_EPOCH, version=0, previous_producer_id=NO_PRODUCER_ID, next_producer_id=NO_PRODUCER_ID
    )
    assert found == (transactional_id, kept)


@given(ids)
def test_a_tombstone_says_which_id_is_forgotten(transactional_id: str) -> None:
    assert transaction_of(*tombstone(transactional_id)) == (transactional_id, None)
    assert tombstone(transactional_id).key == stored_record(transactional_id, Transaction(1, 0, 1, 1), 1).key


def test_a_record_is_what_kafka_writes() -> None:
    """By hand, from TransactionLogKey.json and TransactionLogValue.json."""
    transaction = Transaction(7, 3, 60_000, 1_001, TxnState.ONGOING, frozenset([("t", 2), ("t", 1)]), 1_000)
    key, value = stored_record("tx", transaction, 0)
    assert key.hex(" ", 2) == "0000 0002 7478"
    assert value is not None
    assert value.hex() == (
        "0000" + "0000000000000007" + "0003" + "0000ea60" + "01"
        "00000001" + "0001" + "74" + "00000002" + "00000001" + "00000002"
        "00000000000003e9" + "00000000000003e8"
    )  # fmt: skip


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("state", TxnState)
def test_partitions_are_null_where_kafka_expects_it_and_nowhere_else(state: TxnState, version: int) -> None:
    """Its loader takes the list apart in every state but Empty, and fails at null."""
    value = stored_record("tx", Transaction(7, 3, 60_000, 1_001, state), version).value
    assert value is not None
    decoded = decode_prefix(TransactionLogValue, version, value, 2)
    assert decoded.transaction_partitions == (None if state is TxnState.EMPTY else [])


@pytest.mark.parametrize("status", [6, 7, -1])
def test_a_state_that_is_never_written_is_refused(status: int) -> None:
    key, _ = tombstone("tx")
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=0,
        transaction_timeout_ms=1,
        transaction_status=status,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=0,
        transaction_start_timestamp_ms=0,
    )
    with pytest.raises(MalformedMessage, match=f"'tx': a record with state {status}"):
        transaction_of(key, b"\0\1" + encode(value, 1))


@pytest.mark.parametrize("version", [b"\0\2", b"\x7f\xff", b"\xff\xff"])
def test_a_value_in_another_version_is_refused(version: bytes) -> None:
    key, value = stored_record("tx", Transaction(7, 3, 60_000, 1_001), 1)
    assert value is not None
    with pytest.raises(MalformedMessage, match="later release"):
        transaction_of(key, version + value[2:])


@pytest.mark.parametrize("key", [b"\0\1\0\2tx", b"\0\7", b"\xff\xff"])
def test_a_key_of_another_type_is_left_alone(key: bytes) -> None:
    assert transaction_of(key, b"whatever") is None


@given(transactions(), st.integers(0, 1), st.data())
def test_what_is_cut_off_is_refused(transaction: Transaction, version: int, data: st.DataObject) -> None:
    key, value = stored_record("tx", transaction, version)
    assert value is not None
    with pytest.raises(MalformedMessage):
        transaction_of(key, value[: data.draw(st.integers(0, len(value) - 1))])
    with pytest.raises(MalformedMessage):
        transaction_of(key[: data.draw(st.integers(0, len(key) - 1))], value)


@given(transactions(), st.integers(0, 1), st.data())
def test_what_is_damaged_is_refused_or_read_but_never_fails(
    transaction: Transaction, version: int, data: st.DataObject
) -> None:
    key, value = stored_record("tx", transaction, version)
    assert value is not None
    damaged = bytearray(value)
    damaged[data.draw(st.integers(0, len(value) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = transaction_of(key, bytes(damaged))
    except MalformedMessage:
        return
    assert found is not None and found[0] == "tx"
