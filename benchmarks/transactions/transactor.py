"""A transactional producer that gives up nothing: it speaks the older protocol, by wires to all brokers, and asks again
at once after every error."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.harness.cluster_servers import Member
from benchmarks.harness.coordinators import KeyType, coordinator_of
from benchmarks.harness.member_wires import MemberWires
from benchmarks.harness.replicated_topics import states_of
from benchmarks.load.wire import ACKS_ALL, Wire, check
from benchmarks.produce import now_ms
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TIMEOUT_MS = 60_000
INIT_VERSION = 4
ADD_VERSION = 3
PRODUCE_VERSION = 9
END_VERSION = 3


@dataclass(slots=True)
class Transactor(MemberWires):
    """Transactions of one record to one partition, one after the other."""

    topic: str
    partition: int
    transactional_id: str
    committed: int = field(default=0, init=False)
    """So many transactions are."""
    _producer_id: int = field(default=-1, init=False)
    _epoch: int = field(default=-1, init=False)
    _sequence: int = field(default=0, init=False)

    def initialize(self, members: Mapping[int, Member]) -> None:
        """Has a producer id. Raises TimeoutError."""

        def ask(wire: Wire) -> None:
            request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS)
            answered = wire.ask(request, INIT_VERSION)
            check(answered.error_code)
            self._producer_id, self._epoch = answered.producer_id, answered.producer_epoch

        self.insist(members, self._coordinator, ask, f"{self.transactional_id} gets no producer id")

    def write(self, members: Mapping[int, Member]) -> None:
        """Begins a transaction, and has its record acknowledged. Raises TimeoutError."""
        self.insist(members, self._coordinator, self._add_partition, f"{self.transactional_id} begins nothing")
        self.insist(members, self._leader, self._produce, f"{self.transactional_id} writes nothing")
        self._sequence += 1

    def commit(self, members: Mapping[int, Member]) -> None:
        """Raises TimeoutError."""
        self.insist(members, self._coordinator, self._end, f"{self.transactional_id} commits nothing")
        self.committed += 1

    def _coordinator(self, wire: Wire) -> int:
        return coordinator_of(wire, self.transactional_id, KeyType.TRANSACTION)

    def _leader(self, wire: Wire) -> int:
        return states_of(wire, self.topic)[self.partition].leader

    def _add_partition(self, wire: Wire) -> None:
        answered = wire.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self._producer_id,
                v3_and_below_producer_epoch=self._epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=[self.partition])],
            ),
            ADD_VERSION,
        )
        (topic,) = answered.results_by_topic_v3_and_below
        (partition,) = topic.results_by_partition
        check(partition.partition_error_code)

    def _produce(self, wire: Wire) -> None:
        batch = build_batch(
            [Record(0, now_ms(), None, b"transacted")],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            is_transactional=True,
        )
        data = [
            TopicProduceData(
                name=self.topic, partition_data=[PartitionProduceData(index=self.partition, records=batch)]
            )
        ]
        request = ProduceRequest(
            transactional_id=self.transactional_id, acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topic_data=data
        )
        (told,) = wire.ask(request, PRODUCE_VERSION).responses[0].partition_responses
        if ErrorCode(told.error_code) is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:  # it is there already
            check(told.error_code, told.error_message)

    def _end(self, wire: Wire) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=True,
        )
        check(wire.ask(request, END_VERSION).error_code)
