"""A cluster of the matrix of rights, Apache Kafka's or ours: its users, their ACLs, and what requests ask about.

    with world_of(kafka.host, kafka.port, kafka.ports["SASL_PLAINTEXT"]) as world:
        world.ask("none", request, version)      # as this user, over SASL PLAIN

Everything is made by the anonymous user of the plaintext listener, who is a super user.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.compat.group_peer import Group
from tests.compat.peer import Peer
from tests.compat.questions import CLOSED, batch, name_of, produced
from tests.compat.rights_principals import GROUP, NAMES, PASSWORD, PRINCIPALS, SUPER, TOPIC, TXN

TOPIC_NAME, DOOMED, NEW, MADE = NAMES[TOPIC]
GROUP_ID, MEMBERS, IDLE, MATCHING = NAMES[GROUP]
OPEN, STARTED = NAMES[TXN]
MEMBER: Final = "member-of-the-matrix"
PATIENCE_S: Final = 30.0
PAUSE_S: Final = 0.02
ANY, MATCH = 1, 2
TRANSACTION_MS: Final = 600_000
LEAVING: Final = -1

SETTINGS: Final[Mapping[str, str]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{SUPER}",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{PASSWORD}"' for name in PRINCIPALS)
        + ";"
    ),
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": "60000",
    "group.consumer.max.session.timeout.ms": "60000",
    "log.retention.check.interval.ms": "3600000",
    "log.initial.task.delay.ms": "3600000",
}
"""The users' passwords stand in JAAS, as in Kafka."""


class UserPeer(Peer):
    """A connection of one user."""

    def __init__(self, host: str, port: int, user: str) -> None:
        super().__init__(host, port)
        handshake = self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert handshake.error_code == ErrorCode.NONE, handshake
        token = f"\0{user}\0{PASSWORD}".encode()
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == ErrorCode.NONE, answer.error_message


class World:
    """One cluster, as all users see it."""

    def __init__(self, host: str, port: int, sasl_port: int) -> None:
        self._host = host
        self._sasl_port = sasl_port
        self.super = Peer(host, port)
        self._peers: dict[str, UserPeer] = {}
        self.ids: dict[str, bytes] = {}
        """Of the topics that are there."""
        self._member_epoch = 0

    def close(self) -> None:
        for peer in (self.super, *self._peers.values()):
            peer.close()

    def ask(self, user: str, request: Any, version: int) -> Any:
        """The answer, or CLOSED."""
        if user not in self._peers:
            self._peers[user] = UserPeer(self._host, self._sasl_port, user)
        try:
            return self._peers[user].ask(request, version)
        except ConnectionError:
            self._peers.pop(user).close()
            return CLOSED

    # -- what is there -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        for topic in (TOPIC_NAME, DOOMED):
            self.make(topic)
        assert produced(self.super, TOPIC_NAME, batch())[0][0] == "NONE"
        for group_id in (GROUP_ID, IDLE):
            self.commit(group_id)
        self.keep_member()
        self._begin_transaction()
        self._permit()

    def make(self, topic: str) -> None:
        self.super.create_topic(topic)
        self.learn(topic)

    def learn(self, topic: str) -> None:
        """The topic's id, or that it is not there."""
        self.ids.pop(topic, None)
        if (topic_id := self._id_of(topic)) != ZERO_UUID:
            self.ids[topic] = topic_id

    def _id_of(self, topic: str) -> bytes:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        [told] = self.super.ask(asked, 12).topics
        return ZERO_UUID if told.error_code else told.topic_id

    def commit(self, group_id: str) -> None:
        """An offset of the first topic."""
        _until(lambda: Group(self.super, group_id).commit(TOPIC_NAME, 0), [(0, "NONE")])

    def keep_member(self) -> None:
        """The consumer group has its member, which has the first topic; it joins again where it was forgotten."""

        def answered() -> str:
            known = self._member_epoch > 0
            beat = ConsumerGroupHeartbeatRequest(
                group_id=MEMBERS,
                member_id=MEMBER,
                member_epoch=self._member_epoch,
                rebalance_timeout_ms=-1 if known else 60_000,
                subscribed_topic_names=None if known else [TOPIC_NAME],
                topic_partitions=None if known else [],
            )
            answer = self.super.ask(beat, 1)
            self._member_epoch = 0 if answer.error_code else answer.member_epoch
            return name_of(answer.error_code)

        _until(answered, "NONE")

    def _begin_transaction(self) -> None:
        def begun() -> str:
            found = self.super.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[OPEN]), 4)
            if found.coordinators[0].error_code:  # the first question makes the topic
                return name_of(found.coordinators[0].error_code)
            init = InitProducerIdRequest(transactional_id=OPEN, transaction_timeout_ms=TRANSACTION_MS)
            got = self.super.ask(init, 4)
            if got.error_code:
                return name_of(got.error_code)
            add = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=OPEN,
                v3_and_below_producer_id=got.producer_id,
                v3_and_below_producer_epoch=got.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC_NAME, partitions=[0])],
            )
            [topic] = self.super.ask(add, 3).results_by_topic_v3_and_below
            return name_of(topic.results_by_partition[0].partition_error_code)

        _until(begun, "NONE")

    def _permit(self) -> None:
        """Every user gets his ACLs; returns when the broker knows them."""
        creations = [
            AclCreation(
                resource_type=acl.kind,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern,
                principal=f"User:{user}",
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for user, acls in PRINCIPALS.items()
            for acl in acls
        ]
        answer = self.super.ask(CreateAclsRequest(creations=creations), 3)
        refused = {each.error_message for each in answer.results if each.error_code}
        assert not refused, refused
        _until(self._acl_count, len(creations))

    def _acl_count(self) -> int:
        everything = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        answer = self.super.ask(everything, 3)
        assert not answer.error_code, answer.error_message
        return sum(len(resource.acls) for resource in answer.resources)

    def matched(self, user: str, regex: str) -> set[str]:
        """The topics of a member who subscribes by an expression: Kafka resolves it between two heartbeats."""
        beat = ConsumerGroupHeartbeatRequest(
            group_id=MATCHING,
            member_id=MEMBER,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=regex,
            topic_partitions=[],
        )
        assigned: list[Any] = []

        def has_some() -> bool:
            answer = self.ask(user, beat, 1)
            assert not answer.error_code, answer.error_message
            beat.member_epoch, beat.rebalance_timeout_ms = answer.member_epoch, -1
            beat.subscribed_topic_regex = beat.topic_partitions = None
            assigned[:] = [] if answer.assignment is None else answer.assignment.topic_partitions
            return bool(assigned)

        _until(has_some, True)
        beat.member_epoch = LEAVING
        self.ask(user, beat, 1)
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return {names[each.topic_id] for each in assigned}

    # -- what requests change, made as it was ------------------------------------------------------------------------

    def make_again(self, topic: str) -> None:
        """It may have been deleted: then it is there again when this returns."""
        _until(lambda: self._is_settled(topic), True)
        self.learn(topic)
        if topic not in self.ids:
            self.make(topic)

    def _is_settled(self, topic: str) -> bool:
        """Kafka's brokers hear of a deletion after the controller has answered for it."""
        first = self._id_of(topic)
        time.sleep(PAUSE_S)
        return first == self._id_of(topic)

    def remove(self, topic: str) -> None:
        if self._id_of(topic) != ZERO_UUID:
            self.super.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)
            _until(lambda: self._id_of(topic), ZERO_UUID)
        self.ids.pop(topic, None)

    def unmake(self, topic: str, answer: Any) -> None:
        """A topic that is made by asking for it: it is gone when this returns. Kafka makes it behind the answer."""
        if answer is not None and answer.topics[0].error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            _until(lambda: self._id_of(topic) == ZERO_UUID, False)
        self.remove(topic)


def _until(ask: Callable[[], object], expected: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (answer := ask()) != expected:
        assert time.monotonic() < deadline, f"still {answer!r}, not {expected!r}"
        time.sleep(PAUSE_S)


@contextmanager
def world_of(host: str, port: int, sasl_port: int) -> Generator[World]:
    """A cluster with everything that requests ask about."""
    world = World(host, port, sasl_port)
    try:
        world.prepare()
        yield world
    finally:
        world.close()
