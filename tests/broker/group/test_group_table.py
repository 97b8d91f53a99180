"""Without members a group becomes one of the other kind: what is written of that, and what is undone."""

from typing import Any

import pytest

from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.requests import Join, OfferedProtocol
from odradek.broker.group.consumer.requests import JOIN_EPOCH, LEAVE_EPOCH, ConsumerHeartbeat, ConsumerHeartbeatAnswer
from odradek.broker.group.group import GroupKind
from odradek.protocol.consumer_protocol import Subscription, encode_subscription
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.consumer_group import ConsumerGroupMetadataKey
from odradek.protocol.stored.group_metadata import GroupMetadataKey
from odradek.protocol.stored.group_records import decode_key
from tests.broker.group.kept_outbox import Asked, World, seen

FIRST = ("orders", 0)
JOIN = ConsumerHeartbeat("m", JOIN_EPOCH, rebalance_timeout_ms=1_000, topic_names=frozenset(("orders",)), owned={})
RANGE = (OfferedProtocol("range", encode_subscription(Subscription(("orders",)))),)
CLASSIC_JOIN = Join("", "client", "/host", "consumer", RANGE, 10_000, 10_000)


def beat(world: World, request: ConsumerHeartbeat = JOIN, group_id: str = "a") -> ConsumerHeartbeatAnswer:
    answer: ConsumerHeartbeatAnswer = world.ask(
        lambda machine, waiting, now: machine.consumer_heartbeat(group_id, request, waiting, now)
    )
    return answer


def leave(world: World) -> None:
    beat(world, ConsumerHeartbeat("m", LEAVE_EPOCH))


def code_of(operation: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        operation()
    return raised.value.code


def written_since(world: World, count: int) -> list[tuple[str, bool]]:
    """The types of keys, and whether they are deleted."""
    records = [record for _, batch in world.outbox.batches[count:] for record in batch]
    return [(type(decode_key(record.key)).__name__, record.value is None) for record in records]


def classic(world: World) -> ClassicGroup:
    group = world.machine.groups["a"]
    assert isinstance(group, ClassicGroup)
    return group


def kind(world: World) -> GroupKind:
    return world.machine.groups["a"].kind


def causes(world: World) -> list[str]:
    """Why the group rebalanced, as either kind."""
    return [each.cause.value for each in world.machine.groups["a"].rebalances]


def test_an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets() -> None:
    world = World()
    member_id, generation = world.enter("a")
    world.commit("a", {FIRST: 7}, member_id=member_id, generation=generation)
    world.leave("a", member_id)
    count = len(world.outbox.batches)
    assert beat(world).assigned == {world.topic_ids["orders"]: (0,)}
    assert written_since(world, count)[0] == (GroupMetadataKey.__name__, True)
    assert (kind(world), world.offsets("a")) == (GroupKind.CONSUMER, {FIRST: 7})
    assert causes(world) == ["member joined", "member left", "member joined"]
    assert seen(world.replayed()) == seen(world.machine)


def test_an_empty_consumer_group_becomes_a_classic_one_and_keeps_its_offsets() -> None:
    world = World()
    epoch = beat(world).member_epoch
    world.commit("a", {FIRST: 7}, member_id="m", generation=epoch)
    leave(world)
    count = len(world.outbox.batches)
    world.enter("a")
    written = written_since(world, count)
    assert [name for name, is_deleted in written if is_deleted][-1] == ConsumerGroupMetadataKey.__name__
    assert written[-1] == (GroupMetadataKey.__name__, False)
    assert (kind(world), world.offsets("a")) == (GroupKind.CLASSIC, {FIRST: 7})
    assert causes(world) == ["member joined", "member left", "member joined"]
    assert seen(world.replayed()) == seen(world.machine)


def test_no_deadline_of_the_former_kind_is_left() -> None:
    world = World()
    for member_id in ("m", "n"):
        beat(world, JOIN._replace(member_id=member_id))
    for member_id in ("m", "n"):  # the first leave plans an assignment, which nobody needs after the second
        beat(world, ConsumerHeartbeat(member_id, LEAVE_EPOCH))
    member_id, _ = world.enter("a")
    world.wait(9_999)
    assert [member.member_id for member in classic(world).members] == [member_id]
    world.leave("a", member_id)
    world.machine.join("a", CLASSIC_JOIN._replace(requires_known_member_id=True), Asked(), world.now)
    beat(world)
    world.wait(20_000)
    assert kind(world) is GroupKind.CONSUMER


def test_a_group_that_only_commits_becomes_one_with_members_without_a_tombstone() -> None:
    world = World()
    world.commit("a", {FIRST: 7})
    count = len(world.outbox.batches)
    beat(world)
    assert GroupMetadataKey.__name__ not in dict(written_since(world, count))
    assert (kind(world), world.offsets("a")) == (GroupKind.CONSUMER, {FIRST: 7})


def test_a_conversion_that_is_refused_leaves_the_group_what_it_was() -> None:
    world = World()
    member_id, _ = world.enter("a")
    world.leave("a", member_id)
    before = seen(world.machine)
    world.outbox.refuses = True
    beat(world)
    world.outbox.undo()
    assert seen(world.machine) == before
    world.outbox.refuses = False
    beat(world)
    leave(world)
    before = seen(world.machine)
    world.outbox.refuses = True
    world.machine.join("a", CLASSIC_JOIN, Asked(), world.now)
    world.outbox.undo()
    assert (kind(world), seen(world.machine)) == (GroupKind.CONSUMER, before)
    assert seen(world.replayed()) == before


def test_a_member_that_is_no_member_changes_no_group() -> None:
    world = World()
    member_id, _ = world.enter("a")
    world.leave("a", member_id)
    stranger = JOIN._replace(member_epoch=7)
    assert code_of(lambda: beat(world, stranger)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: beat(world, stranger, "b")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert (kind(world), set(world.machine.groups)) == (GroupKind.CLASSIC, {"a"})
    beat(world)
    leave(world)
    known = CLASSIC_JOIN._replace(member_id="nobody")
    assert code_of(lambda: world.ask(lambda machine, waiting, now: machine.join("a", known, waiting, now))) is (
        ErrorCode.UNKNOWN_MEMBER_ID
    )
    assert kind(world) is GroupKind.CONSUMER


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (JOIN._replace(owned=None), ErrorCode.INVALID_REQUEST),
        (JOIN._replace(member_epoch=-3), ErrorCode.INVALID_REQUEST),
        (JOIN._replace(server_assignor="mine"), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (JOIN._replace(topic_regex="a.*"), ErrorCode.INVALID_REGULAR_EXPRESSION),  # there is no RE2 here
    ],
)
def test_a_heartbeat_that_is_refused_changes_no_group(request_: ConsumerHeartbeat, code: ErrorCode) -> None:
    world = World()
    assert code_of(lambda: beat(world, request_)) is code
    assert world.machine.groups == {}
    member_id, generation = world.enter("a")
    world.commit("a", {FIRST: 7}, member_id=member_id, generation=generation)
    world.leave("a", member_id)
    before, count = seen(world.machine), len(world.outbox.batches)
    assert code_of(lambda: beat(world, request_)) is code
    assert (seen(world.machine), len(world.outbox.batches)) == (before, count)


def test_tombstones_of_the_former_kind_do_not_touch_the_group_that_came_after() -> None:
    world = World()
    member_id, _ = world.enter("a")
    world.leave("a", member_id)
    beat(world)
    machine = world.new_machine(world.outbox)
    records = world.outbox.log
    for record in [*records, *(record for record in records if record.value is None)]:
        machine.replay(*record, -1)
    assert machine.groups["a"].kind is GroupKind.CONSUMER


def test_deadlines_of_a_deleted_group_do_not_trouble_another_of_its_name() -> None:
    world = World()
    for member_id in ("m", "n"):
        beat(world, JOIN._replace(member_id=member_id))
    for member_id in ("m", "n"):
        beat(world, ConsumerHeartbeat(member_id, LEAVE_EPOCH))
    world.delete("a")
    member_id, _ = world.enter("a")
    world.wait(9_999)
    assert [member.member_id for member in classic(world).members] == [member_id]


def test_a_deleted_consumer_group_is_gone_after_a_load() -> None:
    world = World()
    beat(world)
    assert code_of(lambda: world.delete("a")) is ErrorCode.NON_EMPTY_GROUP
    leave(world)
    world.delete("a")
    assert world.machine.groups == world.replayed().groups == {}
