"""Each state of a member, with each thing that may happen to it; then properties of any step."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.assignors.spec import Partitions
from odradek.broker.group.consumer.group_values import Current, MemberState
from odradek.broker.group.consumer.reconciliation import Aim, is_within, next_step
from odradek.protocol.errors import ErrorCode, KafkaError

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState
ALL = frozenset({T, U})


def aim(
    epoch: int,
    target: Mapping[bytes, set[int]],
    owned: Mapping[bytes, set[int]] | None = None,
    taken: frozenset[tuple[bytes, int]] = frozenset(),
    topics: frozenset[bytes] = ALL,
    changed: bool = False,
) -> Aim:
    def frozen(partitions: Mapping[bytes, set[int]]) -> Partitions:
        return {topic_id: frozenset(indexes) for topic_id, indexes in partitions.items()}

    def free(topic_id: bytes, index: int) -> bool:
        return (topic_id, index) not in taken

    return Aim(
        epoch,
        frozen(target),
        topics.__contains__,
        free,
        None if owned is None else frozen(owned),
        changed,
    )


HAS = {T: {0: 3, 1: 4}}
STEPS: list[tuple[str, Current, Aim, Current]] = [
    ("stable, nothing new", Current(5, 4, STABLE, HAS), aim(5, {T: {0, 1}}), Current(5, 4, STABLE, HAS)),
    ("stable, same target", Current(5, 4, STABLE, HAS), aim(6, {T: {0, 1}}), Current(6, 5, STABLE, HAS)),
    (
        "stable, more",
        Current(5, 4, STABLE, HAS),
        aim(6, {T: {0, 1, 2}}),
        Current(6, 5, STABLE, {T: {0: 3, 1: 4, 2: 6}}),
    ),
    (
        "stable, more, but taken",
        Current(5, 4, STABLE, HAS),
        aim(6, {T: {0, 1, 2}}, taken=frozenset({(T, 2)})),
        Current(6, 5, UNRELEASED, HAS),
    ),
    (
        "stable, less and more",
        Current(5, 4, STABLE, HAS),
        aim(6, {T: {0}, U: {7}}),
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4}}),
    ),
    (
        "stable, less, which it does not own",
        Current(5, 4, STABLE, HAS),
        aim(6, {T: {0}, U: {7}}, owned={T: {0}}),
        Current(6, 5, STABLE, {T: {0: 3}, U: {7: 6}}),
    ),
    (
        "stable, unsubscribed before there is a target",
        Current(5, 4, STABLE, {T: {0: 3}, U: {1: 4}}),
        aim(5, {T: {0}, U: {1}}, topics=frozenset({T}), changed=True),
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {U: {1: 4}}),
    ),
    (
        "stable, unsubscribed and given up already",
        Current(5, 4, STABLE, {T: {0: 3}, U: {1: 4}}),
        aim(5, {T: {0}, U: {1}}, owned={T: {0}}, topics=frozenset({T}), changed=True),
        Current(5, 5, STABLE, {T: {0: 3}}),
    ),
    (
        "stable, subscribed to more",
        Current(5, 4, STABLE, HAS),
        aim(5, {T: {0, 1}}, changed=True),
        Current(5, 4, STABLE, HAS),
    ),
    (
        "stable, a target older than the subscription",
        Current(5, 4, STABLE, HAS),
        aim(6, {T: {0, 1}, U: {0}}, topics=frozenset({T})),
        Current(6, 5, STABLE, HAS),
    ),
    (
        "unrevoked, not said",
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4}}),
        aim(6, {T: {0}}),
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4}}),
    ),
    (
        "unrevoked, still owned",
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4, 2: 4}}),
        aim(6, {T: {0}}, owned={T: {0, 2}}),
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4, 2: 4}}),
    ),
    (
        "unrevoked, given up",
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4}}),
        aim(6, {T: {0, 2}}, owned={T: {0}}),
        Current(6, 5, STABLE, {T: {0: 3, 2: 6}}),
    ),
    (
        "unrevoked, given up, and the newest target gives it back",
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4}}),
        aim(7, {T: {0, 1}}, owned={T: {0}}),
        Current(7, 5, STABLE, {T: {0: 3, 1: 7}}),
    ),
    (
        "unrevoked, given up, and the newest target takes more",
        Current(5, 5, UNREVOKED, {T: {0: 3, 2: 3}}, {T: {1: 4}}),
        aim(7, {T: {0}}, owned={T: {0, 2}}),
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {T: {2: 3}}),
    ),
    (
        "unrevoked, unsubscribed from more",
        Current(5, 5, UNREVOKED, {T: {0: 3}, U: {0: 3}}, {U: {1: 4}}),
        aim(6, {T: {0}}, owned={T: {0}, U: {0, 1}}, topics=frozenset({T}), changed=True),
        Current(5, 5, UNREVOKED, {T: {0: 3}}, {U: {0: 3, 1: 4}}),
    ),
    (
        "unreleased, still taken",
        Current(6, 5, UNRELEASED, HAS),
        aim(6, {T: {0, 1, 2}}, taken=frozenset({(T, 2)})),
        Current(6, 5, UNRELEASED, HAS),
    ),
    (
        "unreleased, one of two is free",
        Current(6, 5, UNRELEASED, HAS),
        aim(6, {T: {0, 1, 2, 3}}, taken=frozenset({(T, 2)})),
        Current(6, 6, UNRELEASED, {T: {0: 3, 1: 4, 3: 6}}),
    ),
    (
        "unreleased, free",
        Current(6, 5, UNRELEASED, HAS),
        aim(6, {T: {0, 1, 2}}),
        Current(6, 6, STABLE, {T: {0: 3, 1: 4, 2: 6}}),
    ),
    (
        "unreleased, a newer target takes something",
        Current(6, 5, UNRELEASED, HAS),
        aim(7, {T: {0, 2}}),
        Current(6, 6, UNREVOKED, {T: {0: 3}}, {T: {1: 4}}),
    ),
    (
        "unknown, with nothing",
        Current(5, 4, UNKNOWN, HAS),
        aim(7, {T: {0}}, owned={}),
        Current(7, 5, STABLE, {T: {0: 3}}),
    ),
]


@pytest.mark.parametrize(("before", "towards", "after"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS])
def test_a_member_takes_the_step(before: Current, towards: Aim, after: Current) -> None:
    step = next_step(before, towards)
    assert step == after
    assert (step is before) == (after == before)


@pytest.mark.parametrize("owned", [None, {T: {0}}])
def test_a_member_in_an_unknown_state_is_fenced(owned: dict[bytes, set[int]] | None) -> None:
    with pytest.raises(KafkaError) as error:
        next_step(Current(5, 4, UNKNOWN, HAS), aim(5, {T: {0, 1}}, owned))
    assert error.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_owns_no_more_than_it_has_only_if_it_says_so() -> None:
    assert not is_within(None, HAS)
    assert is_within({}, HAS)
    assert is_within({T: frozenset({1})}, HAS)
    assert not is_within({T: frozenset({2})}, HAS)
    assert not is_within({U: frozenset({0})}, HAS)


INDEXES = st.frozensets(st.integers(0, 4))
SOME = st.fixed_dictionaries({T: INDEXES, U: INDEXES}).map(
    lambda found: {key: one for key, one in found.items() if one}
)


@given(SOME, SOME, st.none() | SOME, st.frozensets(st.tuples(st.sampled_from([T, U]), st.integers(0, 4))))
def test_nothing_is_lost_nothing_taken_is_given(
    held: Partitions, target: Partitions, owned: Partitions | None, taken: frozenset[tuple[bytes, int]]
) -> None:
    before = Current(5, 4, STABLE, {topic_id: dict.fromkeys(indexes, 5) for topic_id, indexes in held.items()})
    taken = frozenset((topic_id, index) for topic_id, index in taken if index not in held.get(topic_id, ()))

    def free(topic_id: bytes, index: int) -> bool:
        return (topic_id, index) not in taken

    after = next_step(before, Aim(6, target, ALL.__contains__, free, owned))
    had, has, must = (
        {(topic_id, index) for topic_id, indexes in some.items() for index in indexes}
        for some in (before.assigned, after.assigned, after.revoking)
    )
    wanted = {(topic_id, index) for topic_id, indexes in target.items() for index in indexes}
    still = had if owned is None else had & {(topic_id, index) for topic_id, some in owned.items() for index in some}
    assert not has & must
    assert not has & taken
    assert still <= has | must, "what the member owns is nobody else's"
    assert has <= wanted
    assert (after.member_epoch == 6) == (not must)
    if after.state is STABLE:
        assert has == wanted
