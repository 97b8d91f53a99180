"""What a copier of an exactly-once chain does, common to those of all libraries.

A copier is a member of a group. It reads a topic with read_committed, and writes each record to its target in a
transaction, with the group's offsets in it. One in four it aborts, and goes back to what is committed. Whatever else
goes wrong ends its clients, and it begins anew with others, as a program does that is started again.

Calls of kafka-python and librdkafka now and then do not return, whatever brokers do (their copiers' modules say when).
A copier that begins nothing for a while ends with a code of its own then, and another life of it is started.
"""

import os
import random
import sys
import time
import traceback
from threading import Thread
from typing import Final

from odradek.testing.sim.checking.numbered import decoded
from tests.cluster.client_session import Session

TRANSACTION_TIMEOUT_MS: Final = 5_000
ABORT_CHANCE: Final = 0.25
RECORDS_MAX: Final = 60
"""A transaction's."""
PAUSE_S: Final = 0.15
"""Between two transactions, so that brokers, which do more for each of them than copiers do, have a moment."""
CALL_S: Final = 30.0
"""How long a copier waits for a coordinator before it begins anew."""
STOOD_STILL_CODE: Final = 19
STILL_LOOKS: Final = 12
"""So many seconds in which its process runs: while it is paused nobody looks."""
ALONE_S: Final = 12.0
"""One that has had no partition for so long begins anew."""


class Aborted(Exception):
    """A copier's own choice."""


class Copying:
    """A copier's side. What it could not do goes to its log."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.job = session.job
        self.steps = 0
        """How often it has begun something; who waits for a library begins nothing."""
        self._rng = random.Random(session.job.name)

    @property
    def is_over(self) -> bool:
        return self.session.stop.is_set()

    def begins(self) -> None:
        self.steps += 1

    def end_where_it_stands_still(self) -> None:
        """From now on."""
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        looks, steps = 0, self.steps
        while looks < STILL_LOOKS:
            time.sleep(1)  # between two looks
            looks, steps = (looks + 1 if self.steps == steps else 0), self.steps
        self.note("its library stands still")
        os._exit(STOOD_STILL_CODE)

    def aborts(self) -> bool:
        """Whether this transaction is one of those."""
        return self._rng.random() < ABORT_CHANCE

    def target_partition(self, value: bytes | None) -> int:
        return decoded(value) % self.job.target_partitions

    def pause(self) -> None:
        self.session.stop.wait(PAUSE_S)

    def note(self, what: str) -> None:
        sys.stderr.write(f"{self.job.name}: {what}\n")
        sys.stderr.flush()

    def failed(self) -> None:
        """Tells of the error that is being handled."""
        self.note(f"begins anew after {traceback.format_exc()}")
