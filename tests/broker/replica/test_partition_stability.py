"""The last stable offset of a partition: readers of committed records stop before what may still be aborted, or lost.

Transactions are made by hand (tests/broker/log/transactions.py); a follower's position holds the high watermark back.
"""

import asyncio
from collections.abc import Callable

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.replica.isolation import Isolation
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_listener import Alone
from odradek.broker.replica.replicas import Replicas
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from tests.broker.alone import hosted
from tests.broker.log.transactions import TxnModel, filtered

SEGMENT_BYTES = 300


class Led:
    """A partition that broker 0 leads, with a follower that has fetched nothing yet, and the model of its log."""

    def __init__(self, disk: MemoryDisk | None = None, *, is_clean: bool = False, high_watermark: int = 0) -> None:
        self.disk = MemoryDisk() if disk is None else disk
        config = BrokerConfig({"min.insync.replicas": "2"}).topic({})
        log = Log.open(self.disk, "data/orders-0", LogConfig(segment_bytes=SEGMENT_BYTES), 0, is_clean=is_clean)
        environment = Environment(asyncio.get_running_loop())
        tasks = Tasks(environment.loop)
        host = hosted(environment, tasks)
        self.partition = Partition("orders", bytes(16), 0, log, config, host, Alone(), high_watermark)
        self.partition.become_leader(0, Replicas(0, (0, 1), (0, 1)))
        self.model = TxnModel()

    @property
    def log(self) -> Log:
        return self.partition.log

    def replicate(self, offset: int) -> None:
        """The follower has everything before `offset`."""
        now_ms = self.partition.host.environment.monotonic_ms()
        self.partition.replicas.followers[1].fetched(offset, now_ms, self.log.log_end_offset)
        self.partition.acknowledgements.update()

    def check(self) -> None:
        """After each step: the stable offset, and what can be read with each isolation, against the model."""
        partition, model = self.partition, self.model
        stable = partition.reader.last_stable_offset
        assert stable == model.last_stable_offset(partition.high_watermark.value)
        seen: list[tuple[int, bytes | None]] = []
        offset = 0
        while data := bytes(
            partition.reader.fetch(offset, 1 << 20, at_least_one_batch=True, isolation=Isolation.TXN_COMMITTED).records
        ):
            seen += filtered(data, offset, self.log.aborted_transactions(offset, data))
            offset = max(last for _, last, one in model.batches if one in data) + 1
        assert seen == model.committed(0, stable)
        assert offset == stable


async def test_an_open_transaction_holds_it_back_until_its_marker_is_replicated() -> None:
    led = Led()
    led.model.write(led.log, 9, b"plain", is_transactional=False)
    led.replicate(1)
    assert led.partition.reader.last_stable_offset == 1
    led.model.write(led.log, 1, b"a", b"b")
    led.replicate(3)
    assert (led.partition.high_watermark.value, led.partition.reader.last_stable_offset) == (3, 1)
    led.model.end(led.log, 1, is_abort=False)
    led.partition.acknowledgements.update()
    assert led.partition.reader.last_stable_offset == 1, "the marker may be lost yet"
    led.check()
    led.replicate(4)
    assert led.partition.reader.last_stable_offset == 4
    led.check()


@pytest.mark.parametrize("is_abort", [False, True])
async def test_step_by_step_with_three_producers_over_segments(is_abort: bool) -> None:
    led = Led()
    log, model = led.log, led.model
    steps: list[Callable[[], None]] = [
        lambda: model.write(log, 1, b"1a"),
        lambda: model.write(log, 2, b"2a", b"2b"),
        lambda: model.write(log, 9, b"plain", is_transactional=False),
        lambda: model.end(log, 1, is_abort=is_abort),
        lambda: model.write(log, 3, b"3a"),
        lambda: model.write(log, 1, b"1b"),
        lambda: model.end(log, 2, is_abort=True),
        lambda: model.end(log, 3, is_abort=False),
        lambda: model.write(log, 9, b"plain", is_transactional=False),
        lambda: model.end(log, 1, is_abort=True),
    ]
    for step in steps:
        step()
        led.partition.acknowledgements.update()
        led.check()
        for offset in range(led.partition.high_watermark.value + 1, log.log_end_offset, 2):
            led.replicate(offset)
            led.check()
    led.replicate(log.log_end_offset)
    led.check()
    assert len(log.base_offsets) > 2
    assert led.partition.reader.last_stable_offset == log.log_end_offset


async def test_transactions_of_which_one_ended_first_do_not_let_the_other_go() -> None:
    led = Led()
    led.model.write(led.log, 1, b"first")
    led.model.write(led.log, 2, b"second")
    led.replicate(2)
    led.model.end(led.log, 2, is_abort=False)
    led.check()
    led.replicate(3)
    assert led.partition.reader.last_stable_offset == 0
    led.model.end(led.log, 1, is_abort=False)
    led.replicate(4)
    assert led.partition.reader.last_stable_offset == 4
    led.check()


@pytest.mark.parametrize("is_clean", [True, False])
async def test_after_a_restart_an_open_transaction_holds_it_back_again(is_clean: bool) -> None:
    led = Led()
    led.model.write(led.log, 9, b"plain", is_transactional=False)
    led.model.write(led.log, 1, b"open")
    led.model.write(led.log, 2, b"done")
    led.model.end(led.log, 2, is_abort=True)
    led.replicate(4)
    assert led.partition.reader.last_stable_offset == 1
    if is_clean:
        led.log.close()
    else:
        led.log.close_without_flush()
    again = Led(led.disk, is_clean=is_clean, high_watermark=4)
    again.model = led.model
    assert (again.partition.high_watermark.value, again.partition.reader.last_stable_offset) == (4, 1)
    again.model.end(again.log, 1, is_abort=True)
    again.replicate(5)
    assert again.partition.reader.last_stable_offset == 5
    again.check()
