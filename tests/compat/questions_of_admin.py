"""Questions about topics, options and versions."""

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.peer import Peer
from tests.compat.questions import CLOSED, Answer, name_of, question

NAMES_THAT_NO_TOPIC_CAN_HAVE = ("", ".", "..", "a/b", "a b", "ä", "x" * 250)
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def created(peer: Peer, *topics: CreatableTopic, timeout_ms: int = 10_000, validate_only: bool = False) -> list[str]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
    return [name_of(topic.error_code) for topic in peer.ask(request, 7).topics]


def new_topic(
    name: str, partitions: int = 1, replicas: int = 1, *assigned: list[int], **configs: str | None
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(assigned)
        ],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def metadata_of(peer: Peer, *names: str) -> list[str]:
    topics = [MetadataRequestTopic(name=name) for name in names]
    answer = peer.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)
    return [name_of(topic.error_code) for topic in answer.topics]


# -- topics ---------------------------------------------------------------------------------------------------------
@question
def metadata_of_an_unknown_topic(peer: Peer, topic: str) -> Answer:
    return metadata_of(peer, f"{topic}-unknown")


@question
def metadata_of_names_that_no_topic_can_have(peer: Peer, topic: str) -> Answer:
    return [metadata_of(peer, name) for name in NAMES_THAT_NO_TOPIC_CAN_HAVE]


@question
def metadata_of_a_topic_named_twice(peer: Peer, topic: str) -> Answer:
    return metadata_of(peer, topic, topic)


@question
def topic_partitions_of_an_unknown_and_an_impossible_topic(peer: Peer, topic: str) -> Answer:
    names = [TopicRequest(name=f"{topic}-unknown"), TopicRequest(name="a/b")]
    answer = peer.ask(DescribeTopicPartitionsRequest(topics=names), 0)
    return [(each.name == "a/b", name_of(each.error_code)) for each in answer.topics]


@question
def create_under_names_that_no_topic_can_have(peer: Peer, topic: str) -> Answer:
    return [created(peer, new_topic(name)) for name in NAMES_THAT_NO_TOPIC_CAN_HAVE]


@question
def create_with_a_bad_number_of_partitions(peer: Peer, topic: str) -> Answer:
    return [created(peer, new_topic(f"{topic}-new", count)) for count in (0, -2)]


@question
def create_with_a_bad_replication_factor(peer: Peer, topic: str) -> Answer:
    return [created(peer, new_topic(f"{topic}-new", 1, factor)) for factor in (2, 0, -2, 32_767)]


@question
def create_with_the_defaults(peer: Peer, topic: str) -> Answer:
    return created(peer, new_topic(f"{topic}-new", -1, -1))


@question
def create_what_exists(peer: Peer, topic: str) -> Answer:
    return created(peer, new_topic(topic)), created(peer, new_topic(topic), validate_only=True)


@question
def create_the_same_twice_in_one_request(peer: Peer, topic: str) -> Answer:
    new = new_topic(f"{topic}-new")
    return created(peer, new, new), metadata_of(peer, f"{topic}-new")


@question
def create_only_to_validate(peer: Peer, topic: str) -> Answer:
    return created(peer, new_topic(f"{topic}-new"), validate_only=True), metadata_of(peer, f"{topic}-new")


@question
def create_what_collides_in_the_names_of_metrics(peer: Peer, topic: str) -> Answer:
    return created(peer, new_topic(f"{topic}.new")), created(peer, new_topic(f"{topic}_new"))


@question
def create_with_bad_assignments(peer: Peer, topic: str) -> Answer:
    name = f"{topic}-new"
    return [
        created(peer, new_topic(name, -1, -1, [99])),
        created(peer, new_topic(name, -1, -1, [1, 1])),
        created(peer, new_topic(name, -1, -1, [])),
        created(peer, new_topic(name, 1, 1, [1])),
        created(peer, new_topic(name, -1, -1, [1], [-1])),
    ]


@question
def create_with_bad_options(peer: Peer, topic: str) -> Answer:
    name = f"{topic}-new"
    return [
        created(peer, new_topic(name, no_such_option="1")),
        created(peer, new_topic(name, retention_ms="soon")),
        created(peer, new_topic(name, segment_bytes="1")),
        created(peer, new_topic(name, retention_ms=None)),
        created(peer, new_topic(name, cleanup_policy="nothing")),
    ]


@question
def create_without_time(peer: Peer, topic: str) -> Answer:
    """And then with time: whether the first one went on."""
    new = new_topic(f"{topic}-new")
    return created(peer, new, timeout_ms=0), created(peer, new)


@question
def add_partitions_that_cannot_be(peer: Peer, topic: str) -> Answer:
    asked: list[tuple[str, int, list[list[int]] | None]] = [
        (f"{topic}-unknown", 3, None),
        (topic, 1, None),
        (topic, 0, None),
        (topic, -1, None),
        (topic, 3, [[1]]),
        (topic, 2, [[99]]),
    ]
    answers: list[str] = []
    for name, count, assigned in asked:
        assignments = None if assigned is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assigned]
        wanted = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=5_000, validate_only=False)
        answers += [name_of(result.error_code) for result in peer.ask(request, 3).results]
    return answers


@question
def add_partitions_twice_in_one_request(peer: Peer, topic: str) -> Answer:
    wanted = CreatePartitionsTopic(name=topic, count=2, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted, wanted], timeout_ms=5_000, validate_only=True)
    return [name_of(result.error_code) for result in peer.ask(request, 3).results]


@question
def delete_what_is_not_there(peer: Peer, topic: str) -> Answer:
    states = [
        DeleteTopicState(name=f"{topic}-unknown"),
        DeleteTopicState(topic_id=b"0123456789abcdef"),
    ]
    return [
        name_of(result.error_code)
        for state in states
        for result in peer.ask(DeleteTopicsRequest(topics=[state], timeout_ms=5_000), 6).responses
    ]


@question
def delete_twice_in_one_request(peer: Peer, topic: str) -> Answer:
    state = DeleteTopicState(name=topic)
    answer = peer.ask(DeleteTopicsRequest(topics=[state, state], timeout_ms=5_000), 6)
    return [name_of(result.error_code) for result in answer.responses], metadata_of(peer, topic)


# -- options --------------------------------------------------------------------------------------------------------
@question
def describe_the_options_of_nonsense(peer: Peer, topic: str) -> Answer:
    asked = [
        (TOPIC, f"{topic}-unknown"),
        (TOPIC, "a/b"),
        (TOPIC, ""),
        (BROKER, "x"),
        (BROKER, "99"),
        (BROKER_LOGGER, "x"),
        (BROKER_LOGGER, "99"),
        (77, "x"),
        (0, ""),
    ]
    answers: list[tuple[str, int]] = []
    for resource_type, name in asked:
        resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)
        [result] = peer.ask(request, 4).results
        answers.append((name_of(result.error_code), len(result.configs)))
    return answers


def altered(peer: Peer, resource_type: int, name: str, *changes: tuple[str, int, str | None]) -> list[str]:
    configs = [AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes]
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
    answer = peer.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    return [name_of(response.error_code) for response in answer.responses]


@question
def alter_the_options_of_nonsense(peer: Peer, topic: str) -> Answer:
    change = ("retention.ms", SET, "1000")
    return [
        altered(peer, TOPIC, f"{topic}-unknown", change),
        altered(peer, TOPIC, "a/b", change),
        altered(peer, BROKER, "x", change),
        altered(peer, 77, "x", change),
    ]


@question
def alter_loggers_of_nonsense(peer: Peer, topic: str) -> Answer:
    own_id = str(peer.ask(MetadataRequest(topics=[]), 8).brokers[0].node_id)
    return [
        altered(peer, BROKER_LOGGER, "x", ("root", SET, "INFO")),
        altered(peer, BROKER_LOGGER, own_id, (topic, SET, "INFO")),
        altered(peer, BROKER_LOGGER, own_id, ("root", SET, "LOUD")),
        altered(peer, BROKER_LOGGER, own_id, ("root", DELETE, None)),
        altered(peer, BROKER_LOGGER, own_id, ("root", APPEND, "INFO")),
    ]


@question
def alter_options_that_cannot_be(peer: Peer, topic: str) -> Answer:
    return [
        altered(peer, TOPIC, topic, ("no.such.option", SET, "1")),
        altered(peer, TOPIC, topic, ("retention.ms", SET, "soon")),
        altered(peer, TOPIC, topic, ("retention.ms", SET, None)),
        altered(peer, TOPIC, topic, ("retention.ms", APPEND, "1")),
        altered(peer, TOPIC, topic, ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        altered(peer, TOPIC, topic, ("segment.bytes", SET, "1")),
        altered(peer, BROKER, "1", ("num.partitions", SET, "2")),
        altered(peer, BROKER, "", ("broker.id", SET, "2")),
    ]


@question
def alter_an_option_by_an_operation_that_does_not_exist(peer: Peer, topic: str) -> Answer:
    return altered(peer, TOPIC, topic, ("retention.ms", 9, "1"))


@question
def alter_options_in_every_way(peer: Peer, topic: str) -> Answer:
    return [
        altered(peer, TOPIC, topic, ("retention.ms", SET, "1000")),
        altered(peer, TOPIC, topic, ("retention.ms", DELETE, None)),
        altered(peer, TOPIC, topic, ("retention.ms", DELETE, None)),
        altered(peer, TOPIC, topic, ("cleanup.policy", APPEND, "delete")),
        altered(peer, TOPIC, topic, ("leader.replication.throttled.replicas", SUBTRACT, "0:1")),
    ]


@question
def options_of_a_resource_named_twice(peer: Peer, topic: str) -> Answer:
    asked = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=["retention.ms"])
    request = DescribeConfigsRequest(resources=[asked, asked], include_synonyms=False, include_documentation=False)
    described = [name_of(result.error_code) for result in peer.ask(request, 4).results]
    change = AlterableConfig(name="retention.ms", config_operation=SET, value="1000")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[change])
    answer = peer.ask(IncrementalAlterConfigsRequest(resources=[resource, resource], validate_only=False), 1)
    return described, [name_of(response.error_code) for response in answer.responses]


# -- versions -------------------------------------------------------------------------------------------------------
@question
def an_unknown_version_of_api_versions(peer: Peer, topic: str) -> Answer:
    """Answered in version 0, with the range of this API."""
    peer.send_raw(b"\0\x12" + b"\0\x63" + b"\0\0\0\x07" + b"\0\0" + b"\0\x01x\x01x\0")
    frame = peer.receive_frame()
    code, count = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:10], "big")
    return name_of(code), count, frame[10:16].hex(), len(frame)


@question
def api_versions_for_software_without_a_name(peer: Peer, topic: str) -> Answer:
    answers: list[tuple[str, bool]] = []
    for software in ("", "-x", "x y", "x"):
        answer = peer.ask(ApiVersionsRequest(client_software_name=software, client_software_version="1"), 3)
        answers.append((name_of(answer.error_code), bool(answer.api_keys)))
    return answers


def asked_raw(peer: Peer, payload: bytes) -> str:
    try:
        peer.send_raw(payload)
        peer.receive_frame()
    except ConnectionError:
        return CLOSED
    return "answered"


@question
def a_version_that_is_not_served(peer: Peer, topic: str) -> Answer:
    return asked_raw(peer, b"\0\x01" + b"\0\x63" + b"\0\0\0\x07" + b"\0\0" + bytes(40))


@question
def a_produce_of_a_version_that_is_advertised_and_not_served(peer: Peer, topic: str) -> Answer:
    return asked_raw(peer, b"\0\0" + b"\0\x02" + b"\0\0\0\x07" + b"\0\0" + b"\0\x01" + b"\0\0\x03\xe8" + bytes(4))


@question
def an_api_that_does_not_exist(peer: Peer, topic: str) -> Answer:
    return asked_raw(peer, b"\x03\xe8" + b"\0\0" + b"\0\0\0\x07" + b"\0\0")


@question
def an_api_between_brokers(peer: Peer, topic: str) -> Answer:
    return asked_raw(peer, b"\0\x04" + b"\0\0" + b"\0\0\0\x07" + b"\0\0" + bytes(20))


@question
def a_body_that_is_cut(peer: Peer, topic: str) -> Answer:
    return asked_raw(peer, b"\0\x03" + b"\0\x01" + b"\0\0\0\x07" + b"\0\0" + b"\0\0\0\x05" + b"\0\x03ab")


@question
def bytes_behind_the_body(peer: Peer, topic: str) -> Answer:
    return asked_raw(peer, b"\0\x03" + b"\0\x01" + b"\0\0\0\x07" + b"\0\0" + b"\0\0\0\0" + b"abc")


@question
def a_length_below_zero(peer: Peer, topic: str) -> Answer:
    peer.send(b"\xff\xff\xff\xff")
    return peer.is_closed()


@question
def a_length_above_the_limit(peer: Peer, topic: str) -> Answer:
    peer.send((101 << 20).to_bytes(4, "big"))
    return peer.is_closed()
