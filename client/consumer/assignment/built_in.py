"""The assignors that can be chosen by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from odradek.client.consumer.assignment.assignor import Assignor
from odradek.client.consumer.assignment.cooperative_sticky_assignor import CooperativeStickyAssignor
from odradek.client.consumer.assignment.range_assignor import RangeAssignor
from odradek.client.consumer.assignment.round_robin_assignor import RoundRobinAssignor
from odradek.client.consumer.assignment.sticky_assignor import StickyAssignor

__all__ = ["BUILT_IN", "DEFAULT_NAMES", "assignors"]

BUILT_IN: Final[Mapping[str, Callable[[], Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
DEFAULT_NAMES: Final = ("range", "cooperative-sticky")
"""As in Java since 3.0: eager with `range`, and cooperative once every member has `range` taken out of its list."""


def assignors(chosen: Sequence[str | Assignor]) -> list[Assignor]:
    """The assignors of one member: by name, or made by the user. Raises ValueError for a name that is not known."""
    found: list[Assignor] = []
    for each in chosen:
        if not isinstance(each, str):
            found.append(each)
        elif each in BUILT_IN:
            found.append(BUILT_IN[each]())
        else:
            raise ValueError(f"there is no assignor {each!r}; built in are {', '.join(BUILT_IN)}")
    return found
