"""Quotas asked of both brokers over the wire: what AlterClientQuotas takes and refuses, what DescribeClientQuotas
tells, and for how long whoever is over one is silenced. A difference stands in `DIFFERENT`, with its reason.

Kafka answers an alteration before its broker has heard of it, so that what was set is waited for.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from processes.apache_kafka import ApacheKafka
from processes.odradek_broker import OdradekBroker
from tests.broker.wire import batch
from tests.compat.peer import Peer

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.slow]

PATIENCE_S = 15.0
CLIENT_ID = "wire"
"""That a `Peer` calls itself."""
Names = Sequence[tuple[str, str | None]]
Op = tuple[str, float | None]
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


class Both(NamedTuple):
    """Two brokers, asked the same."""

    theirs: Peer
    ours: Peer

    def each(self, ask: Callable[[Peer], Any]) -> list[Any]:
        """Their answer, and ours."""
        return [ask(self.theirs), ask(self.ours)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    data_dir = tmp_path_factory.mktemp("quotas") / "data"
    with (
        ApacheKafka() as kafka,
        OdradekBroker(data_dir) as odradek,
        Peer(kafka.host, kafka.port) as theirs,
        Peer(odradek.host, odradek.port) as ours,
    ):
        yield Both(theirs, ours)


def entry(names: Names, *ops: Op) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def altered(peer: Peer, *entries: EntryData, validate_only: bool = False) -> dict[frozenset[Any], int]:
    """The code of each entity."""
    answer = peer.ask(AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only), 1)
    return {
        frozenset((each.entity_type, each.entity_name) for each in given.entity): given.error_code
        for given in answer.entries
    }


def described(peer: Peer, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Any:
    """The code, and the limits of each entity."""
    asked = [ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components]
    answer = peer.ask(DescribeClientQuotasRequest(components=asked, strict=strict), version)
    if answer.entries is None:
        return answer.error_code
    return {
        frozenset((each.entity_type, each.entity_name) for each in given.entity): {
            each.key: each.value for each in given.values
        }
        for given in answer.entries
    }


def described_by(components: list[tuple[str, int, str | None]], strict: bool, version: int, peer: Peer) -> Any:
    return described(peer, *components, strict=strict, version=version)


def until(peer: Peer, is_so: Callable[[Any], bool]) -> Any:
    """What the broker describes, once it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(found := described(peer)):
        assert time.monotonic() < deadline, found
    return found


def set_limits(peer: Peer, *limits: Op, names: Names = (("client-id", CLIENT_ID),)) -> None:
    """And waits until they count."""
    assert set(altered(peer, entry(names, *limits)).values()) == {0}
    wanted = {key: value for key, value in limits if value is not None}
    until(peer, lambda found: found.get(frozenset(names), {}) == wanted)


QUESTIONS: dict[str, list[EntryData]] = {
    "a user": [entry([("user", "alice")], ("producer_byte_rate", 1000.0))],
    "a user and a client id": [entry([("user", "alice"), ("client-id", "app")], ("request_percentage", 0.5))],
    "defaults": [
        entry([("user", None)], ("consumer_byte_rate", 1.0)),
        entry([("client-id", None)], ("controller_mutation_rate", 0.1)),
        entry([("user", None), ("client-id", None)], ("producer_byte_rate", 2.0**53)),
    ],
    "an address": [entry([("ip", "192.0.2.1")], ("connection_creation_rate", 5.0))],
    "any address": [entry([("ip", None)], ("connection_creation_rate", 5.0))],
    "an odd name": [entry([("user", "CN=ü, O=a/b*c+d%20 ")], ("producer_byte_rate", 1.0))],
    "a long name": [entry([("client-id", "x" * 300)], ("producer_byte_rate", 1.0))],
    "no entity": [entry([], ("producer_byte_rate", 1.0))],
    "an empty user": [entry([("user", "")], ("producer_byte_rate", 1.0))],
    "an unknown type": [entry([("group", "g")], ("producer_byte_rate", 1.0))],
    "an address and a user": [entry([("ip", "192.0.2.1"), ("user", "a")], ("connection_creation_rate", 1.0))],
    "no address": [entry([("ip", "1.2.3.4.5.invalid.")], ("connection_creation_rate", 1.0))],
    "the name of a host": [entry([("ip", "localhost")], ("connection_creation_rate", 1.0))],
    "an unknown limit": [entry([("user", "a")], ("nope", 1.0))],
    "a limit of addresses for a user": [entry([("user", "a")], ("connection_creation_rate", 1.0))],
    "a limit of users for an address": [entry([("ip", None)], ("producer_byte_rate", 1.0))],
    "nothing": [entry([("user", "a")], ("producer_byte_rate", 0.0001))],
    "less than nothing": [entry([("user", "a")], ("request_percentage", -1.0))],
    "a fraction": [entry([("user", "a")], ("producer_byte_rate", 1.5))],
    "too much": [entry([("user", "a")], ("producer_byte_rate", 2.0**65))],
    "too many connections": [entry([("ip", None)], ("connection_creation_rate", 2.0**31))],
    "an infinite share": [entry([("user", "infinite")], ("request_percentage", float("inf")))],
    "no operation": [entry([("user", "a")])],
    "what is not set is removed": [entry([("user", "nobody")], ("producer_byte_rate", None))],
    "what is unknown is removed": [entry([("user", "nobody")], ("nope", None))],
    "a limit twice": [entry([("user", "twice")], ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0))],
    "an entity twice": [
        entry([("user", "double")], ("producer_byte_rate", 1.0)),
        entry([("user", "double")], ("consumer_byte_rate", 1.0)),
    ],
    "one good and one bad": [
        entry([("user", "good")], ("producer_byte_rate", 1.0)),
        entry([("user", "bad")], ("producer_byte_rate", -1.0)),
    ],
    "two limits, one bad": [entry([("user", "half")], ("producer_byte_rate", 1.0), ("nope", 1.0))],
    "nobody": [],
}
DIFFERENT = {
    "the name of a host": "which address it stands for may change, and differ from broker to broker: it is refused",
    "an infinite share": "a limit is a finite number: JSON has no other",
    "an entity twice": "Kafka refuses it, and does what stands first nevertheless; here it stays as it is",
}
"""By question, why the answer, or what is described afterwards, is another one."""


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_alterations_are_taken_and_refused_as_kafka_does(both: Both, name: str) -> None:
    codes = both.each(lambda peer: altered(peer, *QUESTIONS[name], validate_only=True))
    codes += both.each(lambda peer: altered(peer, *QUESTIONS[name]))
    is_different = codes[0] != codes[1] or codes[2] != codes[3]
    theirs = described(both.theirs)
    deadline = time.monotonic() + PATIENCE_S
    while (found := described(both.ours)) != theirs and name not in DIFFERENT:
        theirs = described(both.theirs)  # which may not have heard of it yet
        assert time.monotonic() < deadline, (theirs, found)
    assert (is_different or found != theirs) is (name in DIFFERENT)
    assert codes[0] == codes[2]
    forget_everything(both)


def forget_everything(both: Both) -> None:
    for peer in both:
        for entity, limits in described(peer).items():
            names = sorted(entity, key=lambda each: str(each[0]))
            assert set(altered(peer, entry(names, *((key, None) for key in limits))).values()) == {0}
        until(peer, lambda found: found == {})


FILTERS: dict[str, tuple[list[tuple[str, int, str | None]], bool]] = {
    "everything": ([], False),
    "nothing": ([], True),
    "a user": ([("user", EXACT, "alice")], False),
    "a user alone": ([("user", EXACT, "alice")], True),
    "the default user": ([("user", DEFAULT, None)], False),
    "any user": ([("user", SPECIFIED, None)], False),
    "any user alone": ([("user", SPECIFIED, None)], True),
    "a user's client ids": ([("user", EXACT, "alice"), ("client-id", SPECIFIED, None)], True),
    "addresses": ([("ip", SPECIFIED, None)], False),
    "nobody": ([("user", EXACT, "nobody")], False),
    "an empty name": ([("user", EXACT, "")], False),
    "an empty type": ([("", EXACT, "a")], False),
    "an unknown type": ([("group", EXACT, "a")], False),
    "a type twice": ([("user", EXACT, "a"), ("user", DEFAULT, None)], False),
    "no name": ([("user", EXACT, None)], False),
    "a name for the default": ([("user", DEFAULT, "a")], False),
    "a name for any": ([("user", SPECIFIED, "a")], False),
    "an unknown match": ([("user", 7, None)], False),
    "an address and a user": ([("ip", DEFAULT, None), ("user", DEFAULT, None)], False),
}


def test_filters_tell_and_refuse_what_kafkas_do(both: Both) -> None:
    entries = [
        entry([("user", "alice")], ("producer_byte_rate", 1000.0), ("request_percentage", 12.5)),
        entry([("user", "alice"), ("client-id", "app")], ("producer_byte_rate", 1.0)),
        entry([("user", "alice"), ("client-id", None)], ("producer_byte_rate", 2.0)),
        entry([("user", None)], ("producer_byte_rate", 3.0)),
        entry([("client-id", "app")], ("producer_byte_rate", 4.0)),
        entry([("ip", "192.0.2.1")], ("connection_creation_rate", 5.0)),
        entry([("ip", None)], ("connection_creation_rate", 6.0)),
    ]
    for peer in both:
        assert set(altered(peer, *entries).values()) == {0}
        until(peer, lambda found: len(found) == len(entries))
    for version in (0, 1):
        for name, (components, strict) in FILTERS.items():
            theirs, ours = both.each(partial(described_by, components, strict, version))
            assert theirs == ours, (name, version)
    forget_everything(both)


# -- throttle times ---------------------------------------------------------------------------------------------------
def produce(topic: str, size: int) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=batch(b"x" * size))]
    return ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def fetch(topic: str) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])], forgotten_topics_data=[]
    )


def alike(theirs: Sequence[int], ours: Sequence[int]) -> bool:
    """Throttle times: nothing where there is nothing, else about the same. Windows begin with the first request, and
    what one of them lasts is lost between the two brokers."""
    return len(theirs) == len(ours) and all(
        bool(one) is bool(other) and abs(one - other) <= 0.15 * max(one, other) + 60
        for one, other in zip(theirs, ours, strict=True)
    )


def test_producers_are_silenced_for_as_long_as_by_kafka(both: Both) -> None:
    def ask(peer: Peer) -> list[int]:
        peer.create_topic("produced")
        set_limits(peer, ("producer_byte_rate", 10_000.0))
        told: list[int] = []
        for _ in range(3):
            told.append(peer.ask(produce("produced", 51_000), 9).throttle_time_ms)
            begun = time.monotonic()
            peer.ask(ApiVersionsRequest(), 0)
            assert time.monotonic() - begun >= told[-1] / 1000 - 0.05, "the channel is muted"
        set_limits(peer, ("producer_byte_rate", None))
        return told

    theirs, ours = both.each(ask)
    assert theirs[0] == 0
    assert theirs[1] > 0
    assert alike(theirs, ours), (theirs, ours)


def test_consumers_get_nothing_while_they_are_over_their_quota(both: Both) -> None:
    def ask(peer: Peer) -> tuple[list[int], list[int]]:
        peer.create_topic("fetched")
        assert peer.ask(produce("fetched", 51_000), 9).responses[0].partition_responses[0].error_code == 0
        set_limits(peer, ("consumer_byte_rate", 9_000.0))
        told: list[int] = []
        partitions: list[int] = []
        for _ in range(3):
            answer = peer.ask(fetch("fetched"), 11)
            told.append(answer.throttle_time_ms)
            partitions.append(len(answer.responses))
        set_limits(peer, ("consumer_byte_rate", None))
        return told, partitions

    (theirs, their_partitions), (ours, our_partitions) = both.each(ask)
    assert their_partitions == our_partitions == [1, 0, 0]
    assert alike(theirs, ours), (theirs, ours)


def test_changes_of_topics_are_refused_and_throttled_by_version_as_kafka_does(both: Both) -> None:
    def ask(peer: Peer) -> list[Any]:
        set_limits(peer, ("controller_mutation_rate", 2.0))
        told: list[Any] = []
        for name, partitions, version in (("m-1", 25, 6), ("m-2", 1, 6), ("m-3", 1, 5)):
            topic = CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
            )
            created = peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), version)
            told.append((created.topics[0].error_code, created.throttle_time_ms))
        more = CreatePartitionsTopic(name="m-1", count=30, assignments=None)
        for version in (3, 2):
            grown = peer.ask(CreatePartitionsRequest(topics=[more], timeout_ms=10_000, validate_only=False), version)
            told.append((grown.results[0].error_code, grown.throttle_time_ms))
        for version in (5, 4):
            deleted = peer.ask(DeleteTopicsRequest(topic_names=["m-3"], topics=[], timeout_ms=10_000), version)
            told.append((deleted.responses[0].error_code, deleted.throttle_time_ms))
        set_limits(peer, ("controller_mutation_rate", None))
        for name in ("m-1", "m-3"):
            peer.ask(DeleteTopicsRequest(topic_names=[name], topics=[], timeout_ms=10_000), 5)
        return told

    theirs, ours = both.each(ask)
    assert [code for code, _ in theirs] == [code for code, _ in ours], (theirs, ours)
    assert ErrorCode.THROTTLING_QUOTA_EXCEEDED in [code for code, _ in theirs]
    assert alike([told for _, told in theirs], [told for _, told in ours]), (theirs, ours)


def test_a_share_of_time_silences_for_a_second_at_most(both: Both) -> None:
    def ask(peer: Peer) -> int:
        set_limits(peer, ("request_percentage", 0.001))
        told = [peer.ask(fetch("nowhere"), 11).throttle_time_ms for _ in range(4)]
        set_limits(peer, ("request_percentage", None))
        return max(told)

    assert both.each(ask) == [1_000, 1_000]
