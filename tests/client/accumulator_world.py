"""A producer's core in a small world: records come, time passes, brokers append, refuse or vanish, answers come or not.

Accumulator, batches, memory, results and idempotence are the real ones, used as client/producer/sending/sender.py and
client/producer/sending/settlement.py in client/producer/ use them, one step at a time. The brokers are those of
`model_broker.py`; what they append is read from the bytes that would be sent. The world checks each step against what
it knows itself: `accumulator_checks.py`.
"""

from odradek.client.errors.client_errors import ConnectionFailed, DeliveryTimeout
from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.idempotence.idempotence import Key
from odradek.protocol.batches.batch import HEADER_SIZE, read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.errors import ErrorCode, Reaction, produce_reaction
from tests.client.accumulator_checks import Checks
from tests.client.accumulator_records import (
    COMPRESSED_IN_LOOP_BYTES,
    KEYS,
    TIMEOUT_MS,
    TOPICS,
    Request,
    Sent,
    Start,
)
from tests.client.model_broker import Answer, SentBatch

__all__ = ["KEYS", "TOPICS", "Start", "World"]


class World(Checks):
    """The sender and the brokers."""

    def obtain_id(self) -> None:
        if self.idempotence is not None and self.idempotence.needs_producer_id:
            self.idempotence.set_producer_id(self.next_id, 0)
            self.next_id += 1

    def run(self) -> None:
        """Rounds of the sender until one sends nothing."""
        while self.round():
            pass

    def round(self) -> bool:
        accumulator = self.accumulator
        self.expire()
        if self.idempotence is not None:
            self.idempotence.advance()
            assert self.idempotence.take_events() == []
            if not self.idempotence.has_producer_id:
                return False
        ready = accumulator.ready(self.leader_of, self.now_ms)
        self.check_ready(ready.nodes, ready.next_ms, ready.unknown_leaders)
        has_sent = False
        for node, queues in ready.nodes.items():
            if node in self.compressing or len(self.connections[node]) >= self.start.in_flight_max:
                continue
            before = self.queued()
            drained = accumulator.drain(queues, self.leader_of, self.now_ms)
            self.check_drained(node, queues, before, drained)
            if drained:
                has_sent = True
                self.prepare(node, drained)
        return has_sent

    def expire(self) -> None:
        for batch in self.accumulator.expired(self.now_ms):
            assert batch.deadline_ms <= self.now_ms
            if self.idempotence is not None and batch.has_sequence:
                self.idempotence.expired(batch.key, batch)
            self.accumulator.fail(batch, DeliveryTimeout(batch.topic, batch.partition, TIMEOUT_MS))
        assert all(batch.deadline_ms > self.now_ms for batch in self.accumulator.incomplete)

    def prepare(self, node: int, batches: list[ProducerBatch]) -> None:
        unsealed = [batch for batch in batches if batch.encoded is None]
        codec = self.start.codec
        if codec is not Codec.NONE and any(batch.size > COMPRESSED_IN_LOOP_BYTES for batch in unsealed):
            for batch in batches:
                self.accumulator.mute(batch)
            self.compressing[node] = batches
        else:
            self.write(node, batches)

    def compressed(self, node: int) -> None:
        """The thread has compressed the batches of a node."""
        batches = self.compressing.pop(node, None)
        if batches is not None:
            for batch in batches:
                self.accumulator.unmute(batch)
            self.write(node, batches)

    def write(self, node: int, batches: list[ProducerBatch]) -> None:
        sent: list[Sent] = []
        for batch in batches:
            if batch.encoded is None:
                payload = batch.compressed(self.start.codec, None)
                if self.start.codec is not Codec.NONE:
                    self.accumulator.topics[batch.topic].observe_ratio(len(payload), batch.size - HEADER_SIZE)
                batch.seal(payload, self.start.codec)
            if batch.result.is_done:
                self.accumulator.remove_in_flight(batch)
            else:
                assert batch.encoded is not None
                sent.append(Sent(batch, batch.key, self.read(batch.key, batch.encoded), len(batch.encoded)))
        if sent:
            self.request_count += 1
            self.connections[node].append(Request(sent))

    def read(self, key: Key, encoded: bytes) -> SentBatch:
        """What the bytes of a batch say; every record in them is one that was accepted for this partition."""
        header = read_header(encoded)
        records = list(iterate_records(encoded))
        numbers: list[int] = []
        for record in records:
            assert record.value is not None
            number = int(record.value.partition(b":")[0])
            assert self.records[number].key == key
            assert record[1:] == self.records[number].content
            numbers.append(number)
        producer_id = header.producer_id
        if self.idempotence is None:
            assert producer_id == header.base_sequence == -1
            self.plain_count -= 1
            return SentBatch(self.plain_count, 0, 0, len(records), tuple(numbers))
        assert producer_id >= 0
        return SentBatch(producer_id, header.producer_epoch, header.base_sequence, len(records), tuple(numbers))

    # ------------------------------------------------------------------------------------------------- brokers
    def handle(self, node: int) -> None:
        """The broker handles the oldest request that it has not handled."""
        for request in self.connections[node]:
            if not request.is_handled:
                request.is_handled = True
                for sent in request.batches:
                    broker = self.brokers[sent.key]
                    is_there = set(sent.content.units) <= set(broker.units)
                    if sent.size_bytes > self.limits[sent.key[0]] and not is_there:
                        sent.answer = Answer(ErrorCode.MESSAGE_TOO_LARGE)
                        self.refused_count += 1
                    else:
                        sent.answer = broker.handle(node, sent.content)
                return

    def receive(self, node: int) -> None:
        """The oldest answer arrives, if the broker has given it."""
        requests = self.connections[node]
        if requests and requests[0].is_handled:
            request = requests.popleft()
            self.settle(request, was_answered=True)

    def disconnect(self, node: int) -> None:
        """What the broker has not handled is lost, and so are the answers that have not arrived."""
        requests = list(self.connections[node])
        self.connections[node].clear()
        for request in requests:
            for sent in request.batches:
                sent.answer = Answer(ErrorCode.NETWORK_EXCEPTION)
            self.settle(request, was_answered=False)

    def settle(self, request: Request, *, was_answered: bool) -> None:
        for sent in request.batches:
            self.accumulator.remove_in_flight(sent.batch)
        for sent in request.batches:
            assert sent.answer is not None
            self.react(sent.batch, sent.answer, was_answered)

    def react(self, batch: ProducerBatch, answer: Answer, was_answered: bool) -> None:
        accumulator, idempotence = self.accumulator, self.idempotence
        reaction = produce_reaction(answer.code)
        if reaction is Reaction.SUCCESS:
            if idempotence is not None:
                idempotence.completed(batch.key, batch, answer.base_offset)
            accumulator.complete(batch, answer.base_offset, -1)
            return
        if batch.result.is_done:
            return
        if reaction is Reaction.SEQUENCE:
            reaction = Reaction.FAIL
            if idempotence is not None:
                reaction = idempotence.decide(batch.key, batch, answer.code, answer.log_start_offset)
        if reaction.retriable and batch.attempts < self.start.retries:
            accumulator.requeue(batch, self.now_ms)
        elif reaction is Reaction.SPLIT and batch.count > 1:
            accumulator.split(batch)
        else:
            if idempotence is not None:
                is_certain = was_answered and batch.attempts < self.start.retries
                idempotence.failed(batch.key, batch, answer.code, is_certain)
            accumulator.fail(batch, ConnectionFailed("a broker", answer.code.name))

    def refresh(self, key: Key) -> None:
        """Metadata tells the leader of a partition."""
        node, epoch = self.leaders[key]
        if node != self.brokers[key].leader:
            self.leaders[key] = (self.brokers[key].leader, epoch + 1)
        self.update_available(key[0])

    def vanish(self, key: Key) -> None:
        """Metadata tells that a partition has no leader."""
        self.leaders[key] = (-1, self.leaders[key][1])
        self.update_available(key[0])

    def update_available(self, topic: str) -> None:
        count = TOPICS[topic]
        self.accumulator.topic(topic).update(count, [n for n in range(count) if self.leaders[topic, n][0] >= 0])
