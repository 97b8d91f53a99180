"""Producer and broker together keep each record once and in order, whatever happens between them.

Hypothesis writes histories of single steps for two partitions and two brokers: requests and answers are lost or late,
leaders move while the producer believes in the old ones, batches expire with their requests on the way, brokers refuse
batches before and after the append. At the end the brokers behave, and the model's log is compared with what the
producer said. Broker and producer are `model_broker.py` and `model_producer.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.client.producer.idempotence.idempotence import Key
from odradek.protocol.errors import ErrorCode
from tests.client.model_broker import Fault, ModelPartition, is_ascending
from tests.client.model_producer import ModelProducer

KEYS: tuple[Key, Key] = (("orders", 0), ("orders", 1))
ROUNDS_PER_BATCH = 8
"""Enough for a batch that is sent alone, refused, given another number by a new producer id, and sent again."""

FAULTS = [
    Fault(ErrorCode.NOT_ENOUGH_REPLICAS, False),
    Fault(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
    Fault(ErrorCode.REQUEST_TIMED_OUT, True),
    Fault(ErrorCode.KAFKA_STORAGE_ERROR, True),
    Fault(ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
    Fault(ErrorCode.UNKNOWN_SERVER_ERROR, True),
    Fault(ErrorCode.UNKNOWN_SERVER_ERROR, False),
    Fault(ErrorCode.INVALID_RECORD, False),
    Fault(ErrorCode.INVALID_PRODUCER_EPOCH, False),
    Fault(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, True),
    Fault(ErrorCode.MESSAGE_TOO_LARGE, False),
    Fault(ErrorCode.MESSAGE_TOO_LARGE, False),
]
USUAL = ["append", "drain", "drain", "handle", "receive", "refresh", "send", "send", "send", "exchange"]
RARE = ["disconnect", "move", "flip", "fault", "expire", "id", "handle", "receive", "drain"]
LOSSES = ["truncate", "delete"]


@dataclass(frozen=True)
class Start:
    weight: int
    """Records in a unit. 2^27 make the sequences wrap after 16 of them; five batches of three stay below."""
    retries: int
    first_epoch: int
    is_old: bool


STARTS = st.builds(
    Start,
    weight=st.sampled_from([1, 3, 2**27 - 1]),
    retries=st.sampled_from([10**9, 10**9, 2]),
    first_epoch=st.sampled_from([0, 0, 2**15 - 3]),
    is_old=st.booleans(),
)
Step = tuple[str, Key, int]
"""What is done, to which partition, and a number that chooses among more: the broker, for one."""


def histories(rare: list[str]) -> st.SearchStrategy[list[Step]]:
    """In each history, some of the rare steps are frequent, and the others do not happen."""

    def history(chosen: list[str]) -> st.SearchStrategy[list[Step]]:
        # Hypothesis shrinks to the first of each.
        actions = ["nothing", *USUAL, *chosen]
        keys = [KEYS[0], *KEYS]

        def step(drawn: int) -> Step:
            """One number for all three: drawing is what takes the time here."""
            rest, number = divmod(drawn, len(FAULTS))
            which, index = divmod(rest, len(keys))
            return actions[which], keys[index], number

        steps = st.integers(0, len(actions) * len(keys) * len(FAULTS) - 1).map(step)
        return st.lists(steps, min_size=80, max_size=140)

    return st.lists(st.sampled_from(rare), max_size=5).flatmap(history)


class World:
    def __init__(self, start: Start) -> None:
        self.partitions = {key: ModelPartition(is_old=start.is_old) for key in KEYS}
        self.producer = ModelProducer(self.partitions, start.weight, start.retries, start.first_epoch)
        self.producer.obtain_id()

    def exchange(self, number: int) -> None:
        for _ in range(number % 4 + 1):
            self.producer.handle(number % 2)
        for _ in range(number % 5 + 1):
            self.producer.receive(number % 2)

    def send(self, key: Key, number: int) -> None:
        self.producer.append(key, number % 3 + 1)
        self.producer.drain(key)

    def flip(self, key: Key) -> None:
        self.partitions[key].move()
        self.producer.refresh(key)

    def settle(self) -> None:
        """The brokers behave, and the producer knows them: it goes on until it has nothing left, or for so long."""
        batch_count = sum(len(self.producer.open_batches(key)) for key in KEYS)
        rounds = ROUNDS_PER_BATCH * (3 + batch_count)
        for partition in self.partitions.values():
            partition.faults.clear()
        for _ in range(rounds):
            self.producer.obtain_id()
            for key in KEYS:
                self.producer.refresh(key)
                self.producer.drain(key)
            for node in (0, 1):
                self.producer.handle(node)
                self.producer.receive(node)
            if not any(self.producer.open_batches(key) for key in KEYS) and not any(self.producer.connections):
                return

    def check_log(self, key: Key) -> None:
        partition = self.partitions[key]
        units = partition.units
        acknowledged = {
            unit for batch in self.producer.batches[key] if batch.outcome == "acknowledged" for unit in batch.units
        }
        assert acknowledged <= set(units) | partition.lost
        if not partition.has_lost_state or partition.is_old:
            assert is_ascending(units), units

    def check_progress(self) -> None:
        """Nothing waits any more, and a further batch goes through without waiting for a timeout."""
        for key in KEYS:
            assert self.producer.open_batches(key) == []
        further = [self.producer.append(key, 1) for key in KEYS]
        self.producer.retries = 10**9
        self.settle()
        assert [batch.outcome for batch in further] == ["acknowledged"] * len(KEYS)


DEEDS: dict[str, Callable[[World, Key, int], object]] = {
    "nothing": lambda world, key, number: None,
    "append": lambda world, key, number: world.producer.append(key, number % 3 + 1),
    "drain": lambda world, key, number: world.producer.drain(key),
    "send": lambda world, key, number: world.send(key, number),
    "handle": lambda world, key, number: world.producer.handle(number % 2),
    "receive": lambda world, key, number: world.producer.receive(number % 2),
    "exchange": lambda world, key, number: world.exchange(number),
    "disconnect": lambda world, key, number: world.producer.disconnect(number % 2),
    "refresh": lambda world, key, number: world.producer.refresh(key),
    "expire": lambda world, key, number: world.producer.expire(key),
    "id": lambda world, key, number: world.producer.obtain_id(),
    "move": lambda world, key, number: world.partitions[key].move(),
    "flip": lambda world, key, number: world.flip(key),
    "fault": lambda world, key, number: world.partitions[key].faults.append(FAULTS[number]),
    "truncate": lambda world, key, number: world.partitions[key].truncate(number % 4 + 1),
    "delete": lambda world, key, number: world.partitions[key].delete_all(),
}


def world_after(start: Start, history: list[Step]) -> World:
    world = World(start)
    for action, key, number in history:
        DEEDS[action](world, key, number)
    return world


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(STARTS, histories(RARE))
def test_each_record_is_there_once_and_in_order(start: Start, history: list[Step]) -> None:
    """Without a loss at the broker nothing is lost, nothing waits for a timeout, and there is no false alarm."""
    world = world_after(start, history)
    world.settle()
    for key in KEYS:
        world.check_log(key)
    world.check_progress()
    assert world.producer.state.take_events() == []


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(STARTS, histories(RARE + LOSSES))
def test_a_loss_at_the_broker_costs_no_more_than_what_it_lost(start: Start, history: list[Step]) -> None:
    """What was acknowledged is there, or was there and was lost by the broker; the producer gets over it.

    A batch that a later one has overtaken there may have to expire. Order is kept as long as the broker keeps what it
    knows of the producer, or, before Kafka 2.5, refuses a batch when it does not.
    """
    world = world_after(start, history)
    while True:
        world.settle()
        waiting = [key for key in KEYS if world.producer.open_batches(key)]
        if not waiting:
            break
        for key in waiting:
            partition = world.partitions[key]
            assert partition.has_lost_data or (partition.has_lost_state and not partition.is_old)
            world.producer.expire(key)
    for key in KEYS:
        world.check_log(key)
    world.check_progress()
