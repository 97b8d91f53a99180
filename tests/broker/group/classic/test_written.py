"""What stands in the log of a group, whichever of its records are refused, in whatever order that is told."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.classic.written import Written
from odradek.protocol.stored.group_metadata import GroupMetadataValue, MemberMetadata


def value_of(number: int) -> GroupMetadataValue:
    """With a static member, so that the record can be told from the others."""
    member = MemberMetadata(
        member_id=str(number),
        group_instance_id="a",
        client_id="",
        client_host="",
        session_timeout=0,
        subscription=b"",
        assignment=b"",
    )
    return GroupMetadataValue(protocol_type="", generation=1, protocol=None, leader=None, members=[member])


@given(st.lists(st.booleans(), max_size=6), st.randoms(use_true_random=False))
def test_the_newest_record_that_was_not_refused_stands(refused: list[bool], random: Random) -> None:
    newest: Written | None = None
    given_records: list[tuple[Written, Written | None]] = []
    for number in range(len(refused)):
        before, newest = newest, Written(value_of(number))
        given_records.append((newest, before))
    told = [pair for pair, is_refused in zip(given_records, refused, strict=True) if is_refused]
    random.shuffle(told)
    for record, before in told:
        record.refuse(before)
        newest = Written.standing(newest)
    kept = [str(number) for number, is_refused in enumerate(refused) if not is_refused]
    assert (None if newest is None else newest.static_ids["a"]) == (kept[-1] if kept else None)
