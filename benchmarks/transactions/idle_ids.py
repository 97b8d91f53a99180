"""What 10,000 transactional ids cost that do nothing: each has had its producer id, and nobody uses it.

The broker's resident memory is read before they are there and afterwards.
"""

from functools import partial
from typing import Final

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.coordinators import KeyType, coordinator_of
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.idle_connections import settled
from benchmarks.load.wire import Wire, check, repeat_until_answered
from benchmarks.transactions.transactor import INIT_VERSION, TIMEOUT_MS
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest

FIRST: Final = 64
"""So many are there before memory is read: with them come `__transaction_state`, and what is imported late."""
BAR: Final = Bar("≤", 20.0)


def measure_idle_ids(bench: Bench) -> Outcome:
    """Raises KafkaError, OSError."""
    count = bench.plan.transactional_ids
    with bench.own_odradek("idle-ids") as server:
        megabytes = idle_with(server, count)
    bench.say(f"{count:,} idle transactional ids: {megabytes:.1f} MB")
    outcome = Outcome()
    outcome.add(Statement(f"memory of {count:,} idle transactional ids", "MB", Summary((megabytes,)), None, BAR, 1))
    return outcome


def idle_with(server: Server, count: int) -> float:
    """Megabytes that so many ids take. Raises KafkaError, OSError."""
    pid = server.process.pid
    with server.wire() as wire:
        repeat_until_answered(partial(coordinator_of, wire, "first", KeyType.TRANSACTION))
        for number in range(FIRST):
            initialize(wire, f"first-{number}")
        before_bytes = settled(pid)
        for number in range(count):
            initialize(wire, f"transactional-id-{number}")
        return (settled(pid) - before_bytes) / MEGABYTE


def initialize(wire: Wire, transactional_id: str) -> None:
    """Raises KafkaError, OSError."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS)

    def ask() -> None:
        check(wire.ask(request, INIT_VERSION).error_code)

    repeat_until_answered(ask)
