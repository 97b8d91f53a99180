"""`TransactionSession`: drives the transactions of one producer, with its coordinators and its sender.

What is to be asked, and what an answer means, says the machine (`transactions/`); here stand the waits. Each has a
deadline, `max_block_ms` by default, as in Java. A task asks for as long as somebody waits, or partitions have to be
named before records can go there, and ends by itself. What it could not finish goes on with the next transaction.

(Source: Sender.java `maybeSendAndPollTransactionalRequest`; KafkaProducer.java.)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final, NoReturn

from odradek.client.cluster.cluster import Cluster
from odradek.client.cluster.waiters import Waiters
from odradek.client.errors.client_errors import ClientError, ProducerClosed, RequestTimedOut, UnsupportedVersion
from odradek.client.errors.transaction_errors import CommitOutcomeUnknown, TransactionFailed
from odradek.client.network.backoff import Backoff
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.client.producer.idempotence.sequences import NOBODY
from odradek.client.producer.sending.sender import Sender
from odradek.client.producer.transactions.machine import TransactionMachine
from odradek.client.producer.transactions.messages import V2_SINCE, answer_of, versions_of_v2, wire_of
from odradek.client.producer.transactions.prepared import PreparedTransaction
from odradek.client.producer.transactions.requests import (
    Answer,
    FindCoordinator,
    Init,
    NoAnswer,
    OffsetsOfGroup,
    Request,
)
from odradek.client.producer.transactions.states import State
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

__all__ = ["TransactionSession", "made_machine"]

logger = logging.getLogger(__name__)

TRANSACTION_VERSION: Final = "transaction.version"
ONE_PHASE_HINT: Final = (
    "Brokers have transactions of two phases with transaction.two.phase.commit.enable=true, those of Apache Kafka 4.3 "
    "with unstable.api.versions.enable=true beside it. Or leave transaction_two_phase_commit_enable out, and end "
    "transactions here."
)
OPEN: Final = frozenset((State.IN_TRANSACTION, State.ABORTABLE_ERROR))


def made_machine(config: ProducerConfig, environment: Environment) -> TransactionMachine | None:
    """None: the producer has no transactions."""
    if config.transactional_id is None:
        return None
    random, max_ms = environment.random, config.retry_backoff_max_ms
    return TransactionMachine(config.transactional_id, Backoff(config.retry_backoff_ms, max_ms, random), max_ms, random)


class TransactionSession:
    """See the module. `settle` returns when everything that was accepted has ended."""

    def __init__(
        self,
        config: ProducerConfig,
        environment: Environment,
        cluster: Cluster,
        tasks: Tasks,
        machine: TransactionMachine,
        idempotence: Idempotence,
        accumulator: Accumulator,
        sender: Sender,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        assert config.transactional_id is not None
        self.transactional_id = config.transactional_id
        self._config = config
        self._environment = environment
        self._now_ms = environment.monotonic_ms
        self._cluster = cluster
        self._tasks = tasks
        self._machine = machine
        self._idempotence = idempotence
        self._accumulator = accumulator
        self._sender = sender
        self._settle = settle
        self._news = Waiters(environment)
        self._driver: asyncio.Task[None] | None = None
        self._until_ms = -inf  # so long somebody waits for answers
        self._aborting: asyncio.Task[None] | None = None
        self._identity = NOBODY
        self._speaks_v2 = False
        self._is_closed = False
        machine.on_news = self._poke
        accumulator.on_landed = self._news.wake

    # ---------------------------------------------------------------------------------------------------- beginning
    async def initialize(self) -> None:
        """Gets the producer id, and so fences whoever had the transactional id before.

        An abort that nobody has answered is finished before. Raises ProducerFenced and other ClientErrors;
        RequestTimedOut, after which it can be called again; ProducerClosed.
        """
        machine = self._machine
        if machine.state is State.ABORTING:
            await self.abort()
        deadline_ms = self._deadline_ms()
        if not await self._until(lambda: machine.state in (State.READY, State.FATAL_ERROR), deadline_ms):
            raise self._timed_out("InitProducerId")
        self.raise_fatal()

    async def begin(self) -> None:
        """Begins a transaction, after what the last one may have left to do. Raises as `initialize`."""
        await self.initialize()
        self._look_for_v2()
        self._machine.begin(uses_v2=self._speaks_v2)

    def raise_fatal(self) -> None:
        if (error := self._machine.fatal_error) is not None:
            raise error.fresh()

    # ------------------------------------------------------------------------------------------------------- within
    async def send_offsets(self, what: OffsetsOfGroup) -> None:
        """Returns when the group's coordinator has them. Raises TransactionFailed, or the error that is fatal."""
        machine = self._machine
        self.raise_failure()
        machine.add_offsets(what)
        if not await self._until(lambda: not machine.is_pending(what), self._deadline_ms()):
            self.fail(self._timed_out("TxnOffsetCommit"))
        self.raise_failure()

    def add_offsets(self, what: OffsetsOfGroup) -> None:
        """Has them sent while records are; `commit` waits for it, and raises what comes of it."""
        if self._machine.state is State.IN_TRANSACTION:
            self._machine.add_offsets(what)
            self._drive()

    def fail(self, error: ClientError) -> None:
        """The transaction can only be aborted, because of this."""
        self._machine.fail(error)
        self._sender.wake()

    def fail_if_open(self, error: ClientError) -> None:
        """The same, unless the coordinator is being asked for the end already: then it decides."""
        if self._machine.state is State.IN_TRANSACTION:
            self.fail(error)

    def raise_failure(self) -> None:
        """Raises what keeps the transaction from being committed."""
        self.raise_fatal()
        if self._machine.refusal is not None:
            raise self._failure()

    def _failure(self) -> TransactionFailed:
        cause = self._machine.error
        failure = TransactionFailed(self.transactional_id, cause)
        failure.__cause__ = None if cause is None else cause.fresh()
        return failure

    # ------------------------------------------------------------------------------------------------------- ending
    async def commit(self) -> None:
        """Commits, after everything that was sent has been acknowledged; else aborts.

        Raises TransactionFailed (it is aborted), CommitOutcomeUnknown (it may be called again), the fatal error.
        """
        machine = self._machine
        deadline_ms = await self._when_acknowledged(machine.commit)
        if not await self._until(lambda: machine.state is not State.COMMITTING, deadline_ms):
            if machine.end_was_asked:
                raise CommitOutcomeUnknown(self.transactional_id, self._config.max_block_ms)
            machine.fail(self._timed_out("EndTxn"))
        if not machine.was_committed:
            await self._raise_aborted()

    async def prepare(self) -> PreparedTransaction | None:
        """Lets go, after everything that was sent has been acknowledged; else aborts. None: there is nothing to end.

        Raises TransactionFailed (it is aborted), the fatal error.
        """
        machine, identity = self._machine, self._machine.identity
        await self._when_acknowledged(machine.prepare)
        if machine.state is State.PREPARED:
            return PreparedTransaction(self.transactional_id, identity.producer_id, identity.epoch)
        if not machine.was_committed:
            await self._raise_aborted()
        return None

    async def _when_acknowledged(self, then: Callable[[], None]) -> float:
        """Calls it when everything that was sent has been acknowledged, unless the transaction has failed by then.
        Returns until when its end is waited for."""
        machine = self._machine
        if machine.state is State.IN_TRANSACTION:
            await self._settle()
        deadline_ms = self._deadline_ms()
        if machine.state is State.IN_TRANSACTION:
            if await self._until(lambda: machine.state is not State.IN_TRANSACTION or not machine.is_busy, deadline_ms):
                if machine.state is State.IN_TRANSACTION:
                    then()
            else:
                machine.fail(self._timed_out("TxnOffsetCommit"))
        return deadline_ms

    async def _raise_aborted(self) -> NoReturn:
        """The transaction has failed: it is aborted, and why is raised."""
        self.raise_fatal()
        failure = self._failure()
        await self._aborted_quietly()
        if (fatal := self._machine.fatal_error) is not None:
            raise fatal.fresh() from failure  # fenced, most likely: a batch of an older epoch fails before that is told
        raise failure

    async def abort(self) -> None:
        """Aborts. It goes on where the caller is cancelled. Raises the fatal error; RequestTimedOut where nobody has
        answered in time: then the next transaction begins by it, and the coordinator does it by itself in the end."""
        await asyncio.shield(self.abort_in_background())
        if self._machine.state is State.ABORTING:
            raise self._timed_out("EndTxn")
        self.raise_fatal()

    @property
    def is_undecided(self) -> bool:
        """Whether the coordinator was neither asked to commit nor to abort."""
        return self._machine.state in OPEN or (
            self._machine.state is State.COMMITTING and not self._machine.end_was_asked
        )

    def abort_in_background(self) -> asyncio.Task[None]:
        if self._aborting is None or self._aborting.done():
            self._aborting = self._tasks.start(self._abort(), f"{self._config.client_id}: abort a transaction")
        return self._aborting

    async def _abort(self) -> None:
        machine, accumulator = self._machine, self._accumulator
        deadline_ms = self._deadline_ms()
        if machine.state is State.COMMITTING and not machine.end_was_asked:
            machine.fail(TransactionFailed(self.transactional_id))
        if machine.state in OPEN:
            machine.abort()
            assert machine.refusal is not None
            self._sender.fail_unsent(machine.refusal)
        if machine.state is not State.ABORTING:
            return
        # What is on the wire is waited for: behind the marker it would begin a transaction that nobody ends.
        if not await self._until(lambda: accumulator.is_idle or machine.state is not State.ABORTING, deadline_ms):
            return
        if machine.state is State.ABORTING and not machine.has_landed:
            self._idempotence.advance()
            machine.landed(needs_epoch=not self._idempotence.is_settled)
        await self._until(lambda: machine.state is not State.ABORTING, deadline_ms)

    async def _aborted_quietly(self) -> None:
        """The caller has something more important to tell."""
        try:
            await self.abort()
        except ClientError as error:
            logger.warning("%s: a transaction was not aborted yet: %s", self._config.client_id, error)

    async def aborted(self, why: BaseException) -> None:
        """Aborts because of an error in the program, which goes on: what this one brings is logged."""
        logger.debug("%s: a transaction is aborted: %r", self._config.client_id, why)
        if self._machine.state in OPEN:
            await self._aborted_quietly()

    async def close(self) -> None:
        """Ends what is open: a commit that was begun, else by an abort. The producer limits its time."""
        machine = self._machine
        if machine.state in OPEN or machine.state is State.ABORTING:
            logger.info("%s: an open transaction is aborted, since the producer is closed", self._config.client_id)
            await self._aborted_quietly()
        await self._until(lambda: machine.state is not State.COMMITTING, self._deadline_ms())

    def end(self) -> None:
        """Nothing is asked any more, and nobody waits."""
        self._is_closed = True
        self._news.wake()

    # ------------------------------------------------------------------------------------------------------- asking
    def _deadline_ms(self) -> float:
        return self._now_ms() + self._config.max_block_ms

    def _timed_out(self, what: str) -> ClientError:
        if self._is_closed:
            return ProducerClosed(f"the producer was closed before {what} was answered")
        error = RequestTimedOut(what, f"the coordinator of {self.transactional_id}", self._config.max_block_ms)
        last = self._machine.last_error
        error.__cause__ = None if last is None else last.fresh()
        error.hint = "Look at the cause, and at the brokers of __transaction_state, or raise max_block_ms."
        return error

    async def _until(self, holds: Callable[[], bool], deadline_ms: float) -> bool:
        """Returns when it holds: True; at the deadline or the end: False. Meanwhile the machine gets its answers."""
        self._until_ms = max(self._until_ms, deadline_ms)
        while not holds():
            self._drive()
            if self._is_closed or self._now_ms() >= deadline_ms:
                return False
            await self._news.wait(deadline_ms)
        return True

    def _poke(self) -> None:
        self._news.wake()
        self._drive()

    def _drive(self) -> None:
        if self._driver is None and self._machine.due_ms < inf and not self._is_closed:
            self._driver = self._tasks.start(self._run(), f"{self._config.client_id}: transactions")

    async def _run(self) -> None:
        machine = self._machine
        try:
            while (due_ms := machine.due_ms) < inf and self._is_wanted():
                now_ms = self._now_ms()
                if due_ms > now_ms:
                    await self._environment.sleep(due_ms - now_ms)
                elif (request := machine.next_request(now_ms)) is not None:
                    answer = await self._answer(request)
                    machine.answered(request, answer, self._now_ms())
                    self._took()
        finally:
            self._driver = None

    def _is_wanted(self) -> bool:
        """Records that wait for their partition to be named end by their own time-out, and take the wish along."""
        return self._machine.state is State.IN_TRANSACTION or self._now_ms() < self._until_ms

    async def _answer(self, request: Request) -> Answer:
        config = self._config
        is_two_phase = config.transaction_two_phase_commit_enable
        wire = wire_of(request, self.transactional_id, config.transaction_timeout_ms, is_two_phase=is_two_phase)
        node = None if isinstance(request, FindCoordinator) else request.node_id
        deadline_ms = self._now_ms() + config.request_timeout_ms
        was_sent = False
        try:
            await self._cluster.connection_to(node, deadline_ms)
            was_sent = True
            response = await self._cluster.ask_once(
                wire.request, deadline_ms, node=node, at_least=wire.at_least, at_most=wire.at_most
            )
        except ClientError as error:
            logger.debug("%s: %s", config.client_id, error)
            if is_two_phase and isinstance(request, Init) and isinstance(error, UnsupportedVersion):
                error.hint = ONE_PHASE_HINT
            return NoAnswer(error, was_sent)
        return answer_of(request, response)

    def _took(self) -> None:
        """After an answer."""
        machine = self._machine
        if machine.identity != self._identity:
            self._identity = machine.identity
            self._idempotence.start_over(*machine.identity)
        if machine.fatal_error is not None:
            logger.error("%s: %s", self._config.client_id, machine.fatal_error)
        self._look_for_v2()
        self._news.wake()
        self._sender.wake()

    def _look_for_v2(self) -> None:
        """Whether the coordinator speaks transaction version 2, as its last connection has told."""
        node_id = self._machine.coordinator
        connection = None if node_id is None else self._cluster.connection(node_id)
        if connection is None:
            return
        try:
            self._speaks_v2 = connection.level_of(TRANSACTION_VERSION) >= V2_SINCE and all(
                connection.version_of(kind, version) == version for kind, version in versions_of_v2().items()
            )
        except UnsupportedVersion:
            self._speaks_v2 = False
