"""The machine of a shard: groups come and go, what its records say is what it does, and what is refused is undone."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.coordinator.machine import Now, StoredRecord, Waiting
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.requests import Heartbeat, Join, Leave, Leaving, OfferedProtocol, Sync
from odradek.broker.group.machine import DUE_TOGETHER_MAX, NO_PRODUCER_ID, GroupMachine
from odradek.broker.group.offsets import Committed, Position
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.stored.group_records import encode_key, encode_value
from odradek.protocol.stored.offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.broker.group.kept_outbox import DAY_MS, START_MS, TOPIC_IDS, Asked, World, seen

FIRST, SECOND, OTHER = ("orders", 0), ("orders", 1), ("bills", 0)
WEEK_MS = 7 * DAY_MS
SESSION_MS = 10_000


def code_of(operation: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        operation()
    return raised.value.code


RANGE = (OfferedProtocol("range", b""),)
NEW = Join("", "", "", "consumer", RANGE, 10_000, 10_000, requires_known_member_id=True)
"""A member that is given its id first."""
NOBODY = "nobody"
FROM_NOBODY: Mapping[str, Callable[[GroupMachine, Waiting[Any], Now], None]] = {
    "join": lambda machine, waiting, now: machine.join("a", NEW._replace(member_id=NOBODY), waiting, now),
    "sync": lambda machine, waiting, now: machine.sync("a", Sync(NOBODY, 1), waiting, now),
    "heartbeat": lambda machine, waiting, now: machine.heartbeat("a", Heartbeat(NOBODY, 1), waiting, now),
    "leave": lambda machine, waiting, now: machine.leave("a", Leave((Leaving(NOBODY),)), waiting, now),
}


# -- groups come ---------------------------------------------------------------------------------------------------


def test_a_group_comes_to_be_with_a_commit_or_with_its_first_member() -> None:
    world = World()
    world.commit("simple", {FIRST: 7})
    world.enter("read")
    assert {group_id: group.state_name for group_id, group in world.machine.groups.items()} == {
        "simple": "Empty",
        "read": "Stable",
    }
    assert seen(world.replayed()) == seen(world.machine)


@pytest.mark.parametrize("name", FROM_NOBODY)
def test_a_member_of_no_group_is_unknown_and_makes_none(name: str) -> None:
    world = World()
    assert code_of(lambda: world.ask(FROM_NOBODY[name])) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.machine.groups == {}


def test_operators_hear_that_there_is_no_such_group() -> None:
    world = World()

    def describe(machine: GroupMachine, waiting: Waiting[Any], now: Now) -> None:
        machine.describe("a", waiting, now)

    assert code_of(lambda: world.ask(describe)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: world.delete("a")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: world.delete_offsets("a")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.fetch("a", [FIRST]) == {FIRST: None}
    assert world.machine.groups == {}


def test_who_was_given_an_id_and_never_comes_back_leaves_a_group_that_expires() -> None:
    world = World()
    assert world.ask(lambda machine, waiting, now: machine.join("a", NEW, waiting, now)).member_id
    assert set(world.machine.groups) == {"a"}, "it is stored, so that another leader knows of it, too"
    world.wait(20 * 60 * 1000)
    assert world.machine.groups == {}
    assert seen(world.replayed()) == {}


def test_where_the_group_could_not_be_stored_it_is_forgotten_with_who_was_expected() -> None:
    world = World()
    world.outbox.refuses = True
    world.machine.join("a", NEW, Asked(), world.now)
    world.outbox.undo()
    world.wait(9_999)
    assert set(world.machine.groups) == {"a"}
    world.wait(1)
    assert world.machine.groups == {}


# -- groups go -----------------------------------------------------------------------------------------------------


def test_a_group_with_members_is_not_deleted() -> None:
    world = World()
    member_id, _ = world.enter("a")
    assert code_of(lambda: world.delete("a")) is ErrorCode.NON_EMPTY_GROUP
    world.leave("a", member_id)
    world.delete("a")
    assert world.machine.groups == {}
    assert world.replayed().groups == {}


def test_a_deleted_group_takes_its_offsets_along_in_one_batch() -> None:
    world = World()
    member_id, generation = world.enter("a")
    world.commit("a", {FIRST: 7, OTHER: 8}, member_id=member_id, generation=generation)
    world.commit("b", {FIRST: 9})
    world.leave("a", member_id)
    count = len(world.outbox.batches)
    world.delete("a")
    [(entity_id, records)] = world.outbox.batches[count:]
    assert (entity_id, [record.value for record in records]) == ("a", [None] * 3)
    assert world.offsets("a") == {}
    assert seen(world.replayed()) == seen(world.machine)
    assert set(world.machine.groups) == {"b"}


def test_a_group_whose_deletion_is_refused_is_there_again() -> None:
    world = World()
    world.commit("a", {FIRST: 7, OTHER: 8})
    before = seen(world.machine)
    world.outbox.refuses = True
    world.delete("a")
    assert seen(world.machine) == {}
    world.outbox.undo()
    assert seen(world.machine) == before


def test_a_group_is_there_again_when_its_deleted_offset_is() -> None:
    """A refused commit had forgotten it, for it had nothing then."""
    world = World()
    world.commit("a", {FIRST: 7})
    before = seen(world.machine)
    world.outbox.refuses = True
    world.delete_offsets("a", FIRST)
    world.commit("a", {SECOND: 8})
    world.outbox.undo()
    assert seen(world.machine) == before


def test_an_empty_group_goes_with_its_last_offset() -> None:
    world = World()
    member_id, generation = world.enter("a")
    world.commit("a", {FIRST: 7}, member_id=member_id, generation=generation)
    world.wait(5_000)
    world.leave("a", member_id)
    world.wait(WEEK_MS - 60_000)
    assert world.offsets("a") == {FIRST: 7}
    world.wait(20 * 60_000)
    assert world.machine.groups == {}
    assert seen(world.replayed()) == {}


def test_a_group_that_committed_nothing_goes_at_the_next_look() -> None:
    world = World()
    member_id, _ = world.enter("a")
    world.leave("a", member_id)
    world.wait(9 * 60_000)
    assert set(world.machine.groups) == {"a"}
    world.wait(2 * 60_000)
    assert world.machine.groups == {}


def test_a_group_with_members_outlives_its_offsets() -> None:
    world = World({"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"})
    member_id, generation = world.enter("a", ("orders",))
    world.commit("a", {OTHER: 7}, member_id=member_id, generation=generation)
    beat = Heartbeat(member_id, generation)
    for _ in range(13):
        world.wait(5_000)
        world.ask(lambda machine, waiting, now: machine.heartbeat("a", beat, waiting, now))
    assert world.offsets("a") == {}
    assert world.machine.groups["a"].state_name == "Stable"


def test_all_groups_are_looked_at_in_steps() -> None:
    world = World()
    for number in range(3 * DUE_TOGETHER_MAX + 1):
        world.commit(f"group {number}", {FIRST: 7})
    world.machine.topics_deleted({"orders": TOPIC_IDS["orders"]}, world.now)
    assert world.machine.next_deadline_ms == 0
    world.machine.tick(world.now)
    left = [group_id for group_id in world.machine.groups if world.offsets(group_id)]
    assert len(left) == 2 * DUE_TOGETHER_MAX + 1
    assert world.settle() == 3
    assert not any(world.offsets(group_id) for group_id in world.machine.groups)


def test_a_deleted_topic_takes_its_offsets_along_and_no_others() -> None:
    world = World()
    another_id = b"\x07" * 16
    world.commit("a", {FIRST: 7, OTHER: 8})
    world.commit("a", {SECOND: 9}, topic_id=another_id)
    world.commit("b", {FIRST: 1}, topic_id=bytes(16))
    world.machine.topics_deleted({"orders": TOPIC_IDS["orders"]}, world.now)
    world.settle()
    assert world.offsets("a") == {OTHER: 8, SECOND: 9}, "another topic has taken the name by now"
    assert world.offsets("b") == {}, "of which topic it was is not known"
    assert seen(world.replayed()).keys() == {"a"}


# -- the log -------------------------------------------------------------------------------------------------------


def offset_record(offset: int, version: int = 4, group_id: str = "a") -> StoredRecord:
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=START_MS)
    return StoredRecord(
        encode_key(OffsetCommitKey(group=group_id, topic="orders", partition=0)), encode_value(value, version)
    )


@pytest.mark.parametrize("version", range(5))
def test_offsets_are_read_in_every_version_of_their_records(version: int) -> None:
    machine = World().machine
    assert machine.replay(*offset_record(7, version), NO_PRODUCER_ID) == "a"
    assert machine.offsets.offsets.of("a") == {FIRST: Committed(7, commit_timestamp_ms=START_MS)}


def test_offsets_of_the_earliest_releases_are_read() -> None:
    machine = World().machine
    key = encode_key(LegacyOffsetCommitKey(group="a", topic="orders", partition=0))
    value = LegacyOffsetCommitValue(offset=7, metadata="x", commit_timestamp=START_MS)
    assert machine.replay(key, encode_value(value, 0), NO_PRODUCER_ID) == "a"
    assert machine.offsets.offsets.of("a") == {FIRST: Committed(7, -1, "x", START_MS)}
    assert machine.replay(key, None, NO_PRODUCER_ID) == "a"
    assert machine.offsets.offsets.of("a") == {}


@pytest.mark.parametrize("key", [OffsetCommitKey(group="a", topic="orders", partition=0), GroupMetadataKey(group="a")])
def test_a_version_of_a_later_release_is_refused_with_a_sentence(key: OffsetCommitKey | GroupMetadataKey) -> None:
    machine = World().machine
    record = StoredRecord(encode_key(key), b"\x00\x09later")
    with pytest.raises(MalformedMessage, match=r"'a': a record of type \d in version 9, which a later release"):
        machine.replay(*record, NO_PRODUCER_ID)


def test_a_damaged_record_is_refused() -> None:
    machine = World().machine
    for record in (StoredRecord(b"\x00", b""), StoredRecord(offset_record(7).key, b"\x00\x04\x00")):
        with pytest.raises(MalformedMessage):
            machine.replay(*record, NO_PRODUCER_ID)


def test_a_type_that_is_not_known_is_nobodys() -> None:
    machine = World().machine
    assert machine.replay(b"\x00\x0bshare", b"\x00\x00", NO_PRODUCER_ID) is None
    assert machine.replay(b"\x00\x0bshare", None, NO_PRODUCER_ID) is None
    assert machine.groups == {}


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_of_a_transaction_count_with_its_marker(is_commit: bool) -> None:
    world = World()
    machine = world.machine
    machine.replay(*offset_record(5), NO_PRODUCER_ID)
    assert machine.replay(*offset_record(7), 1) == "a"
    assert world.offsets("a") == {FIRST: 5}
    assert world.fetch("a", [FIRST], require_stable=True) == {FIRST: ErrorCode.UNSTABLE_OFFSET_COMMIT}
    assert machine.replay_marker(1, is_commit=is_commit) == ["a"]
    assert world.offsets("a") == {FIRST: 7 if is_commit else 5}


def test_an_open_transaction_keeps_a_group_that_has_nothing_else() -> None:
    world = World()
    machine = world.machine
    machine.replay(*offset_record(7), 1)
    machine.loaded(world.now)
    assert set(machine.groups) == {"a"}
    world.wait(WEEK_MS + DAY_MS)
    assert set(machine.groups) == {"a"}
    machine.replay_marker(1, is_commit=False)
    world.wait(20 * 60_000)
    assert machine.groups == {}


def test_offsets_whose_group_has_no_record_any_more_make_a_simple_group() -> None:
    world = World()
    machine = world.machine
    machine.replay(*offset_record(7), NO_PRODUCER_ID)
    machine.replay(encode_key(GroupMetadataKey(group="a")), None, NO_PRODUCER_ID)
    machine.loaded(world.now)
    assert {group_id: group.protocol_type for group_id, group in machine.groups.items()} == {"a": None}


def test_pending_offsets_whose_group_has_no_record_any_more_make_a_simple_group() -> None:
    """Without it nobody would look whether they expire once they count."""
    world = World()
    machine = world.machine
    machine.replay(*offset_record(7), 1)
    machine.replay(encode_key(GroupMetadataKey(group="a")), None, NO_PRODUCER_ID)
    machine.loaded(world.now)
    assert set(machine.groups) == {"a"}


def test_what_is_only_left_of_a_group_as_tombstones_is_no_group() -> None:
    world = World()
    machine = world.machine
    machine.replay(*offset_record(7), NO_PRODUCER_ID)
    machine.replay(offset_record(7).key, None, NO_PRODUCER_ID)
    machine.loaded(world.now)
    assert machine.groups == {}


def test_the_newest_record_of_a_group_counts() -> None:
    machine = World().machine
    key = GroupMetadataKey(group="a")
    for generation in (3, 4):
        value = GroupMetadataValue(
            protocol_type="consumer", generation=generation, protocol=None, leader=None, members=[]
        )
        assert machine.replay(encode_key(key), encode_value(value, 3), NO_PRODUCER_ID) == "a"
    classic = machine.groups["a"]
    assert isinstance(classic, ClassicGroup)
    assert classic.generation == 4


def test_a_loaded_member_that_is_silent_is_removed_after_a_whole_session() -> None:
    world = World()
    world.enter("a")
    world.wait(9_000)
    world.machine = world.replayed()
    world.wait(9_999)
    assert world.machine.groups["a"].state_name == "Stable"
    world.wait(1)
    assert world.machine.groups["a"].state_name == "Empty"


# -- histories -----------------------------------------------------------------------------------------------------


class Commit(NamedTuple):
    group_id: str
    offsets: dict[Position, int]
    retention_ms: int


class DeleteOffset(NamedTuple):
    group_id: str
    position: Position


class Delete(NamedTuple):
    group_id: str


class TopicDeleted(NamedTuple):
    topic: str


class Pass(NamedTuple):
    """Time does."""

    duration_ms: int


class EnterOrLeave(NamedTuple):
    """Of the group's one member."""

    group_id: str


class InTransaction(NamedTuple):
    """A commit of a producer that knows no member."""

    group_id: str
    offsets: dict[Position, int]
    producer_id: int


class End(NamedTuple):
    """Of a transaction."""

    producer_id: int
    is_commit: bool


Step = Commit | InTransaction | End | DeleteOffset | Delete | TopicDeleted | Pass | EnterOrLeave
IDS, POSITIONS = st.sampled_from(("a", "b")), st.sampled_from((FIRST, SECOND, OTHER))
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Commit, IDS, st.dictionaries(POSITIONS, st.integers(0, 99), min_size=1), st.sampled_from((-1, 1_000))),
    st.builds(InTransaction, IDS, st.dictionaries(POSITIONS, st.integers(0, 99), min_size=1), st.integers(1, 2)),
    st.builds(End, st.integers(1, 2), st.booleans()),
    st.builds(DeleteOffset, IDS, POSITIONS),
    st.builds(Delete, IDS),
    st.builds(TopicDeleted, st.sampled_from(("orders", "bills"))),
    st.builds(Pass, st.sampled_from((1_000, 20 * 60_000, WEEK_MS))),
    st.builds(EnterOrLeave, IDS),
)


@settings(deadline=None)
@given(st.lists(st.tuples(STEPS, st.booleans()), max_size=20))
def test_what_the_log_has_is_what_the_machine_does_whatever_was_refused(steps: list[tuple[Step, bool]]) -> None:
    """Members are never refused here: they begin a rebalance by that (broker/group/classic)."""
    world = World()
    members: dict[str, tuple[str, int]] = {}
    for step, is_refused in steps:
        before = seen(world.machine)
        world.outbox.refuses = is_refused and not isinstance(step, Pass | EnterOrLeave)
        with suppress(KafkaError):
            _take(world, step, members)
        if world.outbox.refuses:
            world.outbox.undo()
            assert seen(world.machine) == before
        world.outbox.refuses = False
        assert seen(world.replayed()) == seen(world.machine)


def _take(world: World, step: Step, members: dict[str, tuple[str, int]]) -> None:
    """Raises KafkaError GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    match step:
        case Commit(group_id, offsets, retention_ms):
            member_id, generation = members.get(group_id, ("", -1))
            done = world.commit(
                group_id, offsets, member_id=member_id, generation=generation, retention_ms=retention_ms
            )
            assert done == [ErrorCode.NONE] * len(offsets)
        case InTransaction(group_id, offsets, producer_id):
            done = world.commit_in_transaction(group_id, offsets, producer_id=producer_id)
            assert done == [ErrorCode.NONE] * len(offsets)
        case End(producer_id, is_commit):
            world.end_transaction(producer_id, is_commit=is_commit)
        case DeleteOffset(group_id, position):
            world.delete_offsets(group_id, position)
        case Delete(group_id):
            world.delete(group_id)
        case TopicDeleted(topic):
            world.machine.topics_deleted({topic: TOPIC_IDS[topic]}, world.now)
            world.settle()
        case Pass(duration_ms):
            world.wait(duration_ms)
            if duration_ms >= SESSION_MS:
                members.clear()
        case EnterOrLeave(group_id):
            if group_id in members:
                world.leave(group_id, members.pop(group_id)[0])
            else:
                members[group_id] = world.enter(group_id, session_timeout_ms=SESSION_MS)
