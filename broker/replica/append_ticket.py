"""An append of a leader, and what has to be true before it is acknowledged.

    ticket = partition.append(batch, acks, now_ms)         # between two awaits: the order of appends is that of the log
    await ticket.acknowledged(timeout_ms)                  # a Produce, a coordinator that answers
    if ticket.is_acknowledged(): …                         # a coordinator that is told of news, and goes on

An acknowledgement says that the records count, by `acknowledgements`; that this broker has led without a break
since it appended them, for who leads next may have cut them off; and, where no other replica has them for sure (acks 0
and 1), that this broker still has its place in the cluster.
"""

from collections.abc import Sequence

from odradek.broker.log.log_end import Appended
from odradek.broker.replica.acknowledgements import ACKS_ALL, Acknowledgements
from odradek.broker.replica.partition_host import PartitionHost
from odradek.broker.replica.role import Role
from odradek.protocol.errors import KafkaError
from odradek.runtime.environment import Environment


class AppendTicket:
    """One append, of one batch."""

    __slots__ = ("_acknowledgements", "_host", "_is_over", "_role", "_terms_ended", "acks", "appended", "waits")

    def __init__(
        self,
        appended: Appended,
        acks: int,
        role: Role,
        acknowledgements: Acknowledgements,
        host: PartitionHost,
    ) -> None:
        """To be made right after the append; the others are the partition's."""
        self.appended = appended
        self.acks = acks
        self._role = role
        self._acknowledgements = acknowledgements
        self._host = host
        self._terms_ended = role.terms_ended
        self._is_over = False
        self.waits = acks == ACKS_ALL or (acks != 0 and acknowledgements.durability.waits)
        """Whether an acknowledgement may have to wait at all: as the topic's options were at the append."""

    async def acknowledged(self, timeout_ms: float) -> None:
        """Returns once it is. Raises KafkaError: REQUEST_TIMED_OUT, after which it may still come to be;
        NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR; the records may stay."""
        if self.waits:
            acknowledgements, last_offset = self._acknowledgements, self.appended.last_offset
            if not acknowledgements.is_reached(last_offset, self.acks):
                await acknowledgements.reach(last_offset, self.acks, timeout_ms)
            self._require_place()

    def is_acknowledged(self) -> bool:
        """Whether it is, without waiting. What makes it impossible is raised, once; from then on it is not. Raises
        KafkaError as `acknowledged`, but for REQUEST_TIMED_OUT."""
        if self._is_over:
            return False
        try:
            self._require_place()
            return not self.waits or self._acknowledgements.is_reached(self.appended.last_offset, self.acks)
        except KafkaError:
            self._is_over = True
            raise

    def _require_place(self) -> None:
        if self._role.terms_ended != self._terms_ended:
            self._role.require_term(self._terms_ended)
        if self.acks != ACKS_ALL:
            self._host.require_lease()  # it may have ended meanwhile


async def outcomes(
    tickets: Sequence[AppendTicket], timeout_ms: float, environment: Environment
) -> list[KafkaError | None]:
    """Waits for all of them, with one deadline. Of each, in order: None where it is acknowledged, or why it is not."""
    errors: list[KafkaError | None] = []
    deadline_ms = 0.0
    for ticket in tickets:
        error = None
        if ticket.waits:
            try:
                if not ticket.is_acknowledged():  # a partition with one replica never waits
                    now_ms = environment.monotonic_ms()
                    deadline_ms = deadline_ms or now_ms + timeout_ms
                    await ticket.acknowledged(max(0.0, deadline_ms - now_ms))
            except KafkaError as failure:
                error = failure
        errors.append(error)
    return errors
