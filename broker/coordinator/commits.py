"""Which records of a shard are not committed yet, and who waits for them.

A batch that was appended is committed when the high watermark has passed it. Answers that depend on it wait for that,
each no longer than `offsets.commit.timeout.ms`: then they fail, and the records stay, for they may be committed yet.
So what an entity wrote last is remembered until it is committed, and whoever asks about the entity meanwhile waits for
it, too.

What the machine does of itself, once something is committed, has no time-out: it waits for the high watermark, or for
the end of the term, which the next coordinator makes good.

An answer that waits for no record needs the broker's lease: one that was paused, or cut off from the metadata store,
does not know that another one coordinates by now, and would tell offsets that are older than what that one has
acknowledged. What the high watermark has passed in this term needs none: followers have fetched from this leader since.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from odradek.broker.coordinator.machine import Waiting
from odradek.broker.coordinator.shard_errors import as_coordinator
from odradek.broker.coordinator.turn import Part, Reply
from odradek.broker.replica.append_ticket import AppendTicket
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import KafkaError
from odradek.runtime.tasks import Tasks

Answer = Callable[[Waiting[Any], Any], None]
"""Gives an answer, or a KafkaError, to who waits."""


class _Parked:
    """Answers that wait for one ticket."""

    __slots__ = ("entities", "replies", "ticket")

    def __init__(self, ticket: AppendTicket, entities: Sequence[str]) -> None:
        self.ticket = ticket
        self.entities = entities
        self.replies: list[Reply] = []

    @property
    def last_offset(self) -> int:
        return self.ticket.appended.last_offset


class Commits:
    """Of one shard, for one leader epoch."""

    __slots__ = ("_answer", "_has_ended", "_newest", "_parked", "_partition", "_tasks", "_timeout_ms")

    def __init__(self, partition: Partition, tasks: Tasks, timeout_ms: Callable[[], float], answer: Answer) -> None:
        self._partition = partition
        self._tasks = tasks
        self._timeout_ms = timeout_ms
        self._answer = answer
        self._newest: dict[str, int] = {}
        """The last offset of each entity that may not be committed."""
        self._parked: dict[int, _Parked] = {}
        """By the last offset that they wait for; those that somebody waits for."""
        self._has_ended = False

    def end(self) -> None:
        """The shard stops, or loads again: nothing is called any more."""
        self._has_ended = True

    def loaded(self, entity_id: str, offset: int) -> None:
        """The log holds a record of the entity at this offset, which the high watermark had not passed at the load."""
        self._newest[entity_id] = offset

    def appended(self, ticket: AppendTicket, part: Part) -> None:
        """A batch was: it holds these records."""
        last_offset, replies = ticket.appended.last_offset, part.replies
        try:
            is_committed = ticket.is_acknowledged()
        except KafkaError as error:
            self._settle(replies, error)
            is_committed = self._is_committed(last_offset)
            replies = []
        if is_committed:
            self._settle(replies, None)
            for then in part.thens:
                then()
            return
        self._newest.update(dict.fromkeys(part.entities, last_offset))
        self._park(ticket, part.entities).replies += replies
        if part.thens:
            self._tasks.start(
                self._call(part.thens, last_offset), f"what follows {last_offset} of {self._partition.name}"
            )

    def reply(self, entity_id: str, reply: Reply) -> None:
        """Answers when everything that was appended of the entity is committed; NOT_COORDINATOR where nothing is under
        way, and the lease may have ended."""
        offset = self._newest.get(entity_id)
        if offset is None or self._is_committed(offset):
            self._newest.pop(entity_id, None)
            self._answer_by_lease(reply)
        elif (parked := self._parked.get(offset)) is not None:
            parked.replies.append(reply)
        else:
            self._park(self._partition.ticket_for(offset), (entity_id,)).replies.append(reply)

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> None:
        """Calls it when everything that was appended of the entity is committed."""
        offset = self._newest.get(entity_id)
        if offset is None or self._is_committed(offset):
            then()
        else:
            self._call_later([then], offset)

    def _call_later(self, thens: Sequence[Callable[[], None]], offset: int) -> None:
        self._tasks.start(self._call(thens, offset), f"what follows offset {offset} of {self._partition.name}")

    async def _call(self, thens: Sequence[Callable[[], None]], offset: int) -> None:
        try:
            await self._partition.high_watermark.reach(offset + 1)
        except KafkaError:
            return  # the term has ended
        for then in thens:
            if not self._has_ended:
                then()

    def _answer_by_lease(self, reply: Reply) -> None:
        try:
            self._partition.host.require_lease()
        except KafkaError as error:
            self._answer(reply.waiting, as_coordinator(error))
        else:
            self._answer(reply.waiting, reply.answer)

    def _is_committed(self, offset: int) -> bool:
        return self._partition.high_watermark.value > offset

    def _park(self, ticket: AppendTicket, entities: Sequence[str]) -> _Parked:
        parked = self._parked[ticket.appended.last_offset] = _Parked(ticket, entities)
        self._tasks.start(self._wait(parked), f"offset {parked.last_offset} of {self._partition.name}")
        return parked

    async def _wait(self, parked: _Parked) -> None:
        error: KafkaError | None = None
        try:
            await parked.ticket.acknowledged(self._timeout_ms())
        except KafkaError as failure:
            error = failure
        if self._parked.get(parked.last_offset) is parked:
            del self._parked[parked.last_offset]
        if error is None or self._is_committed(parked.last_offset):
            for entity_id in parked.entities:
                if self._newest.get(entity_id) == parked.last_offset:
                    del self._newest[entity_id]
        self._settle(parked.replies, error)

    def _settle(self, replies: Iterable[Reply], error: KafkaError | None) -> None:
        for reply in replies:
            self._answer(reply.waiting, reply.answer if error is None else as_coordinator(error))
