"""Values survive their records, and records of older releases are read."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.consumer.group_values import (
    ClassicMember,
    Current,
    GroupEpoch,
    Key,
    Kind,
    Member,
    MemberState,
    Obsolete,
    ResolvedRegex,
    Target,
    TargetEpoch,
    Value,
)
from odradek.broker.group.consumer.stored_records import key_of, stored_record, value_of
from odradek.protocol.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
)
from odradek.protocol.stored.group_records import decode_key, decode_value

TEXT = st.text(max_size=5)
INT32 = st.integers(-2, 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TOPIC_ID = st.binary(min_size=16, max_size=16)
INDEX = st.integers(0, 9)
ASSIGNED = st.dictionaries(TOPIC_ID, st.dictionaries(INDEX, INT32, min_size=1), max_size=3)
CLASSIC = st.builds(ClassicMember, INT32, st.lists(st.tuples(TEXT, st.binary(max_size=4)), max_size=2).map(tuple))
PAIRS: st.SearchStrategy[tuple[Key, Value]] = st.one_of(
    st.tuples(st.just(Key(Kind.GROUP)), st.builds(GroupEpoch, INT32, INT64)),
    st.tuples(st.just(Key(Kind.TARGET_EPOCH)), st.builds(TargetEpoch, INT32, INT64)),
    st.tuples(
        st.builds(Key, st.just(Kind.MEMBER), TEXT),
        st.builds(
            Member,
            st.none() | TEXT,
            st.none() | TEXT,
            TEXT,
            TEXT,
            st.frozensets(TEXT),
            st.none() | TEXT,
            st.none() | TEXT,
            INT32,
            st.none() | CLASSIC,
        ),
    ),
    st.tuples(
        st.builds(Key, st.just(Kind.TARGET), TEXT),
        st.builds(Target, st.dictionaries(TOPIC_ID, st.frozensets(INDEX, min_size=1), max_size=3)),
    ),
    st.tuples(
        st.builds(Key, st.just(Kind.CURRENT), TEXT),
        st.builds(Current, INT32, INT32, st.sampled_from(MemberState), ASSIGNED, ASSIGNED),
    ),
    st.tuples(st.builds(Key, st.just(Kind.REGEX), TEXT), st.builds(ResolvedRegex, st.frozensets(TEXT), INT64, INT64)),
)


@given(TEXT, PAIRS)
def test_a_value_survives_its_record(group_id: str, pair: tuple[Key, Value]) -> None:
    key, value = pair
    record = stored_record(group_id, key, value)
    stored = cast("Any", decode_key(record.key))
    assert (stored.group_id, key_of(stored)) == (group_id, key)
    assert record.value is not None
    assert value_of(cast("Any", decode_value(stored, record.value))) == value


@pytest.mark.parametrize("kind", Kind)
def test_a_key_without_a_value_is_a_tombstone(kind: Kind) -> None:
    record = stored_record("g", Key(kind), None)
    assert record.value is None
    assert key_of(cast("Any", decode_key(record.key))).kind is kind


def test_before_there_were_assignment_epochs_the_member_epoch_counts() -> None:
    stored = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        state=0,
        assigned_partitions=[TopicPartitions(topic_id=b"t" * 16, partitions=[0, 2], assignment_epochs=None)],
        partitions_pending_revocation=[],
    )
    assert value_of(stored) == Current(7, 6, MemberState.STABLE, {b"t" * 16: {0: 7, 2: 7}})


def test_a_state_that_a_newer_release_wrote_is_unknown() -> None:
    stored = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7, previous_member_epoch=6, state=9, assigned_partitions=[], partitions_pending_revocation=[]
    )
    assert value_of(stored) == Current(7, 6, MemberState.UNKNOWN)


def test_metadata_of_kafka_4_0_has_no_meaning_any_more() -> None:
    assert key_of(ConsumerGroupPartitionMetadataKey(group_id="g")) == Key(Kind.PARTITION_METADATA)
    assert value_of(ConsumerGroupPartitionMetadataValue(topics=[])) == Obsolete()
