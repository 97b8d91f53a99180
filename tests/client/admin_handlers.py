"""What Admin asks for, on the scripted cluster: a controller with few rules, and options kept in dictionaries.

    served = serve_admin(cluster)
    served.configs[ResourceType.TOPIC, "orders"]["retention.ms"] = "5"
    served.leaderless_looks = 3       # so many Metadata answers see new topics without leaders

As with ZooKeeper, one broker is the controller (`cluster.controller_id`) and others answer NOT_CONTROLLER. The faults
of `broker_faults` apply as anywhere; `edited` changes answers.
"""

from collections import defaultdict
from collections.abc import Callable

from odradek.client.admin.configs import Operation, ResourceType
from odradek.protocol.codec.schema import ZERO_UUID, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.client.broker_handlers import Call, metadata
from tests.client.scripted_broker import CLUSTER_ID, ScriptedBroker, ScriptedCluster, Topic

DYNAMIC_TOPIC, DYNAMIC_BROKER, DEFAULT = 1, 2, 5
LIST = 7
STRING = 2
LISTS = {"cleanup.policy"}
DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "604800000"}
LOG_DIR = "/var/lib/kafka"


class Served:
    """The state behind the handlers."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.cluster = cluster
        self.configs: dict[tuple[ResourceType, str], dict[str, str]] = defaultdict(dict)
        self.leaderless_looks = 0

    # ------------------------------------------------------------------------------------------------ topics
    def metadata(self, call: Call) -> Response:
        response = metadata(call)
        assert isinstance(response, MetadataResponse)
        if response.topics and self.leaderless_looks > 0:
            self.leaderless_looks -= 1
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.leader_id = -1
                    partition.error_code = ErrorCode.LEADER_NOT_AVAILABLE
        return response

    def create_topics(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, CreateTopicsRequest)
        if request.timeout_ms <= 0:
            call.broker.violated("CreateTopics with no time to do it")
        made = [self._create(call.broker, topic, request.validate_only) for topic in request.topics]
        return CreateTopicsResponse(topics=made)

    def _create(self, broker: ScriptedBroker, topic: CreatableTopic, validate_only: bool) -> CreatableTopicResult:
        def failed(code: ErrorCode, message: str) -> CreatableTopicResult:
            return CreatableTopicResult(name=topic.name, error_code=code, error_message=message)

        partitions = len(topic.assignments) or (2 if topic.num_partitions == -1 else topic.num_partitions)
        if broker.node_id != self.cluster.controller_id:
            return failed(ErrorCode.NOT_CONTROLLER, "ask another one")
        if topic.name in self.cluster.topics:
            return failed(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
        if topic.replication_factor > len(self.cluster.brokers):
            return failed(ErrorCode.INVALID_REPLICATION_FACTOR, "too few brokers")
        topic_id = ZERO_UUID
        if not validate_only:
            leaders = [each.broker_ids[0] for each in topic.assignments] or None
            topic_id = self.cluster.create_topic(topic.name, partitions, leaders=leaders).topic_id
            its = self.configs[ResourceType.TOPIC, topic.name]
            its |= {each.name: each.value for each in topic.configs if each.value is not None}
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic_id,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfigs(
                    name=each.name, value=each.value, read_only=False, config_source=DYNAMIC_TOPIC, is_sensitive=False
                )
                for each in topic.configs
            ],
        )

    def delete_topics(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DeleteTopicsRequest)
        states = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
        return DeleteTopicsResponse(responses=[self._delete(call.broker, state) for state in states])

    def _delete(self, broker: ScriptedBroker, state: DeleteTopicState) -> DeletableTopicResult:
        by_id = {topic.topic_id: topic for topic in self.cluster.topics.values()}
        topic: Topic | None = self.cluster.topics.get(state.name) if state.name else by_id.get(state.topic_id)
        if broker.node_id != self.cluster.controller_id:
            return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=ErrorCode.NOT_CONTROLLER)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if state.name else ErrorCode.UNKNOWN_TOPIC_ID
            return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code)
        self.cluster.delete_topic(topic.name)
        return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)

    def create_partitions(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, CreatePartitionsRequest)
        results: list[CreatePartitionsTopicResult] = []
        for asked in request.topics:
            code = ErrorCode.NONE
            topic = self.cluster.topics.get(asked.name)
            if call.broker.node_id != self.cluster.controller_id:
                code = ErrorCode.NOT_CONTROLLER
            elif topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif asked.count <= len(topic.partitions):
                code = ErrorCode.INVALID_PARTITIONS
            elif not request.validate_only:
                self.cluster.add_partitions(asked.name, asked.count)
            results.append(CreatePartitionsTopicResult(name=asked.name, error_code=code))
        return CreatePartitionsResponse(results=results)

    # ----------------------------------------------------------------------------------------------- options
    def _misses(self, broker: ScriptedBroker, kind: int, name: str) -> ErrorCode:
        """Why a resource's options cannot be told or changed here."""
        if kind == ResourceType.TOPIC and name not in self.cluster.topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if kind == ResourceType.BROKER and name not in ("", str(broker.node_id)):
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    def describe_configs(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeConfigsRequest)
        results: list[DescribeConfigsResult] = []
        for asked in request.resources:
            kind, name = asked.resource_type, asked.resource_name
            code = self._misses(call.broker, kind, name)
            its = {} if code else self.configs[ResourceType(kind), name]
            source = DYNAMIC_TOPIC if kind == ResourceType.TOPIC else DYNAMIC_BROKER
            configs = [
                DescribeConfigsResourceResult(
                    name=option,
                    value=its.get(option, DEFAULTS.get(option)),
                    read_only=False,
                    config_source=source if option in its else DEFAULT,
                    is_sensitive=False,
                    synonyms=[DescribeConfigsSynonym(name=option, value=its.get(option), source=source)]
                    if request.include_synonyms
                    else [],
                    config_type=LIST if option in LISTS else STRING,
                    documentation=f"What {option} does." if request.include_documentation else None,
                )
                for option in sorted(DEFAULTS | its)
                if asked.configuration_keys is None or option in asked.configuration_keys
            ]
            results.append(
                DescribeConfigsResult(
                    error_code=code, resource_type=kind, resource_name=name, configs=[] if code else configs
                )
            )
        return DescribeConfigsResponse(results=results)

    def alter_configs(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, IncrementalAlterConfigsRequest)
        return IncrementalAlterConfigsResponse(
            responses=[self._alter(call.broker, resource, request.validate_only) for resource in request.resources]
        )

    def _alter(
        self, broker: ScriptedBroker, resource: AlterConfigsResource, validate_only: bool
    ) -> AlterConfigsResourceResponse:
        kind, name = resource.resource_type, resource.resource_name
        code = self._misses(broker, kind, name)
        message = None
        if any(change.name.startswith("no.such") for change in resource.configs):
            code, message = ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"
        if not code and not validate_only:
            its = self.configs[ResourceType(kind), name]
            for change in resource.configs:
                self._change(its, change.name, Operation(change.config_operation), change.value)
        return AlterConfigsResourceResponse(
            error_code=code, error_message=message, resource_type=kind, resource_name=name
        )

    def _change(self, its: dict[str, str], name: str, operation: Operation, value: str | None) -> None:
        words = its.get(name, DEFAULTS.get(name, "")).split(",")
        match operation:
            case Operation.SET:
                its[name] = value or ""
            case Operation.DELETE:
                its.pop(name, None)
            case Operation.APPEND:
                its[name] = ",".join([*words, value or ""])
            case Operation.SUBTRACT:
                its[name] = ",".join(word for word in words if word != value)

    # ------------------------------------------------------------------------------------- records and brokers
    def delete_records(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DeleteRecordsRequest)
        topics: list[DeleteRecordsTopicResult] = []
        for topic in request.topics:
            parts: list[DeleteRecordsPartitionResult] = []
            for asked in topic.partitions:
                state = self.cluster.topics[topic.name].partitions[asked.partition_index]
                log = state.log
                offset = log.end_offset if asked.offset == -1 else asked.offset
                code = ErrorCode.NONE
                if state.leader != call.broker.node_id:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif offset > log.end_offset:
                    code = ErrorCode.OFFSET_OUT_OF_RANGE
                else:
                    log.delete_before(max(log.start_offset, offset))
                low = -1 if code else log.start_offset
                parts.append(
                    DeleteRecordsPartitionResult(
                        partition_index=asked.partition_index, low_watermark=low, error_code=code
                    )
                )
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=parts))
        return DeleteRecordsResponse(topics=topics)

    def describe_cluster(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeClusterRequest)
        all_of_them = self.cluster.brokers.values()
        listed = [each for each in all_of_them if request.include_fenced_brokers or not each.is_fenced]
        return DescribeClusterResponse(
            cluster_id=CLUSTER_ID,
            controller_id=self.cluster.controller_id,
            brokers=[
                DescribeClusterBroker(broker_id=each.node_id, host=each.host, port=each.port, is_fenced=each.is_fenced)
                for each in listed
            ],
        )

    def describe_log_dirs(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeLogDirsRequest)
        wanted = None if request.topics is None else {topic.topic: topic.partitions for topic in request.topics}
        topics = [
            DescribeLogDirsTopic(
                name=topic.name,
                partitions=[
                    DescribeLogDirsPartition(
                        partition_index=index, partition_size=100 + index, offset_lag=0, is_future_key=False
                    )
                    for index, state in enumerate(topic.partitions)
                    if state.leader == call.broker.node_id and (wanted is None or index in wanted.get(topic.name, ()))
                ],
            )
            for topic in self.cluster.topics.values()
        ]
        good = DescribeLogDirsResult(log_dir=LOG_DIR, topics=topics, total_bytes=1_000, usable_bytes=400)
        bad = DescribeLogDirsResult(log_dir="/broken", topics=[], error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return DescribeLogDirsResponse(results=[good, bad])


def serve_admin(cluster: ScriptedCluster) -> Served:
    """Has all brokers serve what Admin asks for."""
    served = Served(cluster)
    handlers: dict[type, Callable[[Call], Response]] = {
        MetadataRequest: served.metadata,
        CreateTopicsRequest: served.create_topics,
        DeleteTopicsRequest: served.delete_topics,
        CreatePartitionsRequest: served.create_partitions,
        DescribeConfigsRequest: served.describe_configs,
        IncrementalAlterConfigsRequest: served.alter_configs,
        DeleteRecordsRequest: served.delete_records,
        DescribeClusterRequest: served.describe_cluster,
        DescribeLogDirsRequest: served.describe_log_dirs,
    }
    for request_type, handler in handlers.items():
        cluster.serve(request_type, handler)
    return served
