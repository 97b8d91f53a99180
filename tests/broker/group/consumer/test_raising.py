"""Each reason for which the epoch of a consumer group is raised: what is remembered of it, and when it is forgotten."""

import pytest

from odradek.broker.group.consumer.raising import topics_changed
from odradek.broker.group.consumer.requests import ConsumerHeartbeat
from odradek.broker.group.rebalance import REASON_SIZE_MAX, REBALANCES_KEPT, Rebalance, RebalanceCause
from odradek.protocol.errors import ErrorCode
from tests.broker.group.consumer.rig import REBALANCE_MS, SESSION_MS, Rig, joining, parts, refused_with, two_members


def last(rig: Rig) -> Rebalance:
    return rig.group.description().rebalances[-1]


def said(rig: Rig) -> tuple[RebalanceCause, str, str | None, str]:
    """Of the last rebalance: cause, member, instance, reason."""
    found = last(rig)
    return found.cause, found.member_id, found.instance_id, found.reason


# ------------------------------------------------------------------------------------------------- members come and go
def test_a_member_that_joins() -> None:
    rig = Rig()
    rig.join("a", "bills")
    expected = Rebalance(
        rig.now.unix_ms,
        1,
        RebalanceCause.MEMBER_JOINED,
        "a",
        None,
        "member a joined, subscribed to bills",
        None,
    )
    assert rig.group.description().rebalances == (expected,)
    rig.join("b", instance_id="i", topic_regex="o.*", topic_names=None)
    said_of_b = "member b joined, subscribed to the regular expression o.*"
    assert said(rig) == (RebalanceCause.MEMBER_JOINED, "b", "i", said_of_b)
    assert last(rig).generation == 2


def test_a_first_member_without_a_subscription() -> None:
    rig = Rig()
    rig.join("a")
    assert said(rig) == (RebalanceCause.MEMBER_JOINED, "a", None, "member a joined, subscribed to nothing")


def test_a_member_that_leaves_was_heard_of_before() -> None:
    rig, _ = two_members()
    heard_ms = rig.now.unix_ms
    rig.later(3_000)
    rig.beat("a", -1)
    assert said(rig) == (RebalanceCause.MEMBER_LEFT, "a", None, "member a left")
    assert (last(rig).started_ms, last(rig).last_heard_ms) == (heard_ms + 3_000, heard_ms)


def test_a_member_whose_session_expires() -> None:
    rig, _ = two_members()
    heard_ms = rig.now.unix_ms
    rig.later(1_000)
    rig.beat("b", 3)
    rig.later(SESSION_MS - 1_000)
    assert said(rig) == (RebalanceCause.SESSION_EXPIRED, "a", None, "member a was not heard of in time")
    assert (last(rig).started_ms, last(rig).last_heard_ms) == (heard_ms + SESSION_MS, heard_ms)


def test_a_member_that_gives_nothing_up_in_time() -> None:
    rig, topic_id = two_members()
    for _ in range(REBALANCE_MS // 10_000):
        rig.beat("a", 2, parts(topic_id, 0, 1, 2, 3))
        rig.beat("b", 3)
        rig.later(10_000)
    assert said(rig) == (RebalanceCause.REVOCATION_EXPIRED, "a", None, "member a did not give up partitions in time")
    assert last(rig).last_heard_ms == rig.now.unix_ms - 10_000, "it lives, and does not let go"


# ------------------------------------------------------------------------------------------------------- subscriptions
def test_a_member_that_changes_its_subscription() -> None:
    rig = Rig()
    rig.join("a", "orders")
    rig.later(500)
    rig.beat("a", 2, topic_names=frozenset(("bills",)), topic_regex="o.*")
    text = "member a subscribed to bills and the regular expression o.*"
    assert said(rig) == (RebalanceCause.SUBSCRIPTION_CHANGED, "a", None, text)
    assert last(rig).last_heard_ms == rig.now.unix_ms - 500


def test_only_the_first_topics_are_named() -> None:
    rig = Rig()
    rig.join("a", *(f"t{index:03}" for index in range(300)))
    assert last(rig).reason.endswith("t008, t009 and 290 more")
    rig.join("b", *(f"{index}" * 200 for index in range(9)))
    assert len(last(rig).reason) == REASON_SIZE_MAX


def test_a_static_member_that_is_replaced_by_one_with_another_subscription() -> None:
    rig = Rig()
    rig.join("a", "orders", instance_id="i")
    rig.later(100)
    rig.beat("a", -2, instance_id="i")
    before = rig.group.description().rebalances
    rig.join("b", "orders", instance_id="i")
    assert rig.group.description().rebalances == before, "nobody is to do anything"
    rig.later(100)
    rig.beat("b", -2, instance_id="i")
    rig.join("c", "bills", instance_id="i")
    text = "static member i came back as c, subscribed to bills"
    assert said(rig) == (RebalanceCause.STATIC_MEMBER_REPLACED, "c", "i", text)
    assert last(rig).last_heard_ms == rig.now.unix_ms - 100, "the former one"


def test_a_static_member_that_is_away_too_long() -> None:
    rig = Rig()
    rig.join("a", "orders", instance_id="i")
    rig.beat("a", -2, instance_id="i")
    rig.later(SESSION_MS)
    assert said(rig) == (RebalanceCause.SESSION_EXPIRED, "a", "i", "member a was not heard of in time")


# -------------------------------------------------------------------------------------------------------------- topics
def test_topics_that_change() -> None:
    rig = Rig()
    rig.topics.put("orders", 1)
    rig.join("a", "orders", "bills")
    rig.topics.put("orders", 2)
    rig.topics.put("other", 1)
    rig.group.metadata_changed(["orders", "other"], rig.now)
    rig.beat("a", 2)
    assert said(rig) == (RebalanceCause.TOPICS_CHANGED, "", None, "topics changed: orders")
    assert last(rig).last_heard_ms is None
    rig.topics.put("orders", 3)
    rig.reload()
    rig.beat("a", 3)
    assert said(rig) == (RebalanceCause.TOPICS_CHANGED, "", None, "topics of the group changed")


def test_an_expression_that_matches_other_topics() -> None:
    rig = Rig()
    rig.topics.put("orders-1", 1)
    rig.join("a", topic_regex="orders-.*", topic_names=None)
    rig.topics.put("orders-2", 1)
    rig.topics.remove("orders-1")
    rig.group.metadata_changed(["orders-1", "orders-2"], rig.now)
    rig.beat("a", 2)
    text = "regular expression orders-.* matches orders-2 now and does not match orders-1 any more"
    assert said(rig) == (RebalanceCause.REGEX_RESOLVED, "", None, text)


@pytest.mark.parametrize("changed", [None, (), ("other",)])
def test_where_no_name_is_known_none_is_told(changed: tuple[str, ...] | None) -> None:
    assert topics_changed(changed, ["orders"], {}).reason == "topics of the group changed"


# --------------------------------------------------------------------------------------------- kept, forgotten, counted
def test_the_last_ones_are_kept() -> None:
    rig = Rig()
    for index in range(REBALANCES_KEPT + 2):
        rig.join(f"m{index}", "orders")
    assert [each.member_id for each in rig.group.description().rebalances] == [f"m{n}" for n in range(2, 12)]


def test_what_the_log_refuses_is_forgotten() -> None:
    rig, _ = two_members()
    before = rig.group.description().rebalances
    rig.send(ConsumerHeartbeat("a", -1))
    rig.send(joining("c", "orders"))
    assert len(rig.group.description().rebalances) == len(before) + 2
    rig.refuse()
    assert rig.group.description().rebalances == before


def test_what_was_refused_in_the_middle_is_forgotten() -> None:
    """The expression is compiled after the member is admitted."""
    rig, _ = two_members()
    before = rig.group.description().rebalances
    refused_with(ErrorCode.INVALID_REGULAR_EXPRESSION, rig, joining("c", topic_names=None, topic_regex="*"))
    assert rig.group.description().rebalances == before


def test_who_leads_after_a_failover_knows_none() -> None:
    rig, _ = two_members()
    rig.reload()
    assert rig.group.description().rebalances == ()
    rig.later(SESSION_MS)
    assert last(rig).last_heard_ms is None, "the session began with the load: that is no heartbeat"


def test_they_are_counted_by_cause() -> None:
    rig = Rig()
    rig.join("a", "orders")
    rig.beat("a", -1)
    assert rig.counts.rebalances == {"member joined": 1, "member left": 1}
