"""Transactions on a scripted cluster: its brokers answer as `ModelCoordinator` says, and records lie in their logs.

    with scripted_cluster() as cluster:
        coordinator = serve_transactions(cluster, uses_v2=True)
        coordinator.refuses(EndTxnRequest, ErrorCode.CONCURRENT_TRANSACTIONS)      # the next one
        async with producing(cluster, transactional_id="payments") as producer: ...
        assert coordinator.visible("orders") == [b"..."]

One broker, or the first of several, coordinates everything.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from odradek.client.producer.idempotence.sequences import Identity
from odradek.protocol.batches.batch import read_header
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.client.broker_handlers import Call, Handler, api_versions, produce
from tests.client.model_coordinator import ModelCoordinator
from tests.client.producing import TOPIC
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

V2_SINCE: Final[dict[type[Request[Any]], int]] = {ProduceRequest: 12, EndTxnRequest: 5, TxnOffsetCommitRequest: 5}


class ScriptedCoordinator:
    """See the module."""

    def __init__(self, cluster: ScriptedCluster, *, uses_v2: bool) -> None:
        self.cluster = cluster
        self.uses_v2 = uses_v2
        self.model = ModelCoordinator()
        self._refusals: defaultdict[type[Request[Any]], deque[ErrorCode]] = defaultdict(deque)

    def refuses(self, kind: type[Request[Any]], code: ErrorCode, times: int = 1) -> None:
        """The next requests of this kind are answered with this code, and nothing else happens."""
        self._refusals[kind].extend([code] * times)

    def calms_down(self) -> None:
        """Nothing goes wrong from now on."""
        self._refusals.clear()
        for rule in self.cluster.rules:
            rule.cancel()

    def upgrades(self) -> None:
        """The brokers speak transaction version 2 from now on, as they tell with each new connection."""
        self.uses_v2 = True
        for broker in self.cluster.brokers.values():
            for kind in V2_SINCE:
                broker.versions[kind] = (kind.min_version, kind.max_version)
            broker.close_connections()

    def visible(self, topic: str) -> list[Any]:
        """What a reader of committed records sees, in the order of their commits."""
        return [each.value for each in self.model.committed if each.where[0] == topic]

    def asked(self, kind: type[Request[Any]]) -> list[int]:
        """The versions of all requests of this kind."""
        return [each.version for each in self.cluster.exchanges_of(kind)]

    # ------------------------------------------------------------------------------------------------- its handlers
    def code(self, kind: type[Request[Any]]) -> ErrorCode | None:
        """The refusal that is due."""
        return self._refusals[kind].popleft() if self._refusals[kind] else None

    def api_versions(self, call: Call) -> Response:
        response = api_versions(call)
        assert isinstance(response, ApiVersionsResponse)
        if self.uses_v2 and call.exchange.version >= 3:
            response.finalized_features_epoch = 1
            level = FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=2)
            response.finalized_features = [level]
        return response

    def find(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, FindCoordinatorRequest)
        code = self.code(FindCoordinatorRequest) or ErrorCode.NONE
        broker = next(each for each in self.cluster.brokers.values() if each.is_running)
        found = [
            Coordinator(key=key, node_id=broker.node_id, host=broker.host, port=broker.port, error_code=code)
            for key in request.coordinator_keys or [request.key]
        ]
        return FindCoordinatorResponse(
            error_code=code, node_id=broker.node_id, host=broker.host, port=broker.port, coordinators=found
        )

    def init(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, InitProducerIdRequest)
        try:
            self._raise_refusal(InitProducerIdRequest)
            given = self.model.init(Identity(request.producer_id, request.producer_epoch))
        except KafkaError as error:
            return InitProducerIdResponse(error_code=error.code, producer_epoch=-1)
        return InitProducerIdResponse(producer_id=given.producer_id, producer_epoch=given.epoch)

    def add_partitions(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, AddPartitionsToTxnRequest)
        identity = Identity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        keys = [(topic.name, number) for topic in request.v3_and_below_topics for number in topic.partitions]
        code = ErrorCode.NONE
        try:
            self._raise_refusal(AddPartitionsToTxnRequest)
            self.model.add(identity, keys)
        except KafkaError as error:
            code = error.code
        results = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                    for number in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    def add_offsets(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, AddOffsetsToTxnRequest)
        try:
            self._raise_refusal(AddOffsetsToTxnRequest)
            self.model.add(Identity(request.producer_id, request.producer_epoch), [(request.group_id, 0)])
        except KafkaError as error:
            return AddOffsetsToTxnResponse(error_code=error.code)
        return AddOffsetsToTxnResponse()

    def commit_offsets(self, call: Call) -> Response:
        request, version = call.exchange.request, call.exchange.version
        assert isinstance(request, TxnOffsetCommitRequest)
        identity = Identity(request.producer_id, request.producer_epoch)
        code = ErrorCode.NONE
        try:
            self._raise_refusal(TxnOffsetCommitRequest)
            for topic in request.topics:
                for part in topic.partitions:
                    value = (topic.name, part.partition_index, part.committed_offset)
                    uses_v2 = version >= V2_SINCE[TxnOffsetCommitRequest]
                    self.model.write(identity, (request.group_id, 0), value, uses_v2=uses_v2)
        except KafkaError as error:
            code = error.code
        topics = [
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return TxnOffsetCommitResponse(topics=topics)

    def end(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, EndTxnRequest)
        uses_v2 = call.exchange.version >= V2_SINCE[EndTxnRequest]
        identity = Identity(request.producer_id, request.producer_epoch)
        try:
            self._raise_refusal(EndTxnRequest)
            given = self.model.end(identity, is_commit=request.committed, uses_v2=uses_v2)
        except KafkaError as error:
            return EndTxnResponse(error_code=error.code)
        return EndTxnResponse(producer_id=given.producer_id, producer_epoch=given.epoch)

    def produce(self, call: Call) -> Response | None:
        request = call.exchange.request
        assert isinstance(request, ProduceRequest)
        if request.transactional_id is None:
            return produce(call)
        before = {key: len(self.cluster.batches(*key)) for key in call.exchange.partitions}
        refused = {
            (topic.name, part.index): code
            for topic in request.topic_data
            for part in topic.partition_data
            if (code := self._refusal_of(part, (topic.name, part.index), call.exchange.version)) is not None
        }
        if refused:
            return _refused(request, refused)
        response = produce(call)
        for key, count in before.items():
            for batch in self.cluster.batches(*key)[count:]:
                assert batch.header.is_transactional
                identity = Identity(batch.producer_id, batch.producer_epoch)
                for value in batch.values:
                    self.model.write(identity, key, value, uses_v2=self.uses_v2)
        return response

    def _refusal_of(self, part: PartitionProduceData, key: tuple[str, int], version: int) -> ErrorCode | None:
        if (code := self.code(ProduceRequest)) is not None:
            return code
        assert part.records is not None
        epoch = read_header(part.records).producer_epoch
        if epoch < self.model.identity.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        is_added = version >= V2_SINCE[ProduceRequest] or key in self.model.partitions
        return None if is_added else ErrorCode.INVALID_TXN_STATE

    def _raise_refusal(self, kind: type[Request[Any]]) -> None:
        if (code := self.code(kind)) is not None:
            raise KafkaError(code)


def _refused(request: ProduceRequest, codes: dict[tuple[str, int], ErrorCode]) -> ProduceResponse:
    """Of all partitions: a request that is refused for one was not carried out for the others here."""
    code = next(iter(codes.values()))
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
                    for part in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def serve_transactions(cluster: ScriptedCluster, *, uses_v2: bool = False) -> ScriptedCoordinator:
    """Has the brokers serve transactions, of version 1 as Kafka 3.9 does, or of version 2."""
    coordinator = ScriptedCoordinator(cluster, uses_v2=uses_v2)
    handlers: dict[type[Request[Any]], Handler] = {
        ApiVersionsRequest: coordinator.api_versions,
        FindCoordinatorRequest: coordinator.find,
        InitProducerIdRequest: coordinator.init,
        AddPartitionsToTxnRequest: coordinator.add_partitions,
        AddOffsetsToTxnRequest: coordinator.add_offsets,
        TxnOffsetCommitRequest: coordinator.commit_offsets,
        EndTxnRequest: coordinator.end,
        ProduceRequest: coordinator.produce,
    }
    for kind, handler in handlers.items():
        cluster.serve(kind, handler)
    if not uses_v2:
        for kind, since in V2_SINCE.items():
            for broker in cluster.brokers.values():
                broker.versions[kind] = (kind.min_version, since - 1)
    return coordinator


@contextmanager
def coordinated(*, uses_v2: bool = True, partitions: int = 1) -> Generator[tuple[ScriptedCluster, ScriptedCoordinator]]:
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC, partitions)
        yield cluster, serve_transactions(cluster, uses_v2=uses_v2)


async def until_sent(cluster: ScriptedCluster, count: int = 1) -> None:
    """Waits until so many Produces have come."""
    while cluster.count(ProduceRequest) < count:  # noqa: ASYNC110 - time is virtual, and the broker tells nobody
        await asyncio.sleep(0.001)
