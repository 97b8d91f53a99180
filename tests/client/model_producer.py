"""A small model of a producer around the idempotence state: queues, two connections, and what answers mean.

It does as client/producer/batching/accumulator.py, client/producer/sending/sender.py and
client/producer/sending/settlement.py in client/producer/ do, one step at a time and without clocks, bytes and memory,
so that a test can choose the order of all steps. Requests on a connection are handled and answered in order; the two
connections know nothing of each other, and the producer may take the wrong broker for the leader.
"""

from dataclasses import dataclass, field

from odradek.client.producer.idempotence.idempotence import Idempotence, Key
from odradek.protocol.errors import ErrorCode, Reaction, produce_reaction
from tests.client.model_broker import Answer, ModelPartition, SentBatch

IN_FLIGHT_MAX = 5


class ModelBatch:
    """A batch in the producer. Renumbering it while it is, or may come to be, in the log is what must never happen."""

    def __init__(self, partition: ModelPartition, order: tuple[int, ...], units: tuple[int, ...], weight: int) -> None:
        self.partition = partition
        self.order = order
        self.units = units
        self.weight = weight
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = -1
        self.in_flight = False
        self.attempts = 0
        self.outcome = ""

    def __repr__(self) -> str:
        where = f"{self.producer_id}/{self.producer_epoch}/{self.base_sequence}"
        return f"<{self.units} {where} {'on the wire' if self.in_flight else ''} {self.outcome}>"

    @property
    def count(self) -> int:
        return len(self.units) * self.weight

    def renumber(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        assert not self.in_flight, f"{self} is renumbered on the wire"
        assert 0 <= producer_epoch < 2**15
        assert 0 <= base_sequence < 2**31
        if self.base_sequence >= 0 and not self.partition.has_lost_state:
            assert not set(self.units) & set(self.partition.units), f"{self} is renumbered, and in the log"
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence

    def sent(self) -> SentBatch:
        return SentBatch(self.producer_id, self.producer_epoch, self.base_sequence, self.count, self.units)

    def split(self) -> list["ModelBatch"]:
        cut = len(self.units) // 2
        halves = (self.units[:cut], self.units[cut:])
        return [
            ModelBatch(self.partition, (*self.order, index), half, self.weight) for index, half in enumerate(halves)
        ]


@dataclass
class ModelRequest:
    key: Key
    batch: ModelBatch
    sent: SentBatch
    answer: Answer | None = None


@dataclass
class ModelProducer:
    brokers: dict[Key, ModelPartition]
    weight: int
    retries: int
    first_epoch: int
    state: Idempotence = field(default_factory=Idempotence)
    queues: dict[Key, list[ModelBatch]] = field(default_factory=dict[Key, list[ModelBatch]])
    believed: dict[Key, int] = field(default_factory=dict[Key, int])
    connections: tuple[list[ModelRequest], list[ModelRequest]] = field(
        default_factory=lambda: (list[ModelRequest](), list[ModelRequest]())
    )
    batches: dict[Key, list[ModelBatch]] = field(default_factory=dict[Key, list[ModelBatch]])
    next_id: int = 1000
    unit_count: int = 0

    def __post_init__(self) -> None:
        for key in self.brokers:
            self.queues[key] = []
            self.batches[key] = []
            self.believed[key] = 0

    # ----------------------------------------------------------------------------------------------- sending
    def append(self, key: Key, unit_count: int) -> ModelBatch:
        units = tuple(range(self.unit_count, self.unit_count + unit_count))
        self.unit_count += unit_count
        batch = ModelBatch(self.brokers[key], (units[0],), units, self.weight)
        self.batches[key].append(batch)
        self.queues[key].append(batch)
        return batch

    def obtain_id(self) -> None:
        if self.state.needs_producer_id:
            self.state.set_producer_id(self.next_id, self.first_epoch)
            self.next_id += 1

    def drain(self, key: Key) -> None:
        """One round of the sender, for one partition."""
        self.state.advance()
        requests = self.connections[self.believed[key]]
        queue = self.queues[key]
        if not queue or len(requests) >= IN_FLIGHT_MAX or not self.state.may_drain(key, queue[0]):
            return
        batch = queue.pop(0)
        if batch.base_sequence < 0:
            self.state.assign(key, batch)
        batch.in_flight = True
        requests.append(ModelRequest(key, batch, batch.sent()))

    # ----------------------------------------------------------------------------------------------- network
    def handle(self, node: int) -> None:
        """The broker handles the oldest request that it has not handled."""
        for request in self.connections[node]:
            if request.answer is None:
                request.answer = self.brokers[request.key].handle(node, request.sent)
                return

    def receive(self, node: int) -> None:
        """The oldest answer arrives, if the broker has given it."""
        requests = self.connections[node]
        if requests and (answer := requests[0].answer) is not None:
            request = requests.pop(0)
            request.batch.in_flight = False
            self._settle(request.key, request.batch, answer, was_answered=True)

    def disconnect(self, node: int) -> None:
        """What the broker has not handled is lost, and so are the answers that have not arrived."""
        requests = list(self.connections[node])
        self.connections[node].clear()
        for request in requests:
            request.batch.in_flight = False
        for request in requests:
            self._settle(request.key, request.batch, Answer(ErrorCode.NETWORK_EXCEPTION), was_answered=False)

    def refresh(self, key: Key) -> None:
        self.believed[key] = self.brokers[key].leader

    # ----------------------------------------------------------------------------------------------- answers
    def expire(self, key: Key) -> None:
        """The oldest batch that has not ended exceeds its delivery timeout."""
        batch = min(self.open_batches(key), key=lambda batch: batch.order, default=None)
        if batch is not None:
            if batch.base_sequence >= 0:
                self.state.expired(key, batch)
            self._end(key, batch, "expired")

    def open_batches(self, key: Key) -> list[ModelBatch]:
        return [batch for batch in self.batches[key] if not batch.outcome]

    def _settle(self, key: Key, batch: ModelBatch, answer: Answer, *, was_answered: bool) -> None:
        reaction = produce_reaction(answer.code)
        if reaction is Reaction.SUCCESS:
            self.state.completed(key, batch, answer.base_offset)
            if not batch.outcome:
                self._end(key, batch, "acknowledged")
            return
        if batch.outcome:
            return
        if reaction is Reaction.SEQUENCE:
            reaction = self.state.decide(key, batch, answer.code, answer.log_start_offset)
        if reaction.retriable and batch.attempts < self.retries:
            batch.attempts += 1
            self._insert(key, batch)
        elif reaction is Reaction.SPLIT and len(batch.units) > 1:
            parts = batch.split()
            self.state.split(key, batch, parts)
            for part in parts:
                self.batches[key].append(part)
                self._insert(key, part)
            batch.outcome = "split"
        else:
            self.state.failed(key, batch, answer.code, was_answered and batch.attempts < self.retries)
            self._end(key, batch, "failed")

    def _insert(self, key: Key, batch: ModelBatch) -> None:
        queue = self.queues[key]
        queue.append(batch)
        queue.sort(key=lambda batch: batch.order)

    def _end(self, key: Key, batch: ModelBatch, outcome: str) -> None:
        batch.outcome = outcome
        if batch in self.queues[key]:
            self.queues[key].remove(batch)
