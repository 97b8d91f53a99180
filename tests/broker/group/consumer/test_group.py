"""The rules of a consumer group one by one: joining, assignors, two phases, leaving, offsets, looks."""

import pytest

from odradek.broker.group.consumer.group_state import GroupPhase
from odradek.broker.group.consumer.group_values import ClassicMember, GroupEpoch, Key, Kind, MemberState
from odradek.broker.group.consumer.requests import ConsumerHeartbeat
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.consumer_group import ConsumerGroupMetadataKey
from odradek.protocol.stored.group_records import decode_key
from tests.broker.group.consumer.rig import (
    Options,
    Rig,
    joining,
    parts,
    phase_of,
    refused_with,
    two_members,
)


# -------------------------------------------------------------------------------------------------------------- joining
def test_the_first_member_gets_everything_at_once() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 3)
    assert phase_of(rig) is GroupPhase.DEAD
    answer = rig.join("a", "orders")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert answer.assigned == {topic_id: (0, 1, 2)}
    assert phase_of(rig) is GroupPhase.STABLE


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_says_nothing() -> None:
    rig = Rig()
    rig.topics.put("orders", 3)
    rig.join("a", "orders")
    count = len(rig.log)
    assert rig.beat("a", 2).assigned is None
    assert rig.beat("a", 2, rig.state.targets["a"].partitions).assigned is None
    assert len(rig.log) == count


def test_the_records_of_a_join_are_kafkas() -> None:
    rig = Rig()
    rig.topics.put("orders", 1)
    rig.send(joining("a", "orders"))
    kinds = [key.kind for key in rig.told(rig.commit())]
    assert kinds == [Kind.MEMBER, Kind.GROUP, Kind.TARGET, Kind.TARGET_EPOCH, Kind.CURRENT]


def test_members_with_equal_subscriptions_share_one_object() -> None:
    rig = Rig()
    rig.join("a", "orders", "bills")
    rig.join("b", "bills", "orders")
    a, b = rig.state.members.values()
    assert a.topic_names is b.topic_names


def test_a_full_heartbeat_is_told_the_assignment_again() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 2)
    rig.join("a", "orders")
    count = len(rig.log)
    again = joining("a", "orders")._replace(member_epoch=2, owned=parts(topic_id, 0))
    assert rig.ask(again).assigned == {topic_id: (0, 1)}
    assert len(rig.log) == count


def test_the_server_makes_member_ids_for_clients_of_version_0() -> None:
    rig = Rig()
    answer = rig.join("", "orders", member_id_required=False)
    assert answer.member_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert list(rig.state.members) == [answer.member_id]


def test_a_member_without_subscription_is_a_member() -> None:
    rig = Rig()
    answer = rig.join("a")
    assert (answer.member_epoch, answer.assigned) == (2, {})
    assert phase_of(rig) is GroupPhase.STABLE


def test_a_member_whose_join_was_not_answered_joins_again() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 2)
    assert rig.join("a", "orders") == rig.join("a", "orders")
    assert rig.state.group_epoch == 2
    assert rig.state.current("a").assigned == {topic_id: {0: 2, 1: 2}}


def test_a_fenced_member_joins_again_at_once() -> None:
    """Kafka 4.0 refuses epoch 0 to a member that it knows, until the session has expired."""
    rig, topic_id = two_members()
    refused_with(ErrorCode.FENCED_MEMBER_EPOCH, rig, ConsumerHeartbeat("a", 8))
    answer = rig.join("a", "orders")
    assert (answer.member_epoch, answer.assigned) == (3, {topic_id: (0, 1)})
    assert rig.beat("b", 3).assigned == {topic_id: (2, 3)}, "who joins again owns nothing"


@pytest.mark.parametrize(
    "request_",
    [
        joining("a", "orders", rebalance_timeout_ms=-1),
        joining("a", "orders", owned=None),
        joining("a", "orders", owned={b"0" * 16: frozenset((1,))}),
        joining("a", topic_names=None),
        joining("", "orders"),
        joining(" ", "orders"),
        joining("a", "orders", instance_id=""),
        joining("a", "orders", rack_id=" "),
        joining("a" * 40_000, "orders"),
        joining("a", topic_names=None, topic_regex="a" * 40_000),
        ConsumerHeartbeat("", 1, member_id_required=False),
        ConsumerHeartbeat("", -1),
        ConsumerHeartbeat("a", -2),
        ConsumerHeartbeat("a", -3),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(request_: ConsumerHeartbeat) -> None:
    rig = Rig()
    rig.join("z", "orders")
    refused_with(ErrorCode.INVALID_REQUEST, rig, request_)


def test_who_is_not_a_member_is_told_so() -> None:
    rig = Rig()
    refused_with(ErrorCode.GROUP_ID_NOT_FOUND, rig, ConsumerHeartbeat("a", 2))
    refused_with(ErrorCode.GROUP_ID_NOT_FOUND, rig, ConsumerHeartbeat("a", -1))
    rig.join("a")
    refused_with(ErrorCode.UNKNOWN_MEMBER_ID, rig, ConsumerHeartbeat("b", 2))
    refused_with(ErrorCode.UNKNOWN_MEMBER_ID, rig, ConsumerHeartbeat("b", -1))
    refused_with(ErrorCode.UNKNOWN_MEMBER_ID, rig, ConsumerHeartbeat("b", 2, instance_id="i"))


def test_a_full_group_takes_no_more_members_but_a_returning_static_one() -> None:
    rig = Rig(Options(group_consumer_max_size=2))
    rig.join("a", "orders", instance_id="i")
    rig.join("b", "orders")
    refused_with(ErrorCode.GROUP_MAX_SIZE_REACHED, rig, joining("c", "orders"))
    rig.join("b", "orders")
    rig.beat("a", -2, instance_id="i")
    assert rig.join("c", "orders", instance_id="i").member_id == "c"


# ------------------------------------------------------------------------------------------------------------ assignors
def test_an_assignor_that_is_not_offered_is_refused() -> None:
    rig = Rig(Options(group_consumer_assignors=("uniform",)))
    refused_with(ErrorCode.UNSUPPORTED_ASSIGNOR, rig, joining("a", server_assignor="range"))
    refused_with(ErrorCode.UNSUPPORTED_ASSIGNOR, rig, joining("a", server_assignor="sticky"))


def test_the_assignor_that_most_members_ask_for_is_taken() -> None:
    rig = Rig()
    rig.topics.put("orders", 4)
    rig.join("a", "orders")
    assert rig.group.description().assignor == "uniform"
    rig.join("b", "orders", server_assignor="range")
    assert rig.group.description().assignor == "range"
    rig.join("c", "orders", server_assignor="uniform")
    assert rig.group.description().assignor == "uniform", "equal: the broker's first"


def test_another_assignor_alone_is_no_reason_to_assign() -> None:
    rig = Rig()
    rig.topics.put("orders", 4)
    rig.join("a", "orders")
    assert rig.beat("a", 2, server_assignor="range").member_epoch == 2
    assert rig.state.members["a"].server_assignor == "range"


# ------------------------------------------------------------------------------------------------------- reconciliation
def test_a_partition_is_given_when_its_former_owner_has_given_it_up() -> None:
    rig, topic_id = two_members()
    assert phase_of(rig) is GroupPhase.RECONCILING
    assert rig.state.current("a").state is MemberState.UNREVOKED_PARTITIONS
    assert rig.beat("b", 3).assigned is None
    assert rig.state.current("b").state is MemberState.UNRELEASED_PARTITIONS
    assert rig.beat("a", 2, parts(topic_id, 0, 1, 2)).member_epoch == 2, "it still has one too many"
    assert rig.beat("b", 3).assigned is None, "nor is the other one free"
    assert rig.beat("a", 2, parts(topic_id, 0, 1)).member_epoch == 3
    assert rig.beat("b", 3).assigned == {topic_id: (2, 3)}
    assert phase_of(rig) is GroupPhase.STABLE


def test_who_does_not_say_what_it_owns_owns_all_that_it_was_given() -> None:
    rig, _ = two_members()
    assert rig.beat("a", 2).member_epoch == 2
    assert rig.state.current("a").state is MemberState.UNREVOKED_PARTITIONS


def test_the_previous_epoch_will_do_when_an_answer_was_lost() -> None:
    rig, topic_id = two_members()
    rig.beat("a", 2, parts(topic_id, 0, 1))
    answer = rig.beat("a", 2, parts(topic_id, 0, 1))
    assert answer.member_epoch == 3
    refused_with(ErrorCode.FENCED_MEMBER_EPOCH, rig, ConsumerHeartbeat("a", 2))
    refused_with(ErrorCode.FENCED_MEMBER_EPOCH, rig, ConsumerHeartbeat("a", 2, owned=parts(topic_id, 0, 3)))


def test_a_greater_epoch_is_fenced() -> None:
    rig, _ = two_members()
    refused_with(ErrorCode.FENCED_MEMBER_EPOCH, rig, ConsumerHeartbeat("a", 3))


def test_a_topic_that_was_unsubscribed_from_is_given_up_before_there_is_a_target() -> None:
    rig = Rig(Options(group_consumer_assignment_interval_ms=1_000))
    orders, bills = rig.topics.put("orders", 1), rig.topics.put("bills", 1)
    assert rig.join("a", "orders", "bills").assigned == {orders: (0,), bills: (0,)}
    answer = rig.beat("a", 2, topic_names=frozenset({"bills"}))
    assert (answer.member_epoch, answer.assigned) == (2, {bills: (0,)})
    assert rig.state.current("a").state is MemberState.UNREVOKED_PARTITIONS
    assert (rig.state.group_epoch, rig.state.assignment_epoch) == (3, 2)


def test_partitions_keep_the_epoch_in_which_they_were_assigned() -> None:
    rig, topic_id = two_members()
    assert rig.state.current("a").revoking == {topic_id: {2: 2, 3: 2}}
    rig.beat("a", 2, parts(topic_id, 0, 1))
    rig.beat("b", 3)
    assert rig.state.current("a").assigned == {topic_id: {0: 2, 1: 2}}
    assert rig.state.current("b").assigned == {topic_id: {2: 3, 3: 3}}


def test_a_member_in_a_state_of_a_newer_release_has_to_join_again() -> None:
    rig, _ = two_members()
    current = rig.state.current("a")._replace(state=MemberState.UNKNOWN, member_epoch=3)
    rig.state.apply(Key(Kind.CURRENT, "a"), current)
    refused_with(ErrorCode.FENCED_MEMBER_EPOCH, rig, ConsumerHeartbeat("a", 3))
    assert rig.join("a", "orders").member_epoch == 3
    assert rig.state.current("a").state is MemberState.STABLE


# -------------------------------------------------------------------------------------------------------------- leaving
def test_what_a_member_had_is_free_when_it_leaves() -> None:
    rig, topic_id = two_members()
    answer = rig.beat("a", -1)
    assert (answer.member_id, answer.member_epoch, answer.assigned) == ("a", -1, None)
    answer = rig.beat("b", 3)
    assert (answer.member_epoch, answer.assigned) == (4, {topic_id: (0, 1, 2, 3)})


def test_the_records_of_a_leave_are_kafkas() -> None:
    rig, _ = two_members()
    waiting = rig.send(ConsumerHeartbeat("a", -1))
    assert waiting.given is not None
    told = rig.told(rig.commit())
    assert list(told) == [Key(Kind.CURRENT, "a"), Key(Kind.TARGET, "a"), Key(Kind.MEMBER, "a"), Key(Kind.GROUP)]
    assert list(told.values()) == [None, None, None, GroupEpoch(4, rig.group._subscriptions.metadata_hash())]  # pyright: ignore[reportPrivateUsage]


def test_when_the_last_member_leaves_the_group_is_empty_and_can_be_deleted() -> None:
    rig = Rig()
    rig.topics.put("orders", 1)
    rig.join("a", "orders")
    with pytest.raises(KafkaError) as error:
        rig.group.validate_delete()
    assert error.value.code is ErrorCode.NON_EMPTY_GROUP
    rig.beat("a", -1)
    assert phase_of(rig) is GroupPhase.EMPTY
    rig.group.validate_delete()
    tombstones = rig.group.tombstones()
    assert isinstance(decode_key(tombstones[-1].key), ConsumerGroupMetadataKey), "by which a load knows that it is gone"
    assert {record.value for record in tombstones} == {None}


def test_a_group_that_was_empty_goes_on_with_its_epochs() -> None:
    rig = Rig()
    rig.topics.put("orders", 1)
    rig.join("a", "orders")
    rig.beat("a", -1)
    assert rig.join("b", "orders").member_epoch == 4


# -------------------------------------------------------------------------------------------------------------- offsets
def test_a_member_commits_with_an_older_epoch_what_it_still_has() -> None:
    rig, topic_id = two_members()
    rig.beat("a", 2, parts(topic_id, 0, 1))
    check = rig.group.validate_commit("a", None, 2, is_transactional=False, version=9)
    check.check(topic_id, 0)
    with pytest.raises(KafkaError) as error:
        check.check(topic_id, 2)
    assert error.value.code is ErrorCode.STALE_MEMBER_EPOCH
    rig.group.validate_fetch("a", 3)
    with pytest.raises(KafkaError):
        rig.group.validate_fetch("a", 2)


def test_a_transaction_that_knows_no_member_commits() -> None:
    rig, topic_id = two_members()
    rig.group.validate_commit("", None, -1, is_transactional=True, version=2).check(topic_id, 0)
    with pytest.raises(KafkaError) as error:
        rig.group.validate_commit("", "i", -1, is_transactional=True, version=3)
    assert error.value.code is ErrorCode.UNKNOWN_MEMBER_ID


# ---------------------------------------------------------------------------------------------------------------- looks
def test_the_description_says_what_members_have_and_are_to_have() -> None:
    rig, topic_id = two_members()
    described = rig.group.description()
    assert (described.state, described.group_epoch, described.assignment_epoch) == ("Reconciling", 3, 3)
    a, b = described.members
    assert (a.member_id, a.member_epoch, a.topic_names) == ("a", 2, ("orders",))
    assert [(one.topic_id, one.topic_name, one.partitions) for one in a.assigned] == [(topic_id, "orders", (0, 1))]
    assert [one.partitions for one in b.target] == [(2, 3)]
    assert b.assigned == ()
    rig.topics.remove("orders")
    assert rig.group.description().members[0].assigned == ()


def test_a_group_says_when_only_classic_members_are_left() -> None:
    rig = Rig()
    rig.join("a", "orders")
    assert not rig.group.is_all_classic
    rig.join("b", "orders")
    classic = rig.state.members["b"]._replace(classic=ClassicMember(10_000, (("range", b""),)))
    rig.state.apply(Key(Kind.MEMBER, "b"), classic)
    assert not rig.group.is_all_classic
    rig.beat("a", -1)
    assert rig.group.is_all_classic
    rig.state.apply(Key(Kind.MEMBER, "b"), None)
    assert not rig.group.is_all_classic, "it is empty"
