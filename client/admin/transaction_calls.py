"""The calls of Admin about transactional ids. Each is asked of its coordinator.

A call about several ids returns their results by id, or raises ItemsFailed with the error of each.
"""

from collections.abc import Iterable, Mapping

from odradek.client.admin.all_brokers import AllBrokersCall
from odradek.client.admin.base import AdminBase, items_of, only
from odradek.client.admin.coordinators import CoordinatorCall
from odradek.client.admin.transaction_ends import FEATURE, End
from odradek.client.admin.transactions import (
    FencedProducer,
    TransactionDescription,
    TransactionListing,
    described_transactions,
    fence_request,
    fenced_producer,
    list_transactions_request,
    listed_transactions,
)
from odradek.client.arguments import require_all, require_flag, require_kind
from odradek.client.errors.client_errors import ClientError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.runtime.tasks import run_together

__all__ = ["TransactionCalls"]


class TransactionCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def list_transactions(
        self,
        states: Iterable[str] | None = None,
        producer_ids: Iterable[int] | None = None,
        *,
        duration_ms: int | None = None,
        pattern: str | None = None,
        timeout_ms: float | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids that the principal may describe, in order; all brokers are asked at the same time.

        Only those that pass all of: `states` ("Ongoing", "CompleteCommit", …), `producer_ids`, `duration_ms` (with a
        transaction that has been under way for longer, from Kafka 3.8 on), `pattern` (a regular expression of RE2 for
        the whole id, from Kafka 4.1 on).

        Raises ItemsFailed when a broker has not answered in time, or has not loaded its ids by then: `errors` has the
        reason by broker id, `results` what the other brokers coordinate. The same with UnsupportedVersion of brokers
        that are too old (before Kafka 3.0 for any of it), UnknownStates and others.
        """
        deadline = self._deadline(timeout_ms)
        wanted_states = [] if states is None else await items_of("states", states, "transactions' states")
        require_all("states", wanted_states, str, "transactions' states (str)")
        wanted_producers = [] if producer_ids is None else await items_of("producer_ids", producer_ids, "producer ids")
        require_all("producer_ids", wanted_producers, int, "producer ids (whole numbers)")
        if duration_ms is not None:
            require_kind("duration_ms", duration_ms, int, "a whole number of milliseconds, or None")
        if pattern is not None:
            require_kind("pattern", pattern, str, "a regular expression (str), or None")
        request, at_least = list_transactions_request(wanted_states, wanted_producers, duration_ms, pattern)

        async def ask(node_id: int) -> tuple[TransactionListing, ...]:
            response = await self._calls.ask(request, deadline, node=node_id, at_least=at_least)
            return listed_transactions(response, node_id)

        answers = await AllBrokersCall(self._calls, "ListTransactions", ask, deadline).answers()
        # An id that moves meanwhile may be listed twice.
        listed = {each.transactional_id: each for answer in answers.values() for each in answer}
        return sorted(listed.values(), key=lambda each: each.transactional_id)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, TransactionDescription]:
        """Where the transactions of these ids stand, by id.

        Raises ItemsFailed with TRANSACTIONAL_ID_NOT_FOUND for one that there is not, and others; UnsupportedVersion
        before Kafka 3.0.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await _transactional_ids(transactional_ids)
        call = CoordinatorCall(self._transaction_coordinators, deadline)

        async def ask(some: list[str], node_id: int) -> Mapping[str, TransactionDescription | ClientError]:
            request = DescribeTransactionsRequest(transactional_ids=some)
            return described_transactions(await self._calls.ask(request, deadline, node=node_id), node_id)

        return await self._calls.complete("DescribeTransactions", wanted, lambda some: call.each(some, ask), deadline)

    async def describe_transaction(
        self, transactional_id: str, *, timeout_ms: float | None = None
    ) -> TransactionDescription:
        """One of them. Raises BrokerError with TRANSACTIONAL_ID_NOT_FOUND, and others."""
        require_kind("transactional_id", transactional_id, str, "a transactional id (str)")
        return await only(transactional_id, self.describe_transactions([transactional_id], timeout_ms=timeout_ms))

    async def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        timeout_ms: float | None = None,
    ) -> None:
        """Commits, or aborts, the transaction that a producer has let go of: `txn.prepare()` returns the three.

        It may be called again, and from any process: where the transaction has ended so, that is a success. Returns
        when it is decided; readers see it when its partitions have been told, which takes no more of anybody.

        Raises OtherOutcome where it was ended in the other way; BrokerError with PRODUCER_FENCED or
        INVALID_PRODUCER_ID_MAPPING where the transactional id has gone on since, so that nobody knows how it has ended,
        with INVALID_TXN_STATE where there is nothing to end, and others.
        """
        deadline = self._deadline(timeout_ms)
        require_kind("transactional_id", transactional_id, str, "a transactional id (str)")
        require_kind("producer_id", producer_id, int, "a producer id (a whole number)")
        require_kind("producer_epoch", producer_epoch, int, "a producer's epoch (a whole number)")
        require_flag("commit", commit)
        end = End(transactional_id, producer_id, producer_epoch, commit)
        call = CoordinatorCall(self._transaction_coordinators, deadline)
        level = 0

        async def ask(some: list[str], node_id: int) -> Mapping[str, bool | ClientError]:
            nonlocal level
            level = (await self._calls.connect(node_id, deadline)).level_of(FEATURE)
            at_least, at_most = end.versions(level)
            response = await self._calls.ask(end.request(), deadline, node=node_id, at_least=at_least, at_most=at_most)
            return dict.fromkeys(some, end.outcome(response))

        try:
            await only(
                transactional_id,
                self._calls.complete("EndTxn", [transactional_id], lambda some: call.each(some, ask), deadline),
            )
        except ClientError as error:
            if error.code is not ErrorCode.INVALID_TXN_STATE:
                raise
            found = await self.describe_transaction(transactional_id, timeout_ms=self._calls.remaining_ms(deadline))
            raise end.refusal(error, found, level) from error

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, FencedProducer]:
        """Aborts the transactions that their coordinators have under way for these ids, and fences their producers,
        which can do nothing more under their epochs. Returns by id what the next producer would go on with.

        An id that there is not is made. It waits until such a transaction is aborted (CONCURRENT_TRANSACTIONS until
        then). Raises ItemsFailed with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_TRANSACTION_TIMEOUT and others.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await _transactional_ids(transactional_ids)
        call = CoordinatorCall(self._transaction_coordinators, deadline)

        async def one(transactional_id: str, node_id: int) -> FencedProducer | ClientError:
            request = fence_request(transactional_id, self._timeout_ms(deadline))
            return fenced_producer(transactional_id, await self._calls.ask(request, deadline, node=node_id))

        async def ask(some: list[str], node_id: int) -> Mapping[str, FencedProducer | ClientError]:
            return dict(zip(some, await run_together([one(each, node_id) for each in some], "fence"), strict=True))

        return await self._calls.complete("InitProducerId", wanted, lambda some: call.each(some, ask), deadline)


async def _transactional_ids(transactional_ids: Iterable[str]) -> list[str]:
    """Raises TypeError."""
    wanted = await items_of("transactional_ids", transactional_ids, "transactional ids")
    require_all("transactional_ids", wanted, str, "transactional ids (str)")
    return list(dict.fromkeys(wanted))
