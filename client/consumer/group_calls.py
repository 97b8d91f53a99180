"""The calls of a consumer about its group: what it subscribes to, and what is committed."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from odradek.client.arguments import require_all, require_callback, require_iterable, require_kind, require_partitions
from odradek.client.consumer.base import ConsumerBase
from odradek.client.consumer.config import RebalanceCallback
from odradek.client.consumer.group.offsets import CommitFailed, CommitOutcome, OffsetAndMetadata, offsets_behind
from odradek.client.consumer.group.partition_changes import Callbacks
from odradek.client.consumer.group.subscription import Subscription
from odradek.client.consumer.membership.membership import Identity
from odradek.client.consumer.records import ConsumerBatch, ConsumerRecord
from odradek.client.consumer.transaction_binding import TransactionBinding
from odradek.client.errors.client_errors import WrongUse
from odradek.client.offset_commit import Committed, OffsetsToCommit, TransactionOwner
from odradek.client.topic_partition import TopicPartition

__all__ = ["GroupCalls"]

What = ConsumerRecord | ConsumerBatch | Mapping[TopicPartition, int | OffsetAndMetadata]
Outcomes = dict[TopicPartition, CommitOutcome]


class GroupCalls(ConsumerBase):
    """See `odradek.client.consumer.consumer`."""

    # ------------------------------------------------------------------------------------------------- subscribing
    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Reads these topics as a member of the group, in the place of those before. It joins in the background.

        A pattern has to match the whole name; internal topics are left out, unless `exclude_internal_topics` is off.
        A topic that does not exist is waited for. Callbacks take the place of those before, if any are given.

        Raises NoGroup; WrongUse while partitions are assigned by hand; ConsumerClosed.
        """
        self._check()
        session = self._session()
        if self._core.partitions and not session.is_member:
            raise WrongUse("partitions are assigned by hand", hint="Call `unsubscribe` first.")
        given = (on_assigned, on_revoked, on_lost)
        for name, callback in zip(("on_assigned", "on_revoked", "on_lost"), given, strict=True):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} must be a function or a coroutine function (partitions), not {callback!r}")
        session.subscribe(_subscription(topics, pattern), Callbacks(*given) if any(given) else None)

    def unsubscribe(self) -> None:
        """Reads nothing more. What is done is committed and the group is left, in the background.

        Records in hand do not become done.
        """
        self._check()
        if self._group is not None and self._group.is_member:
            self._group.subscribe(Subscription())
        else:
            self._core.revoked(self._core.partitions)

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to: those named, or those that match the pattern so far."""
        self._check(may_be_closing=True)
        return frozenset() if self._group is None else self._group.topics

    def group_metadata(self) -> Identity:
        """As what this consumer commits what it has been handed out. Raises NoGroup.

        As with Java's consumer the generation is that of the newest complete rebalance: with it a transaction commits
        no offset of a partition that another member has been given since.
        """
        self._check(may_be_closing=True)
        return self._session().settled

    # ------------------------------------------------------------------------------------------------ transactions
    def offsets_for_transaction(self, last: object | None = None) -> OffsetsToCommit:
        """What `Transaction.send_offsets` commits: all that was handed out so far, the record or batch in hand
        included; or up to the end of the record or batch that is the `last` one.

        Raises NoGroup; WrongUse where the consumer commits by itself; TakenAway where a partition was taken away whose
        records are in hand; ClientError while it has no place in its group.
        """
        self._check()
        session = self._session()
        if self._binding is not None:
            why = f"the transactions of {self._binding.owner.transactional_id} commit for this consumer"
            raise WrongUse(why, hint="Use `producer.transaction(consumer=…)` of that producer.")
        if self.config.enable_auto_commit:
            why = "the consumer would commit by itself, beside the transaction"
            raise WrongUse(why, hint="Set enable_auto_commit=False.")
        return session.offsets_to_commit(None if last is None else offsets_behind(last))

    def committed_by_transaction(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """A transaction with these offsets was committed: what is before them is done."""
        if self._group is not None and self._is_open():
            self._group.committed_elsewhere({partition: each.offset for partition, each in offsets.items()})

    def bind_to_transactions(self, owner: TransactionOwner) -> TransactionBinding:
        """For `producer.transaction(consumer=…)`: from now on the transactions of this producer commit what is read,
        and the consumer commits nothing, whatever `enable_auto_commit` says. It stays so.

        Raises NoGroup; WrongUse where records were handed out before, or it is bound to a producer that is not closed;
        ConsumerClosed. (After a producer that was closed it goes back to what the group has committed.)
        """
        self._check()
        session = self._session()
        before = self._binding
        if before is not None and before.owner is owner:
            return before
        if before is None and self._core.has_handed_out:
            raise WrongUse(
                "the consumer has handed out records already, which no transaction knows of",
                hint="Read inside of the transaction, or call `producer.transaction(consumer=…)` before the first "
                "record is asked for.",
            )
        if before is not None:
            if not before.owner.is_closed:
                raise WrongUse(
                    f"the consumer is bound to the transactions of {before.owner.transactional_id}",
                    hint="Close that producer first, or use another consumer.",
                )
            before.release()
        self._binding = TransactionBinding(owner, session, self._core, self._check)
        return self._binding

    def _check_own_commit(self) -> None:
        """Raises WrongUse where transactions commit for this consumer: beside them, a commit would tear them."""
        if self._binding is not None:
            raise WrongUse(
                f"the transactions of {self._binding.owner.transactional_id} commit for this consumer",
                hint="Leave it to the end of the transaction, or use `txn.send_offsets`.",
            )

    # -------------------------------------------------------------------------------------------------- committing
    async def commit(self, what: What | None = None, *, timeout_ms: float | None = None) -> Outcomes:
        """Commits what is done, or (given a record, a batch, or offsets to go on at) up to there, and says for each
        partition whether it was committed, or is not ours any more.

        It repeats what passes for `timeout_ms`, `default_api_timeout_ms` by default. What is committed is done. Only
        what differs from the last commit is sent where nothing is given.

        Raises NoGroup, ConsumerClosed; CommitFailed where a partition was not committed for another reason; WrongUse
        where it is bound to transactions.
        """
        deadline_ms = self._deadline_ms(timeout_ms)
        session = self._session()
        self._check_own_commit()
        if what is None:
            return await session.commit(session.committable(), deadline_ms)
        offsets = _offsets(what)
        outcomes: Outcomes = {}
        if not isinstance(what, Mapping):
            outcomes = {
                each: CommitOutcome.NOT_OURS for each in offsets if session.is_behind(each, offsets[each].offset)
            }
        ours = {partition: offset for partition, offset in offsets.items() if partition not in outcomes}
        return outcomes | (await session.commit(ours, deadline_ms) if ours else {})

    def commit_in_background(
        self, what: What | None = None, done: Callable[[Outcomes | CommitFailed], None] | None = None
    ) -> None:
        """The same without waiting. `done` is called with what `commit` returns or raises; else an error is logged.

        Commits go out in the order of the calls. `close` does not wait for them, but commits what is done.
        """
        self._check(may_be_closing=True)
        self._session()
        self._check_own_commit()
        if done is not None:
            require_callback("done", done, "outcomes, or a CommitFailed")
        self._tasks.start(self._commit(what, done), f"{self.config.client_id}: commit")

    async def _commit(self, what: What | None, done: Callable[[Outcomes | CommitFailed], None] | None) -> None:
        try:
            outcomes: Outcomes | CommitFailed = await self.commit(what)
        except CommitFailed as error:
            if done is None:
                raise
            outcomes = error
        if done is not None:
            done(outcomes)

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed of each; None: nothing. Raises NoGroup, ClientError."""
        deadline_ms = self._deadline_ms(timeout_ms)
        require_iterable("partitions", partitions, "an iterable of TopicPartition objects")
        wanted = list(partitions)
        require_partitions("partitions", wanted)
        session = self._session()
        found = await session.committed(wanted, deadline_ms) if wanted else {}
        return {partition: found.get(partition) for partition in wanted}


def _subscription(topics: Iterable[str] | re.Pattern[str], pattern: str | None) -> Subscription:
    if pattern is not None:
        require_kind("pattern", pattern, str, "a regular expression (str)")
        if topics != ():
            raise ValueError("topics and a pattern are given; subscribe to one of them")
        return Subscription(pattern=re.compile(pattern))
    if isinstance(topics, re.Pattern):
        return Subscription(pattern=topics)
    require_iterable("topics", topics, "an iterable of topics' names (str)")
    names = list(topics)
    require_all("topics", names, str, "topics' names (str)")
    if not all(names):
        raise ValueError("a topic's name must not be empty")
    return Subscription.to_names(names)


def _offsets(what: What) -> dict[TopicPartition, OffsetAndMetadata]:
    if isinstance(what, ConsumerRecord | ConsumerBatch):
        return offsets_behind(what)
    require_kind("what", what, Mapping, "a record, a batch, or offsets by TopicPartition")
    require_partitions("what", what)
    return {partition: _offset(each) for partition, each in cast("Mapping[TopicPartition, object]", what).items()}


def _offset(value: object) -> OffsetAndMetadata:
    if isinstance(value, OffsetAndMetadata):
        found = value
    else:
        require_kind("an offset", value, int, "a whole number, or an OffsetAndMetadata")
        assert isinstance(value, int)
        found = OffsetAndMetadata(value)
    if found.offset < 0:
        raise ValueError(f"an offset is 0 or more, not {found.offset}")
    return found
