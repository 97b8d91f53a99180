"""Requests have their fields where etcd expects them, and answers are read from where it puts them.

That etcd agrees is what test_store.py and its neighbours show; here it is one message at a time, with made-up answers.
"""

from odradek.broker.cluster.etcd.messages import (
    KeyValue,
    LeaseReply,
    RangeReply,
    TxnReply,
    WatchEvent,
    WatchReply,
    authenticate_request,
    decode_cluster_id,
    decode_lease,
    decode_range,
    decode_token,
    decode_txn,
    decode_watch,
    lease_grant_request,
    prefix_end,
    progress_request,
    range_request,
    txn_request,
    watch_request,
)
from odradek.broker.cluster.etcd.wire import Fields, blob, integer, message

HEADER = message(1, integer(1, 77) + integer(2, 1) + integer(3, 1000) + integer(4, 3))


def key_value(key: bytes, value: bytes, revision: int) -> bytes:
    return blob(1, key) + integer(2, 2) + integer(3, revision) + integer(4, 1) + blob(5, value) + integer(6, 9)


def test_a_range_is_a_page_of_keys_at_a_revision() -> None:
    request = Fields(range_request(b"/a", b"/b", 100, 7))
    assert (request.blob(1), request.blob(2), request.integer(3), request.integer(4)) == (b"/a", b"/b", 100, 7)
    reply = HEADER + message(2, key_value(b"/a", b"1", 5)) + message(2, key_value(b"/ab", b"", 6)) + integer(3, 1)
    assert decode_range(reply) == RangeReply(1000, [KeyValue(b"/a", b"1", 5), KeyValue(b"/ab", b"", 6)], True)
    assert decode_range(HEADER) == RangeReply(1000, [], False)


def test_a_transaction_compares_then_puts_then_deletes() -> None:
    put = [(b"/c", b"v", 9), (b"/l", b"w", 0)]
    request = Fields(txn_request([(b"/a", 5), (b"/b", 0)], put, [b"/d"], b"/", since=[(b"/s", 7)]))
    compares = [Fields(body) for body in request.blobs(1)]
    assert [(each.integer(1), each.integer(2), each.blob(3), each.integer(6)) for each in compares] == [
        (0, 2, b"/a", 5),
        (0, 2, b"/b", 0),
        (1, 2, b"/s", 6),
    ]
    leased, lasting, delete = [Fields(body) for body in request.blobs(2)]
    written = [leased.fields(2), lasting.fields(2)]
    assert [(each.blob(1), each.blob(2), each.integer(3)) for each in written] == put
    assert delete.fields(3).blob(1) == b"/d"


def test_a_transaction_that_only_compares_asks_for_something() -> None:
    """What asks for nothing etcd answers from what the member knows, and it may be behind."""
    (operation,) = Fields(txn_request([(b"/a", 5)], [], [], b"/")).blobs(2)
    asked = Fields(operation).fields(1)
    assert (asked.blob(1), asked.flag(9), asked.flag(7)) == (b"/", True, False)


def test_a_transaction_says_what_it_deleted() -> None:
    deleted = [message(3, message(3, integer(2, count))) for count in (1, 0, 1)]
    put = message(3, message(2, b""))
    assert decode_txn(HEADER + integer(2, 1) + put + b"".join(deleted)) == TxnReply(1000, True, 2)
    assert decode_txn(HEADER) == TxnReply(1000, False, 0)


def test_a_watch_begins_at_a_revision_and_takes_fragments() -> None:
    created = Fields(watch_request(b"/a", b"/b", 8)).fields(1)
    assert (created.blob(1), created.blob(2), created.integer(3), created.flag(8)) == (b"/a", b"/b", 8, True)
    assert Fields(progress_request()).blobs(3) == [b""]


def test_a_watch_is_told_events_and_why_it_ends() -> None:
    put = message(11, message(2, key_value(b"/a", b"1", 5)))
    delete = message(11, integer(1, 1) + message(2, key_value(b"/b", b"", 6)))
    assert decode_watch(HEADER + integer(7, 1) + put + delete) == WatchReply(
        False,
        False,
        True,
        0,
        "",
        [WatchEvent(False, KeyValue(b"/a", b"1", 5)), WatchEvent(True, KeyValue(b"/b", b"", 6))],
    )
    ended = HEADER + integer(2, -1) + integer(3, 1) + integer(4, 1) + integer(5, 12) + blob(6, b"why")
    assert decode_watch(ended) == WatchReply(True, True, False, 12, "why", [])


def test_leases_tokens_and_clusters() -> None:
    assert Fields(lease_grant_request(2)).integer(1) == 2
    assert decode_lease(HEADER + integer(2, 123) + integer(3, 2)) == LeaseReply(123, 2)
    assert decode_lease(HEADER + integer(2, 123)) == LeaseReply(123, 0)
    user = Fields(authenticate_request("me", "secret"))
    assert (user.text(1), user.text(2)) == ("me", "secret")
    assert decode_token(HEADER + blob(2, b"abc.7")) == "abc.7"
    assert decode_cluster_id(HEADER) == 77


def test_a_range_ends_behind_all_keys_with_the_prefix() -> None:
    for prefix in (b"/", b"/a/", "/ö".encode()):
        end = prefix_end(prefix)
        assert prefix <= prefix + b"\xff" * 9 < end
        assert not end.startswith(prefix)
