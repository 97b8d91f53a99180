"""`Transaction`: records and offsets that are all there, or not at all.

    async with producer.transaction() as txn:
        await txn.send("payments", value)
        await txn.send_offsets(consumer)        # commits here, or aborts on an exception, which goes on

It sends as a producer does. Records of an open transaction are in the log, where readers with `read_uncommitted` see
them; its offsets are not. A producer has one transaction at a time; one that is over refuses everything.

    async with producer.transaction(consumer=consumer) as txn:
        batch = await consumer.get_batch()
        await txn.send_batch("payments", …)     # commits what the consumer has handed out, too; an abort takes it back

(Source: KIP-98, KIP-447; KafkaProducer.java.)
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from threading import get_ident
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, cast, overload

from odradek.client.arguments import require_kind, require_partitions
from odradek.client.errors.client_errors import ClientError, WrongUse
from odradek.client.errors.transaction_errors import (
    CommitOutcomeUnknown,
    NotTwoPhase,
    TransactionFailed,
    TransactionOpen,
    TransactionOver,
)
from odradek.client.offset_commit import (
    BindableConsumer,
    BoundConsumer,
    Committed,
    GroupIdentity,
    OffsetSource,
    OffsetsToCommit,
)
from odradek.client.producer.accepting.record_intake import RecordIntake
from odradek.client.producer.accepting.record_transform import RecordTransform
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.record_calls import NOWHERE, RecordCalls
from odradek.client.producer.sending.sender import Sender
from odradek.client.producer.transaction_session import TransactionSession
from odradek.client.producer.transactions.prepared import PreparedTransaction
from odradek.client.producer.transactions.requests import OffsetsOfGroup
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.environment import Environment

__all__ = ["Transaction", "Transactions"]

logger = logging.getLogger(__name__)

CONSUMER: Final = "a consumer of odradek"
OFFSETS: Final = "a consumer of odradek, a record or batch beside it, or offsets by TopicPartition"
GROUP: Final = "what `consumer.group_metadata()` returns, the group's id, or a consumer beside a record or batch"
State = Literal[
    "not begun",
    "beginning",
    "open",
    "being committed",
    "being prepared",
    "being aborted",
    "committed",
    "prepared",
    "aborted",
    "failed",
]
Offsets = Mapping[TopicPartition, int] | Mapping[TopicPartition, Committed]
ENDED: Final = frozenset(("committed", "aborted", "failed"))


class _Offset(NamedTuple):
    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class _FromOutside(NamedTuple):
    group_id: str
    member_id: str = ""
    generation: int = -1
    group_instance_id: str | None = None


class Transactions:
    """Of one producer: its session, and the transaction that has not ended. It is a `TransactionOwner`. `check` raises
    where the producer may not be used."""

    def __init__(
        self,
        config: ProducerConfig,
        session: TransactionSession,
        preparation: RecordTransform | None,
        accumulator: Accumulator,
        sender: Sender,
        environment: Environment,
        made_intake: Callable[[], RecordIntake],
        check: Callable[[], None],
    ) -> None:
        self.session = session
        self.transactional_id = session.transactional_id
        self.is_closed = False
        self.current: Transaction | None = None
        self.config = config
        self.preparation = preparation
        self.accumulator = accumulator
        self.sender = sender
        self.environment = environment
        self.made_intake = made_intake
        self.check = check

    def refresh(self) -> None:
        """Metadata has changed."""
        if self.current is not None:
            self.current.refresh()

    def refuse(self, error: ClientError) -> None:
        """The transaction can only be aborted: it accepts nothing more."""
        if self.current is not None and self.current.is_open:
            self.current.shut(error)

    def close(self, error: ClientError) -> None:
        """Accepts nothing from now on, and what is open will be aborted."""
        self.is_closed = True
        if self.current is not None:
            self.current.shut(error)
            self.current.give_back()

    def was_forked(self) -> None:
        """In a child. Nothing else may be touched there."""
        if self.current is not None:
            self.current.hold_back()


class Transaction(RecordCalls):
    """See the module. `producer.transaction()` makes it. Raises TypeError, WrongUse."""

    def __init__(self, transactions: Transactions, consumer: BindableConsumer | None = None) -> None:
        super().__init__(transactions.config, transactions.preparation)
        self._transactions = transactions
        self._consumer: object = consumer
        self._bound: BoundConsumer | None = None
        if consumer is not None:
            require_kind("consumer", consumer, BindableConsumer, CONSUMER)
            self._bound = consumer.bind_to_transactions(transactions)
        self._has_own_offsets = False
        """The program has said itself which offsets of the bound consumer's group are committed."""
        self._is_unsettled = False
        """A commit was not answered, and is not being asked for."""
        self._session = transactions.session
        self._state: State = "not begun"
        self._accumulator = transactions.accumulator
        self._acceptance = transactions.made_intake()
        self._sender = transactions.sender
        self._environment = transactions.environment
        self._is_running = transactions.environment.loop.is_running
        self._sources: dict[OffsetSource, dict[TopicPartition, Committed]] = {}

    def __repr__(self) -> str:
        return f"<Transaction of {self._session.transactional_id}: {self._state}>"

    @property
    def transactional_id(self) -> str:
        return self._session.transactional_id

    @property
    def is_open(self) -> bool:
        """Whether its program has neither committed nor aborted it."""
        return self._state == "open"

    @property
    def is_over(self) -> bool:
        """Whether it has been committed or aborted, or its producer cannot go on."""
        return self._state in ENDED

    # ------------------------------------------------------------------------------------------------------ lifecycle
    async def begin(self) -> Self:
        """Begins it; `async with` does that. What the last one left to do is done first, for `max_block_ms` at most.

        With a consumer, a commit that was not answered is asked for again before, for as long: CommitOutcomeUnknown is
        raised where nobody answers that, either. An own commit of the consumer is waited for, for as long.

        Raises TransactionOpen, TransactionOver, RequestTimedOut (retriable); ProducerFenced and other fatal errors.
        """
        transactions = self._transactions
        self._check_beginning()
        if self._bound is not None:
            await self._settle_last()
            await self._bound.ready(transactions.config.max_block_ms)
            self._check_beginning()
        current = transactions.current
        if current is not None and not current.is_over:
            raise TransactionOpen(self._session.transactional_id, current._state)
        transactions.current = self
        self._state = "beginning"
        try:
            await self._session.begin()
            transactions.check()
        except BaseException:
            self._state = "failed"
            raise
        self._state = "open"
        self._thread_id = get_ident()
        if self._bound is not None:
            self._bound.opened(self._session.fail_if_open)
        return self

    def _check_beginning(self) -> None:
        self._transactions.check()
        if self._state != "not begun":
            raise TransactionOver(self._session.transactional_id, self._state)

    async def _settle_last(self) -> None:
        """Learns what became of a commit that was not answered. Raises CommitOutcomeUnknown, fatal errors."""
        last = self._transactions.current
        if last is None or not last._is_unsettled:
            return
        try:
            await last.commit()
        except TransactionFailed as error:
            if error.fatal:
                raise
            logger.warning("%s: %s", self._transactions.config.client_id, error)

    async def commit(self) -> None:
        """Waits until everything that was sent is acknowledged, and commits it. `async with` does that at its end.

        Of the consumer that it was made with, it commits all that was handed out, unless `send_offsets` has named
        offsets of its group. Where anything failed, it is aborted instead. It may be called again after a
        CommitOutcomeUnknown. Cancelled before the coordinator was asked, it aborts; after that the commit goes on, and
        can be called again, too.

        Raises TransactionFailed, whose `cause` says what failed; CommitOutcomeUnknown; TransactionOver; the fatal error
        of the producer, such as ProducerFenced.
        """
        if self._state != "being committed":
            self._check_sending()
        is_first = self._state == "open"
        self._shut("being committed")
        self._is_unsettled = False
        if is_first and self._bound is not None:
            self._add_offsets_of(self._bound)
        try:
            await self._session.commit()
        except CommitOutcomeUnknown as error:
            self._has_no_answer(error)
            raise
        except asyncio.CancelledError:
            if self._session.is_undecided:  # the coordinator was not asked
                self._end("aborted")
                self._session.abort_in_background()
            else:
                self._has_no_answer(CommitOutcomeUnknown(self._session.transactional_id))
            raise
        except ClientError as error:
            self._end("failed" if error.fatal else "aborted", error)
            raise
        self._end("committed")

    async def prepare(self) -> PreparedTransaction | None:
        """Waits until everything that was sent is acknowledged, and lets go of it without an end: nobody reads it with
        `read_committed` until somebody calls `Admin.end_transaction` with what this returns, in whatever process, and
        no time-out ends it. None: nothing was sent, so there is nothing to end.

        The producer can only be closed then, which leaves the transaction alone. A producer that starts with the same
        transactional id aborts it: end it before. Where anything failed, it is aborted. Cancelled, it aborts.

        Raises NotTwoPhase, TransactionFailed, TransactionOver; WrongUse where it was made with a consumer; the fatal
        error of the producer.
        """
        self._check_sending()
        if not self._transactions.config.transaction_two_phase_commit_enable:
            raise NotTwoPhase(self._session.transactional_id)
        if self._bound is not None:
            why = "a transaction with a consumer ends where that is, and cannot be prepared for somebody else to end"
            raise WrongUse(why, hint="Use `producer.transaction()`, and `txn.send_offsets` with offsets and a group.")
        self._shut("being prepared")
        try:
            prepared = await self._session.prepare()
        except asyncio.CancelledError:
            self._state = "aborted"
            self._session.abort_in_background()
            raise
        except ClientError as error:
            self._state = "failed" if error.fatal else "aborted"
            raise
        self._state = "committed" if prepared is None else "prepared"
        return prepared

    async def abort(self) -> None:
        """Aborts it: nothing of it will be read by `read_committed`. `async with` does that on an exception.

        What waits to be sent fails. Raises TransactionOver; RequestTimedOut where nobody has answered within
        `max_block_ms`: then the next transaction begins by it, and the coordinator does it after
        `transaction_timeout_ms`; the fatal error of the producer.
        """
        self._check_sending()
        self._shut("being aborted")
        self._end("aborted")
        try:
            await self._session.abort()
        except ClientError as error:
            if error.fatal:
                self._state = "failed"
            raise

    async def __aenter__(self) -> Self:
        return await self.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            if self._state not in ENDED and self._state != "prepared":
                await self.commit()
        elif self._state == "open":
            self._shut("being aborted")
            self._end("aborted")
            await self._session.aborted(error)

    def _end(self, state: State, error: ClientError | None = None) -> None:
        """Tells consumers of it: positions do not wait for an abort to be carried out, since it is what happens."""
        self._state = state
        if state == "committed":
            for source, offsets in self._sources.items():
                source.committed_by_transaction(offsets)
        if self._bound is None:
            return
        if state == "committed":
            self._bound.committed()
        else:
            cause = error.cause if isinstance(error, TransactionFailed) and not self._has_own_offsets else None
            self._bound.aborted(cause)

    def _has_no_answer(self, error: CommitOutcomeUnknown) -> None:
        self._is_unsettled = True
        if self._bound is not None:
            self._bound.unsettled(error)

    def give_back(self) -> None:
        """Its producer is being closed, and aborts it, unless it was asked to commit it."""
        if self._bound is not None and self._state == "open":
            self._bound.aborted(None)

    # ------------------------------------------------------------------------------------------------------- offsets
    @overload
    async def send_offsets(self, what: OffsetSource) -> None: ...
    @overload
    async def send_offsets(self, what: object, group: OffsetSource) -> None: ...
    @overload
    async def send_offsets(self, what: Offsets, group: GroupIdentity | str) -> None: ...
    async def send_offsets(
        self,
        what: OffsetSource | Offsets | object,
        group: OffsetSource | GroupIdentity | str | None = None,
    ) -> None:
        """Commits offsets of a group with the transaction: of a consumer all that it has handed out so far, the record
        or batch in hand included; or up to the end of a record or batch of a consumer, which is the `group` then, in
        the partitions of these alone; or offsets to go on at, of a `group`: `consumer.group_metadata()`, or the id of
        a group without members.

        It may be called more than once: what is named last counts. The consumer must not commit by itself
        (`enable_auto_commit=False`), but where the transaction was made with it: then `commit` does this by itself,
        unless offsets of its group are given here. Where the group has gone on without this member, the transaction can
        only be aborted. Cancelled, the offsets may be part of the transaction.

        Raises TransactionFailed, TransactionOver, WrongUse; the fatal error of the producer; TypeError.
        """
        self._check_sending()
        if isinstance(group, OffsetSource):
            found = self._offsets_of_consumer(group, what)
        elif group is None and isinstance(what, OffsetSource):
            found = self._offsets_of_consumer(what)
        else:
            found = self._offsets_of_group(what, group)
        if found.offsets:
            await self._session.send_offsets(found)

    def _offsets_of_consumer(self, consumer: OffsetSource, last: object | None = None) -> OffsetsOfGroup:
        source = consumer
        if self._bound is not None and consumer is self._consumer:
            source = self._bound
            self._has_own_offsets = self._has_own_offsets or last is not None
        group, found = self._handed_out(source, last)
        self._sources.setdefault(source, {}).update(found)
        return OffsetsOfGroup(group, dict(found))

    def _offsets_of_group(self, what: object, group: GroupIdentity | str | None) -> OffsetsOfGroup:
        require_kind("what", what, Mapping, OFFSETS)
        if isinstance(group, str):
            group = _FromOutside(group)
        require_kind("group", group, GroupIdentity, GROUP)
        assert group is not None
        offsets = _offsets(cast("Offsets", what))
        if self._bound is not None and group.group_id == self._bound.group_id:
            self._has_own_offsets = True
            self._sources.setdefault(self._bound, {}).update(offsets)
        return OffsetsOfGroup(group, offsets)

    def _add_offsets_of(self, bound: BoundConsumer) -> None:
        """All that it has handed out. Where that cannot be committed, `TransactionSession.commit` raises it."""
        try:
            group, found = bound.offsets_for_transaction()
        except ClientError as error:
            self._session.fail(error)
            return
        if found and not self._has_own_offsets:
            offsets = dict(found)
            self._sources.setdefault(bound, {}).update(offsets)
            self._session.add_offsets(OffsetsOfGroup(group, offsets))

    def _handed_out(self, consumer: OffsetSource, last: object | None) -> OffsetsToCommit:
        try:
            return consumer.offsets_for_transaction(last)
        except WrongUse:
            raise
        except ClientError as error:  # what is being written may be written by another member, too
            self._session.fail(error)
            self._session.raise_failure()
            raise

    # -------------------------------------------------------------------------------------------------------- within
    def refresh(self) -> None:
        """Metadata has changed."""
        self._acceptance.refresh()

    def shut(self, error: ClientError) -> None:
        """Accepts nothing from now on: who sends is told this error."""
        self.hold_back()
        self._acceptance.close(error)

    def hold_back(self) -> None:
        """Every call is checked from now on."""
        self._thread_id = NOWHERE

    def _shut(self, state: State) -> None:
        self._state = state
        self.shut(TransactionOver(self._session.transactional_id, state))

    def _check_sending(self) -> None:
        self._transactions.check()
        if self._state != "open":
            raise TransactionOver(self._session.transactional_id, self._state)


def _offsets(what: Offsets) -> dict[TopicPartition, Committed]:
    require_partitions("what", what)
    offsets: dict[TopicPartition, Committed] = {}
    for partition, each in cast("Mapping[TopicPartition, object]", what).items():
        if isinstance(each, int) and not isinstance(each, bool):
            found: Committed = _Offset(each)
        else:
            require_kind("an offset", getattr(each, "offset", None), int, "a whole number, or an OffsetAndMetadata")
            found = cast(Committed, each)
        if found.offset < 0:
            raise ValueError(f"an offset is 0 or more, not {found.offset}")
        offsets[partition] = found
    return offsets
