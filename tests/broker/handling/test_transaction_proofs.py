"""What the first batch of a transaction is appended with: the coordinator's word, asked for once for all partitions."""

import pytest

from odradek.broker.handling.context import Context
from odradek.broker.handling.transaction_proofs import FirstBatch, proofs_of
from odradek.broker.log.verifications import Proof
from odradek.broker.txn.inclusion import Inclusions
from odradek.broker.txn.peer_requests import Included, Inclusion
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.support import call
from tests.broker.transactions import PAYMENTS, Producer, running_transactions

pytestmark = pytest.mark.virtual_time
PRODUCER = ProducerIdentity(7, 0)
FIRST, SECOND = ("orders", 0), ("orders", 1)


class Coordinator:
    """Answers by partition, or refuses all, and keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Included | KafkaError) -> None:
        self.answer = answer
        self.asked: list[Inclusion] = []
        coordinator = self

        async def ask(inclusions: Inclusions, question: Inclusion) -> Included:
            del inclusions
            coordinator.asked.append(question)
            if isinstance(coordinator.answer, KafkaError):
                raise coordinator.answer
            return coordinator.answer

        monkeypatch.setattr(Inclusions, "ask", ask)


def batches(context: Context, *places: TopicPartition) -> list[FirstBatch]:
    return [FirstBatch(context.partitions.leader(topic, index), 0) for topic, index in places]


async def test_one_question_gives_each_partition_its_proof_or_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator(monkeypatch, {FIRST: ErrorCode.NONE, SECOND: ErrorCode.TRANSACTION_ABORTABLE})
    async with running_transactions() as context:
        of = batches(context, FIRST, SECOND)
        proofs = await proofs_of(context, call(), PAYMENTS, PRODUCER, of, adds=False)
        assert coordinator.asked == [Inclusion(PAYMENTS, PRODUCER, frozenset((FIRST, SECOND)), False)]
        assert proofs[SECOND] is ErrorCode.TRANSACTION_ABORTABLE
        proof = proofs[FIRST]
        assert isinstance(proof, Proof)
        assert proof.verification is not None
        assert of[0].partition.log.producers.verifications.stands(PRODUCER.producer_id, proof.verification)


async def test_what_the_coordinator_leaves_out_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another broker's answer is not ours to trust: the other partitions go on."""
    Coordinator(monkeypatch, {FIRST: ErrorCode.NONE})
    async with running_transactions() as context:
        of = batches(context, FIRST, SECOND)
        proofs = await proofs_of(context, call(), PAYMENTS, PRODUCER, of, adds=True)
        assert isinstance(proofs[FIRST], Proof)
        assert proofs[SECOND] is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_refusal_of_the_transaction_is_that_of_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    Coordinator(monkeypatch, KafkaError(ErrorCode.PRODUCER_FENCED, "because"))
    async with running_transactions() as context:
        of = batches(context, FIRST, SECOND)
        proofs = await proofs_of(context, call(), PAYMENTS, PRODUCER, of, adds=True)
        assert proofs == {FIRST: ErrorCode.PRODUCER_FENCED, SECOND: ErrorCode.PRODUCER_FENCED}


async def test_where_the_transaction_is_open_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await producer.send(b"a")
        coordinator = Coordinator(monkeypatch, {SECOND: ErrorCode.NONE})
        identity = ProducerIdentity(producer.producer_id, producer.epoch)
        assert await proofs_of(context, call(), PAYMENTS, identity, batches(context, FIRST), adds=True) == {}
        assert coordinator.asked == []
        proofs = await proofs_of(context, call(), PAYMENTS, identity, batches(context, FIRST, SECOND), adds=True)
        assert [*proofs] == [*coordinator.asked[0].partitions] == [SECOND]


@pytest.mark.parametrize("adds", [True, False])
async def test_without_verification_only_what_is_to_be_added_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, adds: bool
) -> None:
    coordinator = Coordinator(monkeypatch, {FIRST: ErrorCode.NONE})
    async with running_transactions({"transaction.partition.verification.enable": "false"}) as context:
        proofs = await proofs_of(context, call(), PAYMENTS, PRODUCER, batches(context, FIRST), adds=adds)
        assert isinstance(proofs[FIRST], Proof)
        assert len(coordinator.asked) == adds


async def test_a_coordinators_batch_has_no_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    Coordinator(monkeypatch, {FIRST: ErrorCode.NONE})
    async with running_transactions() as context:
        of = [FirstBatch(context.partitions.leader(*FIRST))]
        proofs = await proofs_of(context, call(), PAYMENTS, PRODUCER, of, adds=True, is_coordinators=True)
        proof = proofs[FIRST]
        assert isinstance(proof, Proof)
        assert proof.is_coordinators
