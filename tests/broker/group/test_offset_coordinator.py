"""Offsets of a shard: what is committed, served, deleted and expired, for which groups and topics; in which batches."""

import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.group import Group
from odradek.broker.group.offset_coordinator import RECORDS_TOGETHER_MAX, OffsetCoordinator
from odradek.broker.group.offset_records import tombstone
from odradek.broker.group.offset_requests import (
    CommitOffsets,
    DeleteOffsets,
    FetchedOffset,
    FetchOffsets,
    OffsetToCommit,
)
from odradek.broker.group.offsets import Committed, Position
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.stored.group_records import decode_key
from odradek.protocol.stored.offset_commit import OffsetCommitKey
from tests.broker.group.kept_outbox import START_MS, KeptOutbox, World

FIRST, SECOND, OTHER = ("orders", 0), ("orders", 1), ("bills", 0)
ORDERS_ID = b"\x01" * 16
MINUTE_MS = 60_000


@dataclass
class Options:
    offset_metadata_max_bytes: int = 4
    offsets_retention_minutes: int = 10


@dataclass
class StubGroup:
    """Says what it is told to."""

    since_ms: int | None = START_MS
    topics: frozenset[str] = frozenset()
    group_id: str = "a"
    asked: list[Committed] = field(default_factory=list[Committed])

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.topics

    def retained_since_ms(self, committed: Committed) -> int | None:
        self.asked.append(committed)
        return self.since_ms


def group(since_ms: int | None = START_MS, *topics: str) -> Group:
    return StubGroup(since_ms, frozenset(topics))  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def at(passed_ms: int = 0) -> Now:
    return Now(passed_ms, START_MS + passed_ms)


class Offsets:
    """An OffsetCoordinator and its outbox."""

    def __init__(self) -> None:
        self.outbox = KeptOutbox()
        self.restored: list[str] = []
        self.coordinator = OffsetCoordinator(self.outbox, Options(), self.restored.append)
        self.undone = 0

    def commit(
        self,
        *offsets: tuple[Position, int, str],
        group_id: str = "a",
        topic_id: bytes = ORDERS_ID,
        retention_ms: int = -1,
    ) -> list[ErrorCode]:
        wanted = [OffsetToCommit(position, topic_id, offset, 3, metadata) for position, offset, metadata in offsets]
        request = CommitOffsets(group_id, "", None, -1, retention_ms, wanted, 9)
        return self.coordinator.commit(request, None, at(), self._undone)

    def _undone(self) -> None:
        self.undone += 1

    def of(self, group_id: str = "a") -> dict[Position, int]:
        return {position: each.offset for position, each in self.coordinator.offsets.of(group_id).items()}

    def fetch(
        self, positions: list[Position] | None, *, require_stable: bool = False, **topic_ids: bytes
    ) -> list[FetchedOffset]:
        request = FetchOffsets("a", "", -1, positions, require_stable)
        return [*self.coordinator.fetch(request, topic_ids.get)]

    def delete(self, group: Group, *positions: Position) -> list[ErrorCode]:
        return self.coordinator.delete(DeleteOffsets("a", positions), group)


# -- commits -------------------------------------------------------------------------------------------------------


def test_what_one_request_commits_stands_in_one_batch() -> None:
    offsets = Offsets()
    assert offsets.commit((FIRST, 7, "x"), (SECOND, 8, "")) == [ErrorCode.NONE] * 2
    [(entity_id, records)] = offsets.outbox.batches
    assert entity_id == "a"
    assert [decode_key(record.key) for record in records] == [
        OffsetCommitKey(group="a", topic=topic, partition=index) for topic, index in (FIRST, SECOND)
    ]
    assert offsets.coordinator.offsets.of("a")[FIRST] == Committed(7, 3, "x", START_MS, -1, ORDERS_ID)


def test_metadata_that_is_too_long_is_refused_and_not_written() -> None:
    offsets = Offsets()
    assert offsets.commit((FIRST, 7, "12345"), (SECOND, 8, "äöüß")) == [
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
    ]
    assert offsets.of() == {SECOND: 8}
    assert offsets.commit((FIRST, 7, "12345")) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert len(offsets.outbox.batches) == 1


@pytest.mark.parametrize("text", ["\N{GRINNING FACE}" * 2 + "x", "\N{GRINNING FACE}xxx", "\N{GRINNING FACE}" * 9])
def test_metadata_is_measured_as_java_does(text: str) -> None:
    offsets = Offsets()
    assert offsets.commit((FIRST, 7, text)) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert offsets.commit((FIRST, 7, "\N{GRINNING FACE}" * 2)) == [ErrorCode.NONE]


def test_what_a_member_may_not_commit_is_refused_and_not_written() -> None:
    offsets = Offsets()
    wanted = [OffsetToCommit(position, ORDERS_ID, 7, -1, "") for position in (FIRST, SECOND)]
    request = CommitOffsets("a", "m", None, 1, -1, wanted, 9)

    def allowed(topic_id: bytes, index: int) -> ErrorCode:
        assert topic_id == ORDERS_ID
        return ErrorCode.NONE if index == SECOND[1] else ErrorCode.STALE_MEMBER_EPOCH

    errors = offsets.coordinator.commit(request, allowed, at(), offsets._undone)  # pyright: ignore[reportPrivateUsage]
    assert errors == [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.NONE]
    assert offsets.of() == {SECOND: 7}


def test_a_refused_commit_leaves_what_was_there_and_says_so_once() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""))
    offsets.outbox.refuses = True
    offsets.commit((FIRST, 8, ""), (SECOND, 9, ""), (FIRST, 10, ""))
    assert offsets.of() == {FIRST: 10, SECOND: 9}
    offsets.outbox.undo()
    assert (offsets.of(), offsets.undone) == ({FIRST: 7}, 1)


# -- fetches -------------------------------------------------------------------------------------------------------


def test_offsets_are_answered_in_the_order_of_the_request() -> None:
    offsets = Offsets()
    offsets.commit((SECOND, 8, ""), (FIRST, 7, ""))
    found = offsets.fetch([SECOND, OTHER, FIRST, SECOND])
    assert [(each.position, each.committed and each.committed.offset, each.error) for each in found] == [
        (SECOND, 8, ErrorCode.NONE),
        (OTHER, None, ErrorCode.NONE),
        (FIRST, 7, ErrorCode.NONE),
        (SECOND, 8, ErrorCode.NONE),
    ]
    assert [each.position for each in offsets.fetch(None)] == [SECOND, FIRST], "in that of the first commits"


def test_what_was_committed_when_they_were_asked_for_is_told_however_late() -> None:
    """An answer of 100,000 takes several turns of the loop."""
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""), (OTHER, 8, ""))
    told = [
        offsets.coordinator.fetch(FetchOffsets("a", "", -1, positions, require_stable=False), lambda _: None)
        for positions in (None, [FIRST, SECOND, OTHER])
    ]
    offsets.commit((FIRST, 9, ""), (SECOND, 9, ""))
    offsets.delete(group(), OTHER)
    assert [each.committed and each.committed.offset for each in told[0]] == [7, 8]
    assert [each.committed and each.committed.offset for each in told[1]] == [7, None, 8]


def test_offsets_of_a_deleted_topic_are_not_those_of_one_that_took_its_name() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""))
    offsets.commit((OTHER, 8, ""), topic_id=ZERO_UUID)
    made_anew = b"\x02" * 16
    found = offsets.fetch([FIRST, OTHER], orders=made_anew, bills=made_anew)
    assert [each.committed and each.committed.offset for each in found] == [None, 8]
    assert [each.position for each in offsets.fetch(None, orders=made_anew, bills=made_anew)] == [OTHER]
    assert [each.committed and each.committed.offset for each in offsets.fetch([FIRST], orders=ORDERS_ID)] == [7]
    found = offsets.fetch([FIRST])
    assert [each.committed and each.committed.offset for each in found] == [7], (
        "a topic that is not known hides nothing"
    )


def test_an_open_transaction_is_told_where_that_is_asked() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""))
    offsets.coordinator.offsets.commit_pending(1, "a", FIRST, Committed(9))
    offsets.coordinator.offsets.commit_pending(1, "a", SECOND, Committed(9))
    found = offsets.fetch([FIRST, SECOND, OTHER], require_stable=True)
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert [(each.committed, each.error) for each in found] == [
        (None, unstable),
        (None, unstable),
        (None, ErrorCode.NONE),
    ]
    assert [each.error for each in offsets.fetch(None, require_stable=True)] == [unstable]
    assert [each.error for each in offsets.fetch([FIRST, SECOND])] == [ErrorCode.NONE] * 2


# -- deletion ------------------------------------------------------------------------------------------------------


def test_deleted_are_offsets_of_topics_that_nobody_reads() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""), (OTHER, 8, ""))
    errors = offsets.delete(group(None, "orders"), FIRST, OTHER, ("bills", 9), OTHER)
    assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, *[ErrorCode.NONE] * 3]
    assert offsets.of() == {FIRST: 7}
    assert offsets.outbox.log[2:] == [tombstone("a", OTHER)], "once, and for what there is"


def test_deleting_takes_time_by_the_number_of_offsets_and_not_by_its_square() -> None:
    offsets = Offsets()
    positions = [("orders", index) for index in range(20_000)]
    offsets.commit(*((position, 7, "") for position in positions))
    began_s = time.thread_time()
    assert offsets.delete(group(), *positions) == [ErrorCode.NONE] * len(positions)
    assert time.thread_time() - began_s < 1.0
    assert offsets.of() == {}


def test_what_a_transaction_has_pending_is_deleted_too() -> None:
    offsets = Offsets()
    offsets.coordinator.offsets.commit_pending(1, "a", FIRST, Committed(9))
    assert offsets.delete(group(), FIRST) == [ErrorCode.NONE]
    assert offsets.outbox.log == [tombstone("a", FIRST)]
    offsets.coordinator.offsets.end_transaction(1, is_commit=True)
    assert offsets.of() == {}


def test_many_offsets_are_removed_in_batches_each_of_which_may_be_refused() -> None:
    offsets = Offsets()
    count = 2 * RECORDS_TOGETHER_MAX + 1
    offsets.commit(*((("orders", index), index, "") for index in range(count)))
    before = offsets.of()
    offsets.outbox.refuses = True
    offsets.coordinator.remove_topics("a", {"orders": ORDERS_ID})
    assert offsets.of() == {}
    offsets.outbox.undo()
    assert offsets.of() == before
    offsets.outbox.refuses = False
    offsets.coordinator.remove_topics("a", {"orders": ORDERS_ID})
    sizes = [len(records) for _, records in offsets.outbox.batches]
    assert sizes == [count, RECORDS_TOGETHER_MAX, RECORDS_TOGETHER_MAX, 1]


def test_of_a_deleted_topic_go_its_own_offsets_and_those_of_no_known_topic() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""))
    offsets.commit((SECOND, 8, ""), topic_id=ZERO_UUID)
    offsets.commit((OTHER, 9, ""), topic_id=b"\x02" * 16)
    offsets.coordinator.offsets.commit_pending(1, "a", ("orders", 2), Committed(9))
    offsets.coordinator.remove_topics("a", {"orders": ORDERS_ID, "bills": b"\x03" * 16})
    assert offsets.of() == {OTHER: 9}
    assert offsets.coordinator.offsets.pending_positions("a") == set()


def test_a_pending_offset_of_a_topic_that_took_the_name_is_not_the_deleted_ones() -> None:
    offsets, another_id = Offsets(), b"\x02" * 16
    offsets.commit((FIRST, 7, ""), (SECOND, 8, ""))
    offsets.coordinator.offsets.commit_pending(1, "a", FIRST, Committed(9, topic_id=another_id))
    offsets.coordinator.offsets.commit_pending(1, "a", SECOND, Committed(9, topic_id=ORDERS_ID))
    offsets.coordinator.remove_topics("a", {"orders": ORDERS_ID})
    assert offsets.of() == {FIRST: 7}, "a tombstone would remove what is pending, too"
    assert offsets.coordinator.offsets.pending_positions("a") == {FIRST}


def test_all_of_a_group_can_be_taken_back() -> None:
    offsets = Offsets()
    offsets.commit((SECOND, 8, ""), (FIRST, 7, ""))
    offsets.coordinator.offsets.commit_pending(1, "a", OTHER, Committed(9))
    records, undos = offsets.coordinator.remove_all("a")
    assert records == [tombstone("a", position) for position in (OTHER, FIRST, SECOND)]
    assert (offsets.of(), offsets.coordinator.offsets.pending_positions("a")) == ({}, set())
    for undo in reversed(undos):
        undo()
    assert offsets.of() == {FIRST: 7, SECOND: 8}
    assert offsets.coordinator.offsets.pending_positions("a") == {OTHER}


# -- expiry --------------------------------------------------------------------------------------------------------


def test_an_offset_expires_when_its_retention_has_passed() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""))
    assert not offsets.coordinator.expire(group(), at(10 * MINUTE_MS - 1))
    assert offsets.of() == {FIRST: 7}
    assert offsets.coordinator.expire(group(), at(10 * MINUTE_MS))
    assert offsets.of() == {}
    assert offsets.outbox.log[1:] == [tombstone("a", FIRST)]
    assert offsets.coordinator.expire(group(), at()), "a group without offsets has none left"


def test_an_offset_with_a_time_of_its_own_expires_by_that() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""), retention_ms=20 * MINUTE_MS)
    assert not offsets.coordinator.expire(group(), at(20 * MINUTE_MS - 1))
    assert offsets.coordinator.expire(group(), at(20 * MINUTE_MS))


def test_what_the_group_still_reads_or_holds_does_not_expire() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""), (OTHER, 8, ""))
    assert not offsets.coordinator.expire(group(None), at(99 * MINUTE_MS))
    assert offsets.of() == {FIRST: 7, OTHER: 8}
    assert not offsets.coordinator.expire(group(START_MS, "orders"), at(99 * MINUTE_MS))
    assert offsets.of() == {FIRST: 7}


def test_what_an_open_transaction_is_about_to_commit_does_not_expire() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""), (SECOND, 8, ""))
    offsets.coordinator.offsets.commit_pending(1, "a", FIRST, Committed(9))
    assert not offsets.coordinator.expire(group(), at(99 * MINUTE_MS))
    assert offsets.of() == {FIRST: 7}
    offsets.coordinator.offsets.end_transaction(1, is_commit=False)
    assert offsets.coordinator.expire(group(), at(99 * MINUTE_MS))


def test_expiry_that_is_refused_is_tried_again_later() -> None:
    offsets = Offsets()
    offsets.commit((FIRST, 7, ""))
    offsets.outbox.refuses = True
    offsets.coordinator.expire(group(), at(10 * MINUTE_MS))
    offsets.outbox.undo()
    assert offsets.of() == {FIRST: 7}


@pytest.mark.parametrize(
    ("kind", "expires_after_ms"),
    [
        ("simple", 600_000),
        ("empty", 700_000),
        ("reads another topic", 600_000),
        ("reads it", None),
        ("other protocol type", None),
    ],
)
def test_from_when_on_retention_counts_is_for_the_group_to_say(kind: str, expires_after_ms: int | None) -> None:
    """A simple group's from the commit, an empty one's from when it became so, a stable one's for what it does not
    read (OffsetExpirationConditionImpl)."""
    retention = {"offsets.retention.minutes": "10", "offsets.retention.check.interval.ms": "1000"}
    world = World(retention | {"group.max.session.timeout.ms": "1000000000"})
    member: tuple[str, int] | None = None
    if kind == "simple":
        world.commit("a", {FIRST: 7})
    else:
        topics = ("bills",) if kind == "reads another topic" else ("orders",)
        type_ = "connect" if kind == "other protocol type" else "consumer"
        member = world.enter("a", topics, type_, session_timeout_ms=100_000_000)
        world.commit("a", {FIRST: 7}, member_id=member[0], generation=member[1])
    world.wait(100_000)
    if kind == "empty" and member is not None:
        world.leave("a", member[0])
    if expires_after_ms is None:
        world.wait(10_000_000)
        assert world.offsets("a") == {FIRST: 7}
    else:
        world.wait(expires_after_ms - 100_000 - 1)
        assert world.offsets("a") == {FIRST: 7}
        world.wait(1_001)
        assert world.offsets("a") == {}


# -- histories -----------------------------------------------------------------------------------------------------

POSITIONS = st.sampled_from((FIRST, SECOND, OTHER))
CHANGES = st.one_of(
    st.tuples(st.just("commit"), POSITIONS, st.integers(0, 9)),
    st.tuples(st.just("pending"), POSITIONS, st.integers(0, 9)),
    st.tuples(st.just("delete"), POSITIONS, st.just(0)),
    st.tuples(st.just("topic"), POSITIONS, st.just(0)),
    st.tuples(st.just("expire"), POSITIONS, st.just(0)),
)


@settings(deadline=None)
@given(st.lists(CHANGES, max_size=6), st.lists(CHANGES, min_size=1, max_size=6))
def test_whatever_is_refused_is_as_before(
    before: list[tuple[str, Position, int]], refused: list[tuple[str, Position, int]]
) -> None:
    offsets = Offsets()
    for change in before:
        _change(offsets, *change)
    committed, pending = dict(offsets.coordinator.offsets.of("a")), offsets.coordinator.offsets.pending_positions("a")
    offsets.outbox.refuses = True
    for change in refused:
        if change[0] != "pending":  # these have no record of the coordinator's
            _change(offsets, *change)
    offsets.outbox.undo()
    assert dict(offsets.coordinator.offsets.of("a")) == committed
    assert offsets.coordinator.offsets.pending_positions("a") == pending


def _change(offsets: Offsets, kind: str, position: Position, offset: int) -> None:
    match kind:
        case "commit":
            offsets.commit((position, offset, ""))
        case "pending":
            offsets.coordinator.offsets.commit_pending(offset, "a", position, Committed(offset))
        case "delete":
            offsets.delete(group(), position)
        case "topic":
            offsets.coordinator.remove_topics("a", {position[0]: ORDERS_ID})
        case _:
            offsets.coordinator.expire(group(), at(99 * MINUTE_MS))
