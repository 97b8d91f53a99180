"""Transactions on the scripted cluster: coordinators and partitions with few rules, which tests move about.

    served = serve_transactions(cluster)
    served.add("payments", 7, node=1, state="Ongoing", places=[("orders", 0)])
    served.open("orders", 0, 7, at=5)                       # an open transaction of producer 7
    served.errors["payments"] = [ErrorCode.NOT_COORDINATOR] # the next answers about it, 0 for none
    served.loading = {2}                                    # brokers that cannot list their ids

An id that nobody has placed is coordinated by broker 0.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from odradek.protocol.messages.describe_transactions import TransactionState as DescribedState
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.list_transactions import TransactionState as ListedState
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.client.broker_handlers import Call
from tests.client.scripted_broker import ScriptedCluster

TRANSACTION = 1
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")

Place = tuple[str, int]


@dataclass(slots=True)
class Transaction:
    producer_id: int
    producer_epoch: int = 0
    state: str = "Empty"
    node: int = 0
    timeout_ms: int = 60_000
    started_ms: int = -1
    places: list[Place] = field(default_factory=list[Place])


class Transactions:
    """The state behind the handlers."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.cluster = cluster
        self.transactions: dict[str, Transaction] = {}
        self.producers: dict[Place, dict[int, ProducerState]] = defaultdict(dict)
        self.markers: list[WritableTxnMarker] = []
        """Those that were written."""
        self.errors: dict[str, list[int]] = defaultdict(list)
        self.partition_errors: dict[Place, list[int]] = defaultdict(list)
        """The next answers about a partition."""
        self.loading: set[int] = set()

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        *,
        node: int = 0,
        state: str = "Empty",
        places: Iterable[Place] = (),
    ) -> Transaction:
        its = Transaction(producer_id, state=state, node=node, places=list(places))
        self.transactions[transactional_id] = its
        return its

    def open(self, topic: str, index: int, producer_id: int, *, at: int, timestamp_ms: int = 1_000) -> ProducerState:
        """An open transaction that begins at this offset."""
        state = ProducerState(
            producer_id=producer_id, producer_epoch=3, last_sequence=4, last_timestamp=timestamp_ms,
            coordinator_epoch=-1, current_txn_start_offset=at,
        )  # fmt: skip
        self.producers[topic, index][producer_id] = state
        return state

    # ------------------------------------------------------------------------------------------------- coordinators
    def find_coordinator(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, FindCoordinatorRequest)
        if request.key_type != TRANSACTION:
            call.broker.violated("FindCoordinator of what is no transactional id")
        if call.exchange.version < 4:
            found = self._found(request.key)
            return FindCoordinatorResponse(
                error_code=found.error_code, node_id=found.node_id, host=found.host, port=found.port
            )
        return FindCoordinatorResponse(coordinators=[self._found(key) for key in request.coordinator_keys])

    def _found(self, transactional_id: str) -> Coordinator:
        node = self._node_of(transactional_id)
        broker = self.cluster.brokers[node]
        return Coordinator(key=transactional_id, node_id=node, host=broker.host, port=broker.port)

    def _node_of(self, transactional_id: str) -> int:
        return self.transactions[transactional_id].node if transactional_id in self.transactions else 0

    def _error_of(self, call: Call, transactional_id: str) -> int:
        if self.errors[transactional_id] and (code := self.errors[transactional_id].pop(0)):
            return code
        is_here = self._node_of(transactional_id) == call.broker.node_id
        return ErrorCode.NONE if is_here else ErrorCode.NOT_COORDINATOR

    def list_transactions(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, ListTransactionsRequest)
        unknown = [each for each in request.state_filters if each not in STATES]
        response = ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=[])
        if call.broker.node_id in self.loading:
            response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        for transactional_id, each in self.transactions.items():
            passes = each.node == call.broker.node_id
            passes = passes and (not request.state_filters or each.state in request.state_filters)
            passes = passes and (not request.producer_id_filters or each.producer_id in request.producer_id_filters)
            if passes:
                response.transaction_states.append(
                    ListedState(
                        transactional_id=transactional_id,
                        producer_id=each.producer_id,
                        transaction_state=each.state,
                    )
                )
        return response

    def describe_transactions(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeTransactionsRequest)
        return DescribeTransactionsResponse(
            transaction_states=[self._described(call, each) for each in request.transactional_ids]
        )

    def _described(self, call: Call, transactional_id: str) -> DescribedState:
        its = self.transactions.get(transactional_id)
        code = self._error_of(call, transactional_id)
        if code or its is None:
            code = code or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return DescribedState(transactional_id=transactional_id, error_code=code)
        return DescribedState(
            transactional_id=transactional_id,
            transaction_state=its.state,
            transaction_timeout_ms=its.timeout_ms,
            transaction_start_time_ms=its.started_ms,
            producer_id=its.producer_id,
            producer_epoch=its.producer_epoch,
            topics=[TopicData(topic=topic, partitions=[index]) for topic, index in its.places],
        )

    def init_producer_id(self, call: Call) -> Response:
        """Aborts what is under way: the first answer is CONCURRENT_TRANSACTIONS then."""
        request = call.exchange.request
        assert isinstance(request, InitProducerIdRequest)
        assert request.transactional_id is not None
        if code := self._error_of(call, request.transactional_id):
            return InitProducerIdResponse(error_code=code, producer_epoch=-1)
        its = self.transactions.setdefault(request.transactional_id, Transaction(900, -1))
        its.producer_epoch += 1
        if its.state == "Ongoing":
            its.state = "CompleteAbort"
            return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=-1)
        its.timeout_ms = request.transaction_timeout_ms
        return InitProducerIdResponse(producer_id=its.producer_id, producer_epoch=its.producer_epoch)

    # --------------------------------------------------------------------------------------------------- partitions
    def _partition_error(self, call: Call, place: Place) -> int:
        if self.partition_errors[place] and (code := self.partition_errors[place].pop(0)):
            return code
        is_led = self.cluster.topics[place[0]].partitions[place[1]].leader == call.broker.node_id
        return ErrorCode.NONE if is_led else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def describe_producers(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeProducersRequest)
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[self._producers(call, (topic.name, index)) for index in topic.partition_indexes],
                )
                for topic in request.topics
            ]
        )

    def _producers(self, call: Call, place: Place) -> PartitionResponse:
        if code := self._partition_error(call, place):
            return PartitionResponse(partition_index=place[1], error_code=code, error_message="it says why")
        return PartitionResponse(partition_index=place[1], active_producers=list(self.producers[place].values()))

    def write_markers(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, WriteTxnMarkersRequest)
        (marker,) = request.markers
        (topic,) = marker.topics
        (index,) = topic.partition_indexes
        code = self._partition_error(call, (topic.name, index))
        if not code:
            self.markers.append(marker)
            self.producers[topic.name, index][marker.producer_id].current_txn_start_offset = -1
        result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
        topics = [WritableTxnMarkerTopicResult(name=topic.name, partitions=[result])]
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)])


def serve_transactions(cluster: ScriptedCluster) -> Transactions:
    """Has all brokers serve transactions."""
    served = Transactions(cluster)
    cluster.serve(FindCoordinatorRequest, served.find_coordinator)
    cluster.serve(ListTransactionsRequest, served.list_transactions)
    cluster.serve(DescribeTransactionsRequest, served.describe_transactions)
    cluster.serve(InitProducerIdRequest, served.init_producer_id)
    cluster.serve(DescribeProducersRequest, served.describe_producers)
    cluster.serve(WriteTxnMarkersRequest, served.write_markers)
    return served
