"""Who may commit, read and delete, in each state (validate… of Kafka's ClassicGroup)."""

from collections.abc import Callable

import pytest

from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.states import ClassicState
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.classic.groups import DELAY_MS, RANGE, Stage, offers

NONE = ErrorCode.NONE


def in_state(state: ClassicState, protocol_type: str = "consumer") -> tuple[Stage, str]:
    """A group with one static member `a`, and the member's id; empty and dead ones had it once."""
    stage = Stage()
    joined = stage.join(instance_id="a", protocol_type=protocol_type)
    if state is ClassicState.PREPARING_REBALANCE:
        return stage, stage.group.describe().members[0].member_id
    stage.wait(DELAY_MS)
    member_id = joined.answer.member_id
    if state is ClassicState.STABLE:
        stage.assign([joined])
    elif state is ClassicState.EMPTY:
        stage.leave(member_id)
    elif state is ClassicState.DEAD:
        stage.group.dissolve(KafkaError(ErrorCode.NOT_COORDINATOR), stage.now)
    assert stage.group.state is state
    return stage, member_id


def code_of(check: Callable[[], None]) -> ErrorCode:
    try:
        check()
    except KafkaError as error:
        return error.code
    return NONE


EVERYBODY = ("", None, -1)
"""A client without a group's membership: no member id, no instance id, no generation."""

COMMITS: list[tuple[ClassicState, str, ErrorCode, ErrorCode]] = [
    # State, who commits, the answer; the answer to a transactional commit.
    (ClassicState.EMPTY, "everybody", NONE, NONE),
    (ClassicState.EMPTY, "former member", ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
    (ClassicState.PREPARING_REBALANCE, "everybody", ErrorCode.UNKNOWN_MEMBER_ID, NONE),
    (ClassicState.PREPARING_REBALANCE, "member", NONE, NONE),
    (ClassicState.COMPLETING_REBALANCE, "everybody", ErrorCode.UNKNOWN_MEMBER_ID, NONE),
    (ClassicState.COMPLETING_REBALANCE, "member", ErrorCode.REBALANCE_IN_PROGRESS, NONE),
    (ClassicState.STABLE, "everybody", ErrorCode.UNKNOWN_MEMBER_ID, NONE),
    (ClassicState.STABLE, "member", NONE, NONE),
    (ClassicState.STABLE, "old generation", ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
    (ClassicState.STABLE, "no generation", ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
    (ClassicState.STABLE, "stranger", ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
    (ClassicState.STABLE, "fenced", ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID),
    (ClassicState.DEAD, "everybody", ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
]


@pytest.mark.parametrize(("state", "who", "code", "transactional_code"), COMMITS)
def test_who_may_commit(state: ClassicState, who: str, code: ErrorCode, transactional_code: ErrorCode) -> None:
    stage, member_id = in_state(state)
    generation = stage.group.generation
    identity = {
        "everybody": EVERYBODY,
        "member": (member_id, "a", generation),
        "former member": (member_id, None, generation),
        "old generation": (member_id, None, generation - 1),
        "no generation": (member_id, None, -1),
        "stranger": ("stranger", None, generation),
        "fenced": ("stranger", "a", generation),
    }[who]
    validate = stage.group.validate_commit
    assert code_of(lambda: validate(*identity)) is code
    assert code_of(lambda: validate(*identity, is_transactional=True)) is transactional_code


DELETIONS = {
    ClassicState.EMPTY: NONE,
    ClassicState.PREPARING_REBALANCE: ErrorCode.NON_EMPTY_GROUP,
    ClassicState.COMPLETING_REBALANCE: ErrorCode.NON_EMPTY_GROUP,
    ClassicState.STABLE: ErrorCode.NON_EMPTY_GROUP,
    ClassicState.DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
}


@pytest.mark.parametrize("state", ClassicState)
def test_only_an_empty_group_is_deleted_and_only_a_dead_one_has_no_offsets(state: ClassicState) -> None:
    group = in_state(state)[0].group
    assert code_of(group.validate_delete) is DELETIONS[state]
    is_dead = state is ClassicState.DEAD
    assert code_of(group.validate_fetch) is (ErrorCode.GROUP_ID_NOT_FOUND if is_dead else NONE)


@pytest.mark.parametrize("state", ClassicState)
def test_offsets_of_members_of_another_type_are_not_deleted(state: ClassicState) -> None:
    assert code_of(in_state(state, "connect")[0].group.validate_offset_delete) is DELETIONS[state]
    is_dead = state is ClassicState.DEAD
    consumers = in_state(state)[0].group
    assert code_of(consumers.validate_offset_delete) is (ErrorCode.GROUP_ID_NOT_FOUND if is_dead else NONE)


def subscribed(group: ClassicGroup) -> tuple[bool, bool]:
    return group.is_subscribed("orders"), group.is_subscribed("prices")


def test_the_topics_of_consumers_are_known_with_the_generation() -> None:
    stage = Stage()
    assert subscribed(stage.group) == (False, False)
    stage.join()
    assert subscribed(stage.group) == (True, True), "not known yet"
    stage.wait(DELAY_MS)
    assert subscribed(stage.group) == (True, False)
    assert stage.group.subscribed_topics == frozenset({"orders"})
    stage.wait(600_000)
    assert (stage.group.is_empty, stage.group.subscribed_topics) == (True, frozenset())


def test_a_subscription_that_does_not_parse_may_be_for_any_topic() -> None:
    stage = Stage()
    stage.stabilize(protocols=offers("range", metadata=b"\0"))
    assert stage.group.subscribed_topics is None
    assert subscribed(stage.group) == (True, True)


def test_the_bytes_of_other_types_are_opaque() -> None:
    stage = Stage()
    stage.stabilize(protocol_type="connect", protocols=RANGE)
    assert stage.group.subscribed_topics is None
    assert subscribed(stage.group) == (False, False)
