"""What is said comes back as it was meant: commits, snapshots, changes, and the kind of every error."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster.socket_store.messages import (
    CommandRefused,
    Welcome,
    decode_change,
    decode_commit,
    decode_error,
    decode_hello,
    decode_snapshot,
    decode_welcome,
    encode_change,
    encode_commit,
    encode_error,
    encode_hello,
    encode_snapshot,
    encode_welcome,
)
from odradek.broker.cluster.socket_store.wire import MalformedFrame, Packer
from odradek.broker.cluster.store import (
    NOTHING_CHANGED,
    Change,
    Compacted,
    Conflict,
    Entry,
    Event,
    LeaseLost,
    Snapshot,
    StoreDamaged,
    StoreRefused,
    StoreWentBack,
    Superseded,
    TooLarge,
    Txn,
    Unknown,
    Unreachable,
)

KEYS = st.text(max_size=8)
REVISIONS = st.integers(0, (1 << 63) - 1)
VALUES = st.dictionaries(KEYS, st.binary(max_size=8), max_size=3)
CONDITIONS = st.dictionaries(KEYS, REVISIONS, max_size=3)


@given(CONDITIONS, VALUES, st.lists(KEYS, max_size=3), VALUES, CONDITIONS, REVISIONS)
def test_a_commit_comes_back(
    expect: dict[str, int],
    put: dict[str, bytes],
    delete: list[str],
    lasting: dict[str, bytes],
    since: dict[str, int],
    lease_id: int,
) -> None:
    txn = Txn(expect, put, tuple(delete), None, lasting, since)
    assert decode_commit(encode_commit(txn, lease_id)) == (txn, lease_id)


@given(REVISIONS, st.dictionaries(KEYS, st.builds(Entry, st.binary(max_size=8), REVISIONS), max_size=3))
def test_a_snapshot_comes_back_in_its_order(revision: int, entries: dict[str, Entry]) -> None:
    found = decode_snapshot(encode_snapshot(Snapshot(revision, entries)))
    assert (found.revision, list(found.entries.items())) == (revision, list(entries.items()))


@given(REVISIONS, st.lists(st.builds(Event, KEYS, st.none() | st.binary(max_size=8)), max_size=3))
def test_a_change_comes_back(revision: int, events: list[Event]) -> None:
    assert decode_change(encode_change(Change(revision, tuple(events)))) == Change(revision, tuple(events))


def test_keys_that_are_no_text_come_back_too() -> None:
    change = Change(1, (Event(b"/\xff".decode(errors="surrogateescape"), None),))
    assert decode_change(encode_change(change)) == change


@pytest.mark.parametrize(
    "kind",
    [
        Conflict,
        TooLarge,
        LeaseLost,
        Compacted,
        StoreWentBack,
        Superseded,
        Unreachable,
        Unknown,
        StoreRefused,
        StoreDamaged,
        ValueError,
        CommandRefused,
    ],
)
def test_errors_keep_their_kinds_and_their_words(kind: type[Exception]) -> None:
    error = decode_error(encode_error(kind("why it is so")))
    assert type(error) is kind
    assert str(error) == "why it is so"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("a mistake")])
def test_any_other_error_may_have_changed_something(error: Exception) -> None:
    found = decode_error(encode_error(error))
    assert isinstance(found, Unknown)
    assert not isinstance(found, NOTHING_CHANGED)
    assert str(error.args[-1]) in str(found)
    assert found.errno == getattr(error, "errno", None)


def test_a_greeting_tells_the_version_and_nothing_else_is_one() -> None:
    assert decode_hello(encode_hello()) == 1
    assert decode_welcome(encode_welcome(Welcome(1, "cluster", 5))) == Welcome(1, "cluster", 5)
    with pytest.raises(MalformedFrame, match="no greeting"):
        decode_hello(Packer().text("GET / HTTP").u32(1).body())
    with pytest.raises(MalformedFrame):
        decode_hello(b"GET / HTTP/1.1\r\n")
