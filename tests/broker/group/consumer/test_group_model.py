"""A consumer group among members that come and go, with lost answers, refused appends and changes of the leader.

At each moment a partition is owned by one member at most, by what members believe and by what the group says. Commits
of what a member owns are good. A replay of the log gives the same group. In the end nobody waits.
"""

from dataclasses import dataclass, field
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.broker.group.consumer.group_state import GroupPhase
from odradek.broker.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.consumer.rig import REBALANCE_MS, SESSION_MS, Answer, Options, Rig

NAMES = ["bills", "orders", "shop.cards", "shop.toys"]
MEMBERS_MAX = 5
INTERVAL_MS = 1_000
SUBSCRIPTIONS = st.sampled_from([*[frozenset(NAMES[:count]) for count in (0, 1, 2, 2, 2)], frozenset({"orders"})])
"""Mostly the same, so that members have to share."""


@dataclass
class Client:
    """A consumer: it does what it is told, and trusts what it has been told."""

    member_id: str
    instance_id: str | None
    names: frozenset[str]
    regex: str | None
    epoch: int = 0
    owned: dict[bytes, frozenset[int]] = field(default_factory=dict[bytes, frozenset[int]])
    full: bool = True
    waiting: Answer | None = None

    def request(self, epoch: int | None = None) -> ConsumerHeartbeat:
        epoch = self.epoch if epoch is None else epoch
        request = ConsumerHeartbeat(self.member_id, epoch, self.instance_id)
        if epoch < 0:
            return request
        request = request._replace(owned=dict(self.owned))
        if not self.full:
            return request
        return request._replace(rebalance_timeout_ms=REBALANCE_MS, topic_names=self.names, topic_regex=self.regex or "")

    def hear(self, answer: ConsumerHeartbeatAnswer) -> None:
        """It gives up at once what it is not to have; then the next heartbeat says so."""
        self.epoch = answer.member_epoch
        self.full = False
        if answer.assigned is not None:
            self.owned = {topic_id: frozenset(indexes) for topic_id, indexes in answer.assigned.items()}

    def begin_again(self) -> None:
        self.epoch = 0
        self.owned = {}
        self.full = True

    def partitions(self) -> set[tuple[bytes, int]]:
        return {(topic_id, index) for topic_id, indexes in self.owned.items() for index in indexes}


class GroupModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(Options(group_consumer_assignment_interval_ms=INTERVAL_MS))
        self.clients: list[Client] = []
        self.ids = 0

    @initialize(counts=st.lists(st.integers(1, 4), min_size=2, max_size=3))
    def topics_exist(self, counts: list[int]) -> None:
        for name, count in zip(NAMES, counts, strict=False):
            self.rig.topics.put(name, count)

    # --------------------------------------------------------------------------------------------------------- members
    @precondition(lambda self: len(self.clients) < MEMBERS_MAX)
    @rule(
        names=SUBSCRIPTIONS,
        regex=st.sampled_from([None, None, "shop.*"]),
        instance=st.sampled_from([None, None, "i", "j"]),
    )
    def joins(self, names: frozenset[str], regex: str | None, instance: str | None) -> None:
        self.ids += 1
        client = Client(f"m{self.ids}", instance, names, regex)
        self.clients.append(client)
        client.waiting = self.rig.send(client.request())

    @precondition(lambda self: any(client.waiting is None for client in self.clients))
    @rule(data=st.data())
    def beats(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from([one for one in self.clients if one.waiting is None]), "client")
        client.waiting = self.rig.send(client.request())

    @precondition(lambda self: self.clients)
    @rule(random=st.randoms(), fate=st.sampled_from(["written", "written", "lost", "refused", "pending"]))
    def all_beat(self, random: Random, fate: str) -> None:
        """Some of them see what others have written in the same batch."""
        for client in random.sample(self.clients, len(self.clients)):
            if client.waiting is None:
                client.waiting = self.rig.send(client.request())
        if fate in ("written", "lost"):
            self.is_written(set() if fate == "written" else set(random.sample(range(MEMBERS_MAX), 2)))
        elif fate == "refused":
            self.is_refused()

    @precondition(lambda self: any(client.waiting is None for client in self.clients))
    @rule(data=st.data(), names=SUBSCRIPTIONS)
    def subscribes_to_other_topics(self, data: st.DataObject, names: frozenset[str]) -> None:
        client = data.draw(st.sampled_from([one for one in self.clients if one.waiting is None]), "client")
        client.names, client.full = names, True

    @precondition(lambda self: any(client.waiting is None for client in self.clients))
    @rule(data=st.data(), politely=st.booleans(), refused=st.sampled_from([False, False, True]))
    def leaves(self, data: st.DataObject, politely: bool, refused: bool) -> None:
        """With a word or without; nobody repeats the word if it is refused."""
        client = data.draw(st.sampled_from([one for one in self.clients if one.waiting is None]), "client")
        self.clients.remove(client)
        if politely:
            self.rig.send(client.request(-1 if client.instance_id is None else -2))
            if refused:
                self.is_refused()

    # ------------------------------------------------------------------------------------------------------------- log
    @rule(lost=st.sets(st.integers(0, MEMBERS_MAX)))
    def is_written(self, lost: set[int]) -> None:
        self.rig.commit()
        for place, client in enumerate(list(self.clients)):
            waiting, client.waiting = client.waiting, None
            if waiting is None:
                continue
            if place in lost:
                client.full = True
            else:
                assert waiting.given is not None
                self.hears(client, waiting.given)

    def hears(self, client: Client, answer: ConsumerHeartbeatAnswer | KafkaError) -> None:
        if not isinstance(answer, KafkaError):
            client.hear(answer)
        elif answer.code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            client.begin_again()
        else:
            assert answer.code in (ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID), answer
            self.clients.remove(client)

    @rule()
    def is_refused(self) -> None:
        self.rig.refuse()
        for client in self.clients:
            if client.waiting is not None:
                client.waiting, client.full = None, True

    @rule()
    def another_broker_leads(self) -> None:
        """What was written is in the log; who waits is not answered."""
        self.rig.commit()
        before = self.rig.values()
        self.rig.reload()
        assert self.rig.values() == before
        for client in self.clients:
            if client.waiting is not None:
                client.waiting, client.full = None, True

    # ------------------------------------------------------------------------------------------------ time and topics
    @rule(ms=st.sampled_from([1, 500, INTERVAL_MS, INTERVAL_MS, 20_000, SESSION_MS, REBALANCE_MS]))
    def time_passes(self, ms: int) -> None:
        self.rig.later(ms)

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 2), anew=st.booleans())
    def a_topic_is_made_or_enlarged(self, name: str, count: int, anew: bool) -> None:
        known = self.rig.topics.by_name(name)
        self.rig.topics.put(name, count + (known.partition_count if known is not None and not anew else 0), anew=anew)
        self.rig.group.metadata_changed([name], self.rig.now)

    @rule(name=st.sampled_from(NAMES))
    def a_topic_is_deleted(self, name: str) -> None:
        if self.rig.topics.by_name(name) is not None:
            self.rig.topics.remove(name)
            self.rig.group.metadata_changed([name], self.rig.now)

    # ------------------------------------------------------------------------------------------------------ invariants
    def members(self) -> list[Client]:
        """Who has been expelled has to stop by itself when its session is over."""
        return [client for client in self.clients if client.member_id in self.rig.state.members]

    @invariant()
    def a_partition_is_owned_by_one_member_at_most(self) -> None:
        believed = [one for client in self.members() for one in client.partitions()]
        assert len(believed) == len(set(believed))
        said = [
            (topic_id, index)
            for current in self.rig.state.currents.values()
            for some in (current.assigned, current.revoking)
            for topic_id, indexes in some.items()
            for index in indexes
        ]
        assert len(said) == len(set(said))
        assert {one: self.rig.state.owner(*one) for one in said} == {
            (topic_id, index): member_id
            for topic_id, owners in self.rig.state.owners.items()
            for index, member_id in owners.items()
        }

    @invariant()
    def who_owns_may_commit(self) -> None:
        for client in self.members():
            if client.epoch > 0 and client.waiting is None and not self.rig.outbox.appended:
                check = self.rig.group.validate_commit(
                    client.member_id, client.instance_id, client.epoch, is_transactional=False, version=9
                )
                for topic_id, index in client.partitions():
                    check.check(topic_id, index)

    @invariant()
    def epochs_are_in_order(self) -> None:
        state = self.rig.state
        assert state.assignment_epoch <= state.group_epoch
        assert all(current.member_epoch <= state.assignment_epoch for current in state.currents.values())
        assert state.currents.keys() == state.members.keys()

    def teardown(self) -> None:
        """After enough heartbeats everything is assigned, to those who want it."""
        self.is_written(set())
        for _ in range(SESSION_MS // 5_000 + 12):
            for client in list(self.clients):
                client.waiting = self.rig.send(client.request())
                self.is_written(set())
                self.a_partition_is_owned_by_one_member_at_most()
                self.who_owns_may_commit()
            self.rig.later(5_000)
            self.rig.commit()
        assert self.rig.state.members.keys() == {client.member_id for client in self.clients}
        if not self.clients:
            return
        assert self.rig.group.phase is GroupPhase.STABLE
        wanted = {name for client in self.clients for name in self.subscription(client)}
        topics = [topic for name in wanted if (topic := self.rig.topics.by_name(name)) is not None]
        expected = {(topic.topic_id, index) for topic in topics for index in range(topic.partition_count)}
        assert {one for client in self.clients for one in client.partitions()} == expected

    def subscription(self, client: Client) -> set[str]:
        matched = [name for name in NAMES if client.regex and name.startswith("shop")]
        return {*client.names, *matched}


TestGroup = GroupModel.TestCase
TestGroup.settings = settings(max_examples=75, stateful_step_count=40, deadline=None)
