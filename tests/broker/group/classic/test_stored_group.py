"""The record of a group, out and back."""

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.group.classic import stored_group
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.group_host import GroupHost
from odradek.broker.group.rebalance import RebalanceCause
from odradek.protocol.errors import ErrorCode
from odradek.protocol.stored.group_metadata import GroupMetadataValue, MemberMetadata
from tests.broker.group.classic.groups import GROUP_ID, Stage, value_of

texts = st.text(max_size=5)
members = st.builds(
    MemberMetadata,
    member_id=st.text(min_size=1, max_size=5),
    group_instance_id=st.none() | texts,
    client_id=texts,
    client_host=texts,
    rebalance_timeout=st.integers(0, 2**31 - 1),
    session_timeout=st.integers(0, 2**31 - 1),
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=5),
)


def distinct(found: list[MemberMetadata]) -> list[MemberMetadata]:
    """By member id and instance id."""
    by_id = {each.member_id: each for each in found}
    by_instance = {each.group_instance_id: each for each in by_id.values()}
    return [each for each in by_id.values() if each.group_instance_id is None or each in by_instance.values()]


@settings(max_examples=50)
@given(
    st.lists(members, min_size=1, max_size=4).map(distinct),
    st.integers(0, 2**31 - 1),
    st.sampled_from(["consumer", "connect"]),
    st.sampled_from(["range", ""]),
    st.integers(-1, 2**40),
)
def test_a_stored_group_is_restored(
    found: list[MemberMetadata], generation: int, protocol_type: str, protocol: str, timestamp_ms: int
) -> None:
    value = GroupMetadataValue(
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol,
        leader=found[-1].member_id,
        current_state_timestamp=timestamp_ms,
        members=found,
    )
    record = stored_group.record(GROUP_ID, value)
    assert value_of(record) == value
    assert rewritten(value) == value


def rewritten(value: GroupMetadataValue) -> GroupMetadataValue:
    """What a group that was made from this record would write."""
    stage = Stage()
    state = GroupState(GROUP_ID, GroupHost(stage.outbox, stage.timers, stage.options, lambda: b""))
    stored_group.restore(state, value)
    return stored_group.value_of(state)


def test_the_rebalance_time_out_of_an_old_record_is_the_session() -> None:
    member = MemberMetadata(
        member_id="a", client_id="app", client_host="", session_timeout=7, subscription=b"", assignment=b""
    )
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="a", members=[member])
    assert rewritten(value).members[0].rebalance_timeout == 7


def test_a_tombstone_has_no_value_and_the_groups_key() -> None:
    stage = Stage()
    stage.join(requires_known_member_id=True)
    assert stage.group.tombstones() == [(stage.outbox.log[0].key, None)]


def test_after_a_load_sessions_start_again() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    stage.wait(5_000)
    stage.reload()
    assert stage.group.state is ClassicState.STABLE
    stage.wait(9_999)
    assert stage.sync(member_id).answer.assignment == f"of {member_id}".encode()
    stage.wait(1)
    assert stage.group.is_empty


def test_a_group_that_is_loaded_too_large_rebalances() -> None:
    stage = Stage()
    ids = stage.stabilize(3)
    stage.options.group_max_size = 2
    stage.reload()
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    [rebalance] = stage.group.rebalances
    assert (rebalance.cause, rebalance.member_id) == (RebalanceCause.OVER_CAPACITY, "")
    joins = [stage.join(member_id) for member_id in ids]
    assert [each.error for each in joins] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert len(stage.group.describe().members) == 2


def test_a_tombstone_leaves_a_group_as_a_new_one() -> None:
    stage = Stage()
    stage.stabilize()
    stage.group.replay(None)
    assert stage.group.is_vacant
    assert (stage.group.generation, stage.group.protocol_type, stage.group.is_stored) == (0, None, False)
