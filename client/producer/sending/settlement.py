"""What the answer to a Produce means for its batches: `produce_reaction` decides, the idempotence state where it must.

    success          acknowledged; DUPLICATE_SEQUENCE_NUMBER too, though nobody knows the offset any more
    retry            back into the queue, for as long as `retries` and `delivery_timeout_ms` allow
    retry + refresh  the same, and metadata is asked for; the leader that the answer names is used at once (KIP-951)
    split            two halves in place of a batch that is too large; a single record fails
    fail             the records fail; what the broker says of single ones goes to these (KIP-467)
    fatal            the same, and the producer accepts nothing any more

A batch of a transaction that fails takes the transaction along, and counts as looked at: whoever commits it is told.

A batch that is answered after its delivery timeout has ended already: its records were reported as failed. Then the
answer is only booked in the idempotence state, which needs to know how far the broker has come.

(Source: Sender.java: completeBatch, canRetry, failBatch.)
"""

import logging
from collections.abc import Callable
from typing import Final

from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import (
    BrokerError,
    ClientError,
    MalformedResponse,
    RecordTooLarge,
    broker_error,
)
from odradek.client.metrics.metrics import (
    BATCH_SPLIT_TOTAL,
    BYTE_TOTAL,
    PRODUCE_THROTTLE_TIME,
    RECORD_ERROR_TOTAL,
    RECORD_RETRY_TOTAL,
    RECORD_SEND_TOTAL,
    Metrics,
)
from odradek.client.network.backoff import Backoff
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.client.producer.transactions.machine import TransactionMachine
from odradek.protocol.errors import ErrorCode, Reaction, produce_reaction
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

logger = logging.getLogger(__name__)

Answer = ProduceResponse | ClientError | None
"""A response, why there is none, or None where none was asked for (acks=0) and the request has been written."""

MARKERS_BACKOFF_MS: Final = 20.0
"""The first wait of a batch that came while the markers of the last transaction were written."""
LEADER_HINTS: Final = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1


class Settlement:
    """Ends, requeues or splits batches by the answers to their requests."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        cluster: Cluster,
        idempotence: Idempotence | None,
        metrics: Metrics,
        transactions: TransactionMachine | None,
        random: Callable[[], float],
    ) -> None:
        self.fatal_error: ClientError | None = None
        self._config = config
        self._accumulator = accumulator
        self._cluster = cluster
        self._idempotence = idempotence
        self._metrics = metrics
        self._transactions = transactions
        backoff_max_ms = max(MARKERS_BACKOFF_MS, config.retry_backoff_max_ms)
        self._markers_backoff = Backoff(MARKERS_BACKOFF_MS, backoff_max_ms, random)

    def apply_answer(self, node_id: int, batches: list[ProducerBatch], answer: Answer, now_ms: float) -> None:
        """Does what the answer to a request says for each of its batches, in the order in which they were sent."""
        for batch in batches:
            self._accumulator.remove_in_flight(batch)
        if answer is None:
            for batch in batches:
                self._succeed(batch, NO_OFFSET, NO_TIMESTAMP)
        elif isinstance(answer, ClientError):
            for batch in batches:
                self._apply_error(batch, answer.code or ErrorCode.NETWORK_EXCEPTION, None, answer, now_ms)
        else:
            self._settle_response(node_id, batches, answer, now_ms)

    def _settle_response(
        self, node_id: int, batches: list[ProducerBatch], response: ProduceResponse, now_ms: float
    ) -> None:
        self._metrics.observe(PRODUCE_THROTTLE_TIME, response.throttle_time_ms, str(node_id))
        found = {(topic.name, each.index): each for topic in response.responses for each in topic.partition_responses}
        for batch in batches:
            answer = found.get(batch.key)
            if answer is None:
                why = f"{batch.topic}-{batch.partition} is not in it"
                error = MalformedResponse("Produce", f"broker {node_id}", why)
                self._apply_error(batch, ErrorCode.NETWORK_EXCEPTION, None, error, now_ms)
            elif not answer.error_code:
                appended_ms = answer.log_append_time_ms
                # Of a batch that it has already, a broker answers the largest timestamp, whoever stamped the records.
                is_stamped = not (batch.attempts and appended_ms == batch.max_timestamp)
                self._succeed(batch, answer.base_offset, appended_ms if is_stamped else NO_TIMESTAMP)
            else:
                self._take_hint(batch, answer, response)
                self._apply_error(batch, answer.error_code, answer, None, now_ms)

    def _take_hint(self, batch: ProducerBatch, answer: PartitionProduceResponse, response: ProduceResponse) -> None:
        leader = answer.current_leader
        if leader is not None and leader.leader_id >= 0 and answer.error_code in LEADER_HINTS:
            self._cluster.metadata.update_leader(
                batch.topic, batch.partition, leader.leader_id, leader.leader_epoch, response.node_endpoints
            )

    def _apply_error(
        self,
        batch: ProducerBatch,
        code: int,
        answer: PartitionProduceResponse | None,
        error: ClientError | None,
        now_ms: float,
    ) -> None:
        """Of an error code, or of a request without an answer (`error` says why)."""
        reaction = produce_reaction(code)
        if reaction is Reaction.SUCCESS:
            self._succeed(batch, NO_OFFSET, NO_TIMESTAMP)
            return
        if batch.result.is_done:
            return
        if reaction is Reaction.SEQUENCE:
            log_start_offset = -1 if answer is None else answer.log_start_offset
            reaction = Reaction.FAIL
            if self._idempotence is not None:
                reaction = self._idempotence.decide(batch.key, batch, code, log_start_offset)
        if error is None:
            error = self._error(batch, code, answer)
        if reaction is Reaction.RETRY_REFRESH:
            self._cluster.metadata.request_update()
        match reaction:
            case Reaction.RETRY | Reaction.RETRY_REFRESH if batch.attempts < self._config.retries:
                self._retry(batch, error, now_ms)
            case Reaction.SPLIT if batch.count > 1:
                self._split(batch)
            case _:
                if reaction is Reaction.FATAL:
                    self.fatal_error = error
                self._fail(batch, code, error, answer)

    def _succeed(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        if self._idempotence is not None:
            self._idempotence.completed(batch.key, batch, base_offset)
        if not batch.result.is_done:
            self._metrics.count(RECORD_SEND_TOTAL, batch.count, batch.topic)
            self._metrics.count(BYTE_TOTAL, batch.sent_bytes, batch.topic)
        self._accumulator.complete(batch, base_offset, log_append_time_ms)

    def _retry(self, batch: ProducerBatch, error: ClientError, now_ms: float) -> None:
        is_early = error.code is ErrorCode.CONCURRENT_TRANSACTIONS
        logger.log(
            logging.WARNING if batch.attempts == 0 and not is_early else logging.DEBUG,
            "%s: a batch of %d record(s) for %s-%d is sent again: %s",
            self._config.client_id,
            batch.count,
            batch.topic,
            batch.partition,
            error,
        )
        batch.last_error = error
        self._metrics.count(RECORD_RETRY_TOTAL, batch.count, batch.topic)
        self._accumulator.requeue(batch, now_ms, self._markers_backoff if is_early else None)

    def _split(self, batch: ProducerBatch) -> None:
        logger.info(
            "%s: %s-%d takes no batch of %d bytes (%d records): it is sent in two halves",
            self._config.client_id,
            batch.topic,
            batch.partition,
            batch.sent_bytes,
            batch.count,
        )
        self._metrics.count(BATCH_SPLIT_TOTAL, 1, batch.topic)
        self._accumulator.split(batch)

    def _fail(
        self, batch: ProducerBatch, code: int, error: ClientError, answer: PartitionProduceResponse | None
    ) -> None:
        """Only an answer that says that nothing was appended, before the retries ran out, makes the sequence free."""
        if self._idempotence is not None:
            is_certain = answer is not None and batch.attempts < self._config.retries
            self._idempotence.failed(batch.key, batch, code, is_certain)
        self._end(batch, error, self._record_errors(batch, code, answer))

    def give_up(self, batch: ProducerBatch, error: ClientError) -> None:
        """Ends a batch that has not ended, without knowing what became of it, if it was sent."""
        if self._idempotence is not None and batch.has_sequence:
            self._idempotence.expired(batch.key, batch)
        self._end(batch, error, None)

    def _end(self, batch: ProducerBatch, error: ClientError, record_errors: dict[int, ClientError] | None) -> None:
        self._metrics.count(RECORD_ERROR_TOTAL, batch.count, batch.topic)
        if self._transactions is not None:
            self._transactions.delivery_failed(error)
            batch.result.observe(range(batch.count))
        self._accumulator.fail(batch, error, record_errors)

    def _error(self, batch: ProducerBatch, code: int, answer: PartitionProduceResponse | None) -> ClientError:
        said = "" if answer is None or answer.error_message is None else answer.error_message
        if code == int(ErrorCode.MESSAGE_TOO_LARGE):
            return RecordTooLarge(batch.topic, batch.sent_bytes, None, "max.message.bytes", broker_message=said)
        return broker_error(code, said, f"a batch of {batch.count} record(s) for {batch.topic}-{batch.partition}")

    def _record_errors(
        self, batch: ProducerBatch, code: int, answer: PartitionProduceResponse | None
    ) -> dict[int, ClientError] | None:
        """By index, where the broker names single records; then the others failed only because they came with these."""
        if answer is None or not answer.record_errors:
            return None
        for_all = answer.error_message or ""  # of the partition
        named = {each.batch_index: each.batch_index_error_message or for_all for each in answer.record_errors}
        others = BrokerError(ErrorCode.INVALID_RECORD, "", what=f"a record beside invalid ones in {batch.topic}")
        code_of_one = code if len(named) == 1 else ErrorCode.INVALID_RECORD
        return {
            index: broker_error(code_of_one, named[index], f"a record for {batch.topic}-{batch.partition}")
            if index in named
            else others
            for index in range(batch.count)
        }
