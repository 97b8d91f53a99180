"""A consumer group with hand-made topics, time and log. Appends are held until they are committed or refused."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from odradek.broker.coordinator.machine import Now, StoredRecord, TransactionBatch, Waiting
from odradek.broker.coordinator.timers import Timers
from odradek.broker.group.assignors.spec import Partitions
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.consumer.group_state import GroupPhase, GroupState
from odradek.broker.group.consumer.group_values import Key, Value
from odradek.broker.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from odradek.broker.group.consumer.stored_records import ConsumerGroupKey, key_of, value_of
from odradek.broker.group.consumer.subscriptions import Matcher
from odradek.broker.group.group_counts import GroupCounts
from odradek.broker.group.group_host import GroupHost, TimerKey
from odradek.broker.group.topics_view import ViewedTopic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.group_records import decode_key, decode_value
from tests.broker.coordinator.plain_outbox import PlainOutbox

GROUP = "billing"
SESSION_MS = 45_000
REBALANCE_MS = 60_000
NOBODY: Partitions = {}


@dataclass
class Options:
    """As BrokerConfig has them; the assignment interval is off, but where a test is about it."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 0
    group_max_size: int = 2**31 - 1
    group_consumer_session_timeout_ms: int = SESSION_MS
    group_consumer_min_session_timeout_ms: int = SESSION_MS
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 0
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"


class Topics:
    """A view of topics that tests change."""

    def __init__(self) -> None:
        self._topics: dict[str, ViewedTopic] = {}
        self._count = 0

    def put(self, name: str, partition_count: int, racks: tuple[frozenset[str], ...] = (), anew: bool = False) -> bytes:
        """The topic's id, which is another one where the topic is made `anew`."""
        known = self._topics.get(name)
        if known is None or anew:
            self._count += 1
            topic_id = self._count.to_bytes(16, "big")
        else:
            topic_id = known.topic_id
        self._topics[name] = ViewedTopic(name, topic_id, partition_count, racks)
        return topic_id

    def remove(self, name: str) -> None:
        del self._topics[name]

    def by_name(self, name: str) -> ViewedTopic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: bytes) -> ViewedTopic | None:
        return next((topic for topic in self._topics.values() if topic.topic_id == topic_id), None)

    def names(self) -> Iterable[str]:
        return list(self._topics)


class Answer(Waiting[ConsumerHeartbeatAnswer]):
    """Who waits, and what was answered."""

    def __init__(self) -> None:
        self.given: ConsumerHeartbeatAnswer | KafkaError | None = None


@dataclass
class Outbox(PlainOutbox):
    """Holds what was appended, and what was answered, since the last decision."""

    appended: list[tuple[list[StoredRecord], Callable[[], None]]] = field(
        default_factory=list[tuple[list[StoredRecord], Callable[[], None]]]
    )
    answered: list[Answer] = field(default_factory=list[Answer])

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        assert entity_id == GROUP
        assert records
        self.appended.append((list(records), undo))

    def reply(self, entity_id: str | None, waiting: Waiting[Any], answer: object) -> None:
        assert entity_id == GROUP
        assert isinstance(waiting, Answer)
        assert waiting.given is None, "answered twice"
        waiting.given = cast("ConsumerHeartbeatAnswer | KafkaError", answer)
        self.answered.append(waiting)


def prefix_pattern(text: str) -> Matcher:
    """In the place of RE2: an expression is a prefix and `.*`."""
    if not text.endswith(".*"):
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{text} is no expression.")
    return lambda name: name.startswith(text.removesuffix(".*"))


class Rig:
    """Its time starts at 1,000,000 ms by both clocks."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.topics = Topics()
        self.now = Now(1_000_000, 1_000_000)
        self.log: list[StoredRecord] = []
        self._uuids = 0
        self.outbox = Outbox()
        self.timers: Timers[TimerKey] = Timers()
        self.counts = GroupCounts()
        self.group = self._new_group()

    def _new_group(self) -> ConsumerGroup:
        self.outbox = Outbox()
        self.timers = Timers()
        host = GroupHost(self.outbox, self.timers, self.options, self._uuid, self.counts)
        return ConsumerGroup(GROUP, host, self.topics, prefix_pattern)

    def _uuid(self) -> bytes:
        self._uuids += 1
        return self._uuids.to_bytes(16, "big")

    @property
    def state(self) -> GroupState:
        return self.group._state  # pyright: ignore[reportPrivateUsage]

    # ------------------------------------------------------------------------------------------------------- requests
    def send(self, request: ConsumerHeartbeat) -> Answer:
        """Nothing is decided about what it writes."""
        waiting = Answer()
        self.group.heartbeat(request, waiting, self.now)
        return waiting

    def ask(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        """Raises the KafkaError that is answered."""
        waiting = self.send(request)
        self.commit()
        assert waiting.given is not None
        if isinstance(waiting.given, KafkaError):
            raise waiting.given
        return waiting.given

    def beat(
        self, member_id: str, epoch: int, owned: Partitions | None = None, **fields: Any
    ) -> ConsumerHeartbeatAnswer:
        return self.ask(ConsumerHeartbeat(member_id, epoch, owned=owned, **fields))

    def join(self, member_id: str, *topics: str, **fields: Any) -> ConsumerHeartbeatAnswer:
        return self.ask(joining(member_id, *topics, **fields))

    # -------------------------------------------------------------------------------------------------- log and time
    def commit(self) -> list[StoredRecord]:
        """All that was appended is in the log now."""
        records = [record for some, _ in self.outbox.appended for record in some]
        self.log += records
        self.outbox.appended.clear()
        self.outbox.answered.clear()
        return records

    def refuse(self) -> None:
        """The log takes nothing of it: all is undone, the last first, and what was answered since is an error."""
        appended = list(self.outbox.appended)
        self.outbox.appended.clear()
        self.outbox.answered.clear()
        for _, undo in reversed(appended):
            undo()

    def later(self, ms: int) -> None:
        """Time passes, and deadlines with it, one at a time."""
        end_ms = self.now.monotonic_ms + ms
        while (due_ms := self.timers.next_deadline_ms) is not None and due_ms <= end_ms:
            self._move_to(max(due_ms, self.now.monotonic_ms))
            key = self.timers.pop_due(due_ms)
            assert key is not None
            self.group.timed_out(key, self.now)
        self._move_to(end_ms)

    def _move_to(self, monotonic_ms: int) -> None:
        self.now = Now(monotonic_ms, self.now.unix_ms + monotonic_ms - self.now.monotonic_ms)

    def reload(self) -> None:
        """Another broker leads: it knows the log alone."""
        self.group = self._new_group()
        for record in self.log:
            key = decode_key(record.key)
            stored = None if record.value is None else decode_value(cast("Any", key), record.value)
            self.group.replay(cast("ConsumerGroupKey", key), cast("Any", stored))
        self.group.loaded(self.now)

    def values(self) -> dict[Key, Value | None]:
        """All that the group has."""
        return {key: self.state.value(key) for key in self.state.all_keys()}

    def told(self, records: Iterable[StoredRecord]) -> dict[Key, Value | None]:
        """What these records say."""
        found: dict[Key, Value | None] = {}
        for record in records:
            key = cast("Any", decode_key(record.key))
            found[key_of(key)] = (
                None if record.value is None else value_of(cast("Any", decode_value(key, record.value)))
            )
        return found


def joining(member_id: str, *topics: str, **fields: Any) -> ConsumerHeartbeat:
    usual: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_MS, "topic_names": frozenset(topics), "owned": NOBODY}
    return ConsumerHeartbeat(member_id, 0, **(usual | fields))


def parts(topic_id: bytes, *indexes: int) -> Mapping[bytes, frozenset[int]]:
    return {topic_id: frozenset(indexes)}


def refused_with(code: ErrorCode, rig: Rig, request: ConsumerHeartbeat) -> None:
    before = rig.values()
    with pytest.raises(KafkaError) as error:
        rig.ask(request)
    assert error.value.code is code
    assert rig.values() == before, "an error changes nothing"


def phase_of(rig: Rig) -> GroupPhase:
    return rig.group.phase


def two_members() -> tuple[Rig, bytes]:
    """`a` has joined first and had all four partitions; it has to give two of them to `b`, and knows it."""
    rig = Rig()
    topic_id = rig.topics.put("orders", 4)
    assert rig.join("a", "orders").assigned == {topic_id: (0, 1, 2, 3)}
    assert rig.join("b", "orders").assigned == {}
    answer = rig.beat("a", 2)
    assert (answer.member_epoch, answer.assigned) == (2, {topic_id: (0, 1)})
    return rig, topic_id
