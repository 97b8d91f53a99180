"""When a classic group writes its record (GroupMetadataKey, GroupMetadataValue), and what a refusal brings. Pure.

As in Kafka the record is the whole group: when a leader's sync brings assignments, a generation ends empty, a static
member is replaced, or a group begins to exist. A generation is written with its assignments, never before.
"""

from collections.abc import Callable

from odradek.broker.group.classic import stored_group
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.written import Written


def store(group: GroupState, undo: Callable[[], None] | None = None) -> None:
    """Gives the group, as it is now, to the log. If that is refused, `undo` is called after the record is forgotten."""
    value = stored_group.value_of(group)
    before, given = group.written, Written(value)

    def take_back() -> None:
        given.refuse(before)
        group.written = Written.standing(group.written)
        if undo is not None:
            undo()

    group.written = given
    record = stored_group.record(group.group_id, value)
    group.host.outbox.append(group.group_id, [record], take_back)
