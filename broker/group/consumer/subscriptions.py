"""What the members of a group have subscribed to: names, and regular expressions resolved to names. Pure.

Expressions are RE2's and match a whole name. They are resolved when a member brings a new one, and again for each name
that appears or goes, by `refresh`; the result is a record, so that it means the same after a change of the leader.
Kafka resolves them in the background every ten minutes (`group.consumer.regex.refresh.interval.ms`) or sooner.

An expression matches only topics that the member may see whose heartbeat has it resolved, as in Kafka, and is resolved
again when rights have changed. Members that share an expression share its topics.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple

from odradek.broker.group.consumer.edits import Edits
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import Key, Kind, Member, ResolvedRegex
from odradek.broker.group.consumer.requests import Sight
from odradek.broker.group.topics_view import TopicsView
from odradek.protocol.errors import ErrorCode, KafkaError

Matcher = Callable[[str], bool]
"""Whether an expression matches the whole name."""

CompilePattern = Callable[[str], Matcher]
"""Raises KafkaError: INVALID_REGULAR_EXPRESSION."""


def refuse_patterns(text: str) -> Matcher:
    """For a broker that has no RE2."""
    raise KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, "This broker cannot evaluate regular expressions: google-re2 is missing."
    )


class Rematched(NamedTuple):
    """How the topics that an expression matches have changed."""

    added: frozenset[str]
    removed: frozenset[str]


class Subscriptions:
    """Of one group. It holds nothing but compiled expressions."""

    __slots__ = ("_compile", "_matchers", "_state", "_topics")

    def __init__(self, state: GroupState, topics: TopicsView, compile_pattern: CompilePattern) -> None:
        self._state = state
        self._topics = topics
        self._compile = compile_pattern
        self._matchers: dict[str, Matcher] = {}

    def names_of(self, member: Member) -> frozenset[str]:
        """All topics that the member has subscribed to, whether they exist or not."""
        resolved = self._state.regexes.get(member.topic_regex) if member.topic_regex else None
        return member.topic_names | resolved.topic_names if resolved is not None else member.topic_names

    def names(self) -> set[str]:
        """All topics that the group has subscribed to."""
        return set[str]().union(*self._state.subscriptions, *(one.topic_names for one in self._state.regexes.values()))

    def has_topic(self, member: Member, topic_id: bytes) -> bool:
        """Whether the topic exists and the member has subscribed to it."""
        topic = self._topics.by_id(topic_id)
        if topic is None:
            return False
        if topic.name in member.topic_names:
            return True
        resolved = self._state.regexes.get(member.topic_regex) if member.topic_regex else None
        return resolved is not None and topic.name in resolved.topic_names

    def metadata_hash(self) -> int:
        """Another one whenever a topic of the group is created, deleted, enlarged, or moves to other racks."""
        topics = [topic for name in self.names() if (topic := self._topics.by_name(name)) is not None]
        if not topics:
            return 0
        hashes = sorted(topic.metadata_hash for topic in topics)
        return int.from_bytes(blake2b(b"".join(hashes), digest_size=8).digest(), "big", signed=True)

    def resolve(self, regex: str, sight: Sight, edits: Edits, unix_ms: int) -> None:
        """Makes sure that the expression is resolved. Raises KafkaError: INVALID_REGULAR_EXPRESSION."""
        matches = self._matcher(regex)
        if regex not in self._state.regexes:
            found = frozenset(name for name in self._topics.names() if matches(name) and sight.has(name))
            edits.put(Key(Kind.REGEX, regex), ResolvedRegex(found, 0, unix_ms))

    def drop_unused(self, edits: Edits) -> None:
        """Deletes the expressions that no member has any more."""
        if self._state.regexes:
            used = {member.topic_regex for member in self._state.members.values()}
            for regex in self._state.regexes.keys() - used:
                self._matchers.pop(regex, None)
                edits.put(Key(Kind.REGEX, regex), None)

    def refresh(self, changed: Iterable[str] | None, sight: Sight, edits: Edits, unix_ms: int) -> dict[str, Rematched]:
        """Looks again which of these names exist and match; None: which of all names. Returns the expressions that
        match others than before.

        An expression that cannot be compiled any more (the broker has lost RE2) keeps the names that it has.
        """
        rematched: dict[str, Rematched] = {}
        for regex, resolved in list(self._state.regexes.items()):
            try:
                matches = self._matcher(regex)
            except KafkaError:
                continue
            if changed is None:
                found = frozenset(name for name in self._topics.names() if matches(name) and sight.has(name))
            else:
                exist = {name for name in changed if self._topics.by_name(name) is not None and matches(name)}
                exist = {name for name in exist if sight.has(name)}
                found = resolved.topic_names.difference(changed) | exist
            if found != resolved.topic_names:
                edits.put(Key(Kind.REGEX, regex), ResolvedRegex(found, 0, unix_ms))
                rematched[regex] = Rematched(found - resolved.topic_names, resolved.topic_names - found)
        return rematched

    def _matcher(self, regex: str) -> Matcher:
        matcher = self._matchers.get(regex)
        if matcher is None:
            matcher = self._matchers[regex] = self._compile(regex)
        return matcher
