"""Whatever happens to its requests and answers, a producer's transactions are there as it was told, all or nothing.

Hypothesis writes programs of transactions and faults for a scripted cluster of two brokers: requests and answers are
lost or late, brokers refuse for a while, records fail, connections break. Each transaction ends as its program hears of
it, in time, and a reader of committed records sees the committed ones alone, each record once and in order.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.client.errors.transaction_errors import CommitOutcomeUnknown, TransactionFailed
from odradek.client.producer.producer import Producer
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.client.broker_faults import Fault, disconnect_after, disconnect_before, late, never, slow
from tests.client.coordinator_handlers import serve_transactions
from tests.client.producing import TOPIC, producing
from tests.client.scripted_broker import scripted_cluster
from tests.client.virtual_time import run_virtual

INPUT = TopicPartition("input", 0)
KINDS: list[type[Request[Any]]] = [
    FindCoordinatorRequest,
    InitProducerIdRequest,
    AddPartitionsToTxnRequest,
    ProduceRequest,
    AddOffsetsToTxnRequest,
    TxnOffsetCommitRequest,
    EndTxnRequest,
]
FAULTS: list[Fault] = [disconnect_before(), disconnect_after(), late(500), late(5_000), slow(500), never(), slow(5_000)]
PASSING = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS]
LASTING = [ErrorCode.INVALID_RECORD, ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@dataclass(frozen=True)
class Step:
    """A transaction, and what happens meanwhile."""

    records: int
    sends_offsets: bool
    commits: bool
    faults: list[tuple[int, int]]
    refusals: list[tuple[int, ErrorCode]]
    record_error: ErrorCode | None

    @property
    def goes_wrong(self) -> bool:
        return bool(self.faults or self.refusals or self.record_error)


STEPS = st.lists(
    st.builds(
        Step,
        records=st.integers(0, 4),
        sends_offsets=st.booleans(),
        commits=st.sampled_from([True, True, True, False]),
        faults=st.lists(st.tuples(st.integers(0, len(KINDS) - 1), st.integers(0, len(FAULTS) - 1)), max_size=2),
        refusals=st.lists(st.tuples(st.integers(0, len(KINDS) - 1), st.sampled_from(PASSING)), max_size=2),
        record_error=st.sampled_from([None, None, None, *LASTING]),
    ),
    min_size=1,
    max_size=6,
)


@given(STEPS, st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_transaction_is_there_as_its_program_was_told(steps: list[Step], uses_v2: bool) -> None:
    run_virtual(history(steps, uses_v2))


async def history(steps: list[Step], uses_v2: bool) -> None:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, 2)
        coordinator = serve_transactions(cluster, uses_v2=uses_v2)
        expected: list[bytes] = []
        offsets: list[tuple[str, int, int]] = []
        settings = {"request_timeout_ms": 2_000, "delivery_timeout_ms": 30_000, "max_block_ms": 20_000}
        async with producing(cluster, transactional_id="payments", **settings) as producer:
            for number, step in enumerate(steps):
                coordinator.calms_down()
                for kind, fault in step.faults:
                    cluster.on(KINDS[kind], FAULTS[fault])
                for kind, code in step.refusals:
                    coordinator.refuses(KINDS[kind], code)
                if step.record_error is not None:
                    coordinator.refuses(ProduceRequest, step.record_error)
                values = [b"%d-%d" % (number, index) for index in range(step.records)]
                is_committed = await transact(producer, number, step, values)
                assert is_committed is step.commits or step.goes_wrong
                if is_committed:
                    expected += values
                    offsets += [("input", 0, number)] * step.sends_offsets
        assert sorted(coordinator.visible(TOPIC)) == sorted(expected)
        assert list(dict.fromkeys(coordinator.visible("billing"))) == offsets


class Stop(Exception):
    """What the program raises in a transaction that it does not want."""


async def transact(producer: Producer, number: int, step: Step, values: list[bytes]) -> bool:
    """Whether the transaction was committed."""
    txn = producer.transaction()
    try:
        async with txn:
            for value in values:
                await txn.send(TOPIC, value, key=value)
            if step.sends_offsets:
                await txn.send_offsets({INPUT: number}, "billing")
            if not step.commits:
                raise Stop
    except (TransactionFailed, Stop):
        return False
    except CommitOutcomeUnknown:
        await txn.commit()
    return True
