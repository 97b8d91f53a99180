"""A cluster that keeps every promise, in fifty lines of state: whatever it does, by chance, is a legal history.

One partition of three replicas, of which only the leader's log and the high watermark are modelled. Requests and
answers are lost, leaders change cleanly and lose what was not replicated, a few times uncleanly; offsets are taken by
control records; readers are placed anew. `mutations.py` makes illegal histories of these.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from odradek.testing.sim.checking.expectations import Rules, TopicRules
from tests.sim.stories import Story

CONTROL: Final = -1
"""In place of a value."""
PRODUCERS: Final = {"idempotent": -1, "idempotent too": -1, "leader only": 1, "nobody": 0}
"""Name -> acks."""
READERS: Final = ("r", "s")


@dataclass
class Batch:
    """A record that was sent."""

    value: int
    producer: str
    is_answered: bool = False
    was_tried: bool = False
    """Whether it was in a log once, so that nobody can say that it never will be."""


@dataclass
class Reader:
    """Where it stands."""

    position: int = 0


@dataclass
class Model:
    """The cluster and its clients. `step` does something."""

    rng: random.Random
    may_be_unclean: bool = True
    story: Story = field(default_factory=lambda: Story(Rules(default=TopicRules(may_elect_uncleanly=True))))
    log: list[Batch] = field(default_factory=list[Batch])
    high_watermark: int = 0
    epoch: int = 1
    leader: int = 1
    sent_count: int = 0
    answered_end: int = 0
    """Behind all that was answered."""

    def __post_init__(self) -> None:
        self.waiting: dict[str, deque[Batch]] = {name: deque() for name in PRODUCERS}
        self.readers = {name: Reader() for name in READERS}
        self.story.stored(1, (1, 2, 3), 1)

    def run(self, step_count: int) -> Story:
        """Ends with everything replicated, answered and read."""
        for _ in range(step_count):
            self.step()
        for producer in PRODUCERS:
            while self.waiting[producer]:
                self.append(producer)
        self.high_watermark = len(self.log)
        self.answer()
        self.story.repaired()
        self.place(READERS[0], 0)
        for name in READERS:
            while self.readers[name].position < len(self.log):
                self.poll(name)
        return self.story.end()

    def step(self) -> None:
        producer = self.rng.choice(list(PRODUCERS))
        reader = self.rng.choice(READERS)
        chance = self.rng.random()
        if chance < 0.30:
            self.send(producer)
        elif chance < 0.50:
            self.append(producer)
        elif chance < 0.60:
            self.high_watermark = self.rng.randint(self.high_watermark, len(self.log))
        elif chance < 0.70:
            self.answer()
        elif chance < 0.90:
            self.poll(reader)
        elif chance < 0.93:
            self.give_up(producer)
        elif chance < 0.95:
            self.log.append(Batch(CONTROL, "", is_answered=True))
        elif chance < 0.97:
            self.place(reader, self.rng.randint(0, self.high_watermark))
        elif chance < 0.995 or not self.may_be_unclean:
            self.fail_over()
        else:
            self.fail_over_uncleanly()

    # -- producers ------------------------------------------------------------------------------------------------

    def send(self, producer: str) -> None:
        self.sent_count += 1
        acks = PRODUCERS[producer]
        self.story.sent(self.sent_count, acks=acks, producer=producer, is_idempotent=acks == -1)
        self.waiting[producer].append(Batch(self.sent_count, producer))

    def append(self, producer: str) -> None:
        if self.waiting[producer]:
            batch = self.waiting[producer].popleft()
            self.log.append(batch)
            batch.was_tried = True
            if PRODUCERS[producer] == 1:
                self.story.acked(batch.value, len(self.log) - 1)
                batch.is_answered = True
            elif PRODUCERS[producer] == 0:
                self.story.acked(batch.value, -1)
                batch.is_answered = True

    def answer(self) -> None:
        """What is replicated; now and then the answer is lost."""
        answered_end, self.answered_end = self.answered_end, self.high_watermark
        for offset, batch in enumerate(self.log[answered_end : self.high_watermark], answered_end):
            if not batch.is_answered:
                batch.is_answered = True
                if self.rng.random() < 0.9:
                    self.story.acked(batch.value, offset)
                else:
                    self.story.failed(batch.value, is_definite=False)

    def give_up(self, producer: str) -> None:
        """On what was sent last, which is appended never."""
        if self.waiting[producer]:
            batch = self.waiting[producer].pop()
            self.story.failed(batch.value, is_definite=not batch.was_tried and self.rng.random() < 0.5)

    # -- readers --------------------------------------------------------------------------------------------------

    def poll(self, name: str) -> None:
        reader = self.readers[name]
        end = min(self.high_watermark, reader.position + self.rng.randint(1, 6))
        records = [
            (offset, self.log[offset].value)
            for offset in range(reader.position, end)
            if self.log[offset].value != CONTROL
        ]
        self.story.polled(reader.position, *records, client=name)
        # Behind control records alone it goes on, too.
        reader.position = records[-1][0] + 1 if records else max(end, reader.position)

    def place(self, name: str, position: int) -> None:
        self.readers[name].position = position
        self.story.placed(position, client=name)

    # -- leaders --------------------------------------------------------------------------------------------------

    def fail_over(self) -> None:
        """To a follower that has what was replicated, and perhaps more."""
        self.story.happened("process crash", f"broker-{self.leader}")
        self._lead(self.rng.randint(self.high_watermark, len(self.log)))
        self.story.stored(self.leader, (1, 2, 3), self.epoch)

    def fail_over_uncleanly(self) -> None:
        """To somebody who was out of sync."""
        self.story.stored(self.leader, (self.leader,), self.epoch)
        end = self.rng.randint(0, len(self.log))
        self.high_watermark = min(self.high_watermark, end)
        self.answered_end = min(self.answered_end, end)
        self._lead(end)
        self.story.unclean(self.leader, self.epoch)
        self.story.stored(self.leader, (self.leader,), self.epoch)
        for name, reader in self.readers.items():
            if reader.position > end:
                reader.position = end
                self.story.placed(end, "out of range", client=name)
        self.story.passes(10_000).stored(self.leader, (1, 2, 3), self.epoch)

    def _lead(self, end: int) -> None:
        """Producers repeat what they had no answer to, before what they have sent since."""
        lost, self.log = self.log[end:], self.log[:end]
        for batch in reversed(lost):
            if not batch.is_answered:
                self.waiting[batch.producer].appendleft(batch)
        self.epoch += 1
        self.leader = self.leader % 3 + 1
