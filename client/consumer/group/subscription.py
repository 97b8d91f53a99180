"""What a consumer subscribes to: topics by name, or a pattern. Pure."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from odradek.protocol.messages.metadata import MetadataResponse

__all__ = ["INTERNAL", "Subscription"]

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Internal topics, by which an older broker does not say itself that they are. (Source: Topic.java.)"""


class Subscription(NamedTuple):
    """Names, or a pattern that has to match the whole name of a topic, as in Java. Empty: nothing is subscribed to."""

    names: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    @classmethod
    def to_names(cls, names: Iterable[str]) -> "Subscription":
        return cls(frozenset(names))

    @property
    def is_empty(self) -> bool:
        return not self.names and self.pattern is None

    def matching(self, response: MetadataResponse, *, excludes_internal: bool) -> frozenset[str]:
        """Of all topics that a broker names, those that match the pattern."""
        assert self.pattern is not None
        return frozenset(
            topic.name
            for topic in response.topics
            if topic.name is not None
            and not topic.error_code
            and not (excludes_internal and (topic.is_internal or topic.name in INTERNAL))
            and self.pattern.fullmatch(topic.name)
        )
