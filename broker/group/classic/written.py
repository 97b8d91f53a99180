"""A record of a group that was given to the log, and what stands there if the log refuses it. Pure.

Records may be refused in any order, and before or after later ones were given. What the log holds is the newest record
that was not refused: `standing` finds it. A record holds on to the one before it only once it has been refused, so that
a long history is not kept in memory.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Optional

from odradek.protocol.stored.group_metadata import GroupMetadataValue

_NO_IDS: Final[Mapping[str, str]] = MappingProxyType({})


class Written:
    """One record of a group, and what of it may be needed again: thousands of groups have one each."""

    __slots__ = ("_before", "is_refused", "static_ids")

    def __init__(self, value: GroupMetadataValue) -> None:
        ids = {each.group_instance_id: each.member_id for each in value.members if each.group_instance_id is not None}
        self.static_ids: Mapping[str, str] = ids or _NO_IDS
        """Member id by instance id."""
        self.is_refused = False
        self._before: Written | None = None

    def refuse(self, before: Optional["Written"]) -> None:
        """The log did not take it, and `before` was the newest one when it was given."""
        self.is_refused, self._before = True, before

    @staticmethod
    def standing(written: Optional["Written"]) -> Optional["Written"]:
        """The newest one, from this one backwards, that was not refused. None: there is none."""
        while written is not None and written.is_refused:
            written = written._before
        return written
