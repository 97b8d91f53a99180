"""Topics that change under a consumer group, and regular expressions."""

from odradek.broker.group.consumer.group_values import GroupEpoch
from odradek.broker.group.consumer.requests import ConsumerHeartbeat, Sight
from odradek.protocol.errors import ErrorCode
from tests.broker.group.consumer.rig import (
    Rig,
    joining,
    refused_with,
)


# --------------------------------------------------------------------------------------------------------------- topics
def test_new_partitions_are_assigned_at_the_next_heartbeat() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 1)
    rig.join("a", "orders")
    rig.topics.put("orders", 2)
    rig.group.metadata_changed(["orders"], rig.now)
    answer = rig.beat("a", 2)
    assert (answer.member_epoch, answer.assigned) == (3, {topic_id: (0, 1)})


def test_a_topic_that_is_created_deleted_and_made_again_is_followed() -> None:
    rig = Rig()
    assert rig.join("a", "orders").assigned == {}
    first = rig.topics.put("orders", 1)
    rig.group.metadata_changed(["orders"], rig.now)
    assert rig.beat("a", 2).assigned == {first: (0,)}
    second = rig.topics.put("orders", 1, anew=True)
    rig.group.metadata_changed(["orders"], rig.now)
    assert rig.beat("a", 3).assigned == {}, "the old one has to be given up first"
    assert rig.beat("a", 3, {}).assigned == {second: (0,)}
    rig.topics.remove("orders")
    rig.group.metadata_changed(["orders"], rig.now)
    assert rig.beat("a", 4).assigned == {}
    assert rig.beat("a", 4, {}).member_epoch == 5
    assert rig.state.group == GroupEpoch(5, 0)


def test_other_racks_lead_to_an_assignment_and_other_topics_do_not() -> None:
    rig = Rig()
    rig.topics.put("orders", 1)
    rig.join("a", "orders")
    rig.topics.put("bills", 1)
    rig.group.metadata_changed(["bills"], rig.now)
    assert rig.beat("a", 2).member_epoch == 2
    rig.topics.put("orders", 1, (frozenset({"west"}),))
    rig.group.metadata_changed(["orders"], rig.now)
    assert rig.beat("a", 2).member_epoch == 3
    rig.group.metadata_changed(["orders"], rig.now)
    assert rig.beat("a", 3).member_epoch == 3


def test_what_has_changed_while_nobody_led_is_seen_after_a_load() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 1)
    rig.join("a", "orders")
    rig.topics.put("orders", 2)
    rig.reload()
    assert rig.beat("a", 2).assigned == {topic_id: (0, 1)}


# ---------------------------------------------------------------------------------------------------------- expressions
def test_an_expression_subscribes_to_what_it_matches_now_and_later() -> None:
    rig = Rig()
    orders, _ = rig.topics.put("shop.orders", 1), rig.topics.put("bills", 1)
    assert rig.join("a", topic_names=None, topic_regex="shop.*").assigned == {orders: (0,)}
    returns = rig.topics.put("shop.returns", 1)
    rig.group.metadata_changed(["shop.returns"], rig.now)
    assert rig.beat("a", 2).assigned == {orders: (0,), returns: (0,)}
    rig.topics.remove("shop.orders")
    rig.group.metadata_changed(["shop.orders"], rig.now)
    assert rig.beat("a", 3).assigned == {returns: (0,)}
    assert rig.group.subscribed_topics() == {"shop.returns"}
    rig.reload()
    assert rig.group.subscribed_topics() == {"shop.returns"}


def test_names_and_an_expression_count_together_and_the_empty_one_ends_it() -> None:
    rig = Rig()
    orders, bills = rig.topics.put("shop.orders", 1), rig.topics.put("bills", 1)
    assert rig.join("a", "bills", topic_regex="shop.*").assigned == {orders: (0,), bills: (0,)}
    assert rig.beat("a", 2, topic_regex="").assigned == {bills: (0,)}
    assert rig.state.regexes == {}


def test_an_expression_that_nobody_has_any_more_is_deleted() -> None:
    rig = Rig()
    rig.join("a", topic_names=None, topic_regex="shop.*")
    rig.join("b", topic_names=None, topic_regex="shop.*")
    rig.beat("a", -1)
    assert list(rig.state.regexes) == ["shop.*"]
    rig.beat("b", 3, topic_regex="x.*")
    assert list(rig.state.regexes) == ["x.*"]
    rig.beat("b", -1)
    assert rig.state.regexes == {}


def test_an_expression_that_is_none_is_refused() -> None:
    rig = Rig()
    rig.join("a", "orders")
    refused_with(ErrorCode.INVALID_REGULAR_EXPRESSION, rig, joining("b", topic_names=None, topic_regex="("))
    refused_with(ErrorCode.INVALID_REGULAR_EXPRESSION, rig, ConsumerHeartbeat("a", 2, topic_regex="("))
    assert rig.beat("a", 2).member_epoch == 2


# --------------------------------------------------------------------------------------------------------------- sight
def seeing(generation: int, *names: str) -> Sight:
    """A member that may see these."""

    def has(name: str) -> bool:
        return name in names

    return Sight(generation, has)


def test_an_expression_matches_only_what_the_member_may_see() -> None:
    rig = Rig()
    orders, _ = rig.topics.put("shop.orders", 1), rig.topics.put("shop.salaries", 1)
    sight = seeing(1, "shop.orders", "shop.returns")
    assert rig.join("a", topic_names=None, topic_regex="shop.*", sight=sight).assigned == {orders: (0,)}
    returns, _ = rig.topics.put("shop.returns", 1), rig.topics.put("shop.bonuses", 1)
    rig.group.metadata_changed(["shop.returns", "shop.bonuses"], rig.now)
    assert rig.beat("a", 2, sight=sight).assigned == {orders: (0,), returns: (0,)}
    assert rig.group.subscribed_topics() == {"shop.orders", "shop.returns"}


def test_an_expression_is_resolved_again_when_rights_have_changed() -> None:
    rig = Rig()
    orders, returns = rig.topics.put("shop.orders", 1), rig.topics.put("shop.returns", 1)
    rig.join("a", topic_names=None, topic_regex="shop.*", sight=seeing(1, "shop.orders"))
    sight = seeing(2, "shop.orders", "shop.returns")
    assert rig.beat("a", 2, sight=sight).assigned == {orders: (0,), returns: (0,)}
    assert rig.beat("a", 3, sight=sight).assigned is None, "rights are those of before"
    assert rig.beat("a", 3, sight=seeing(3, "shop.returns")).assigned == {returns: (0,)}
    assert rig.group.subscribed_topics() == {"shop.returns"}


def test_until_a_member_is_heard_of_after_a_load_expressions_keep_their_topics() -> None:
    """Nobody has said yet what may be seen."""
    rig = Rig()
    rig.topics.put("shop.orders", 1)
    rig.join("a", topic_names=None, topic_regex="shop.*", sight=seeing(1, "shop.orders"))
    rig.topics.put("shop.salaries", 1)
    rig.reload()
    rig.group.look_at_topics("a", rig.now)
    assert rig.group.subscribed_topics() == {"shop.orders"}
    rig.beat("a", 2, sight=seeing(1, "shop.orders"))
    assert rig.group.subscribed_topics() == {"shop.orders"}
