"""Commits offsets of a group, and reads those that are committed, by the group's coordinator.

One commit goes out at a time: of two that are under way, the older one might be repeated last, and take the group back.
What passes (a coordinator that moves or loads, a lost connection, a rebalance) is met by asking again, after a backoff,
until the deadline.

A commit that is refused because the group has gone on tells the membership, and never anything else: no error here
turns into an offset. It is made again, as what the member is by then, for those partitions that are still its own.
(Source: ConsumerCoordinator.java: OffsetCommitResponseHandler, OffsetFetchResponseHandler.)
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from odradek.client.consumer.group.coordinator import Coordinator
from odradek.client.consumer.group.offset_messages import (
    MOVED,
    NAMES_UNTIL,
    OUTDATED,
    PASSING,
    commit_request,
    commit_version,
    committed_codes,
    fetch_request,
    fetched_offsets,
)
from odradek.client.consumer.group.offsets import CommitFailed, CommitOutcome, OffsetAndMetadata
from odradek.client.consumer.membership.membership import Identity
from odradek.client.errors.client_errors import ClientError, RequestTimedOut, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.runtime.environment import Environment

__all__ = ["Commits", "Committer"]

FETCH_VERSION_MIN: Final = 1
ALL_SINCE: Final = 2
"""The version of OffsetFetch from which on all partitions can be asked for (KIP-88)."""
FOR_EVER: Final = 2**31

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Committer(Protocol):
    """As what a consumer commits."""

    @property
    def identity(self) -> Identity: ...
    @property
    def is_member(self) -> bool:
        """Of a group with members; else it commits from outside."""
        ...

    @property
    def has_epoch(self) -> bool:
        """It is a member of a KIP-848 group."""
        ...

    def token(self, partition: TopicPartition) -> object | None:
        """Another one each time that the partition is assigned; None: it may not be committed."""
        ...

    def refused(self, identity: Identity, code: ErrorCode) -> None:
        """A request that was sent as this was refused since the group has gone on."""
        ...

    def coordinator_lost(self, node_id: int) -> None: ...


class Commits:
    """See the module. Deadlines are milliseconds of the environment's monotonic clock."""

    def __init__(
        self,
        coordinator: Coordinator,
        committer: Committer,
        environment: Environment,
        backoff: Backoff,
        request_timeout_ms: int,
    ) -> None:
        self.committed: dict[TopicPartition, int] = {}
        """What is known to be committed, of partitions that are assigned."""
        self._coordinator = coordinator
        self._committer = committer
        self._environment = environment
        self._now_ms = environment.monotonic_ms
        self._backoff = backoff
        self._request_timeout_ms = request_timeout_ms
        self._turn = asyncio.Lock()

    # -------------------------------------------------------------------------------------------------------- commits
    async def commit(
        self, offsets: Offsets, deadline_ms: float, tries_max: int = FOR_EVER
    ) -> dict[TopicPartition, CommitOutcome]:
        """For each partition whether it was committed. Raises CommitFailed where others failed for another reason."""
        tokens = {partition: self._committer.token(partition) for partition in offsets}
        outcomes: dict[TopicPartition, CommitOutcome] = {}
        errors: dict[TopicPartition, ClientError] = {}
        async with _Until(self._turn, deadline_ms) as has_turn:
            left = dict(offsets)
            failures = 0
            while left:
                for partition in [each for each in left if not self._is_same(each, tokens[each])]:
                    outcomes[partition] = CommitOutcome.NOT_OURS
                    del left[partition]
                if not left or not has_turn:
                    break
                passing = await self._try_commit(left, deadline_ms, outcomes, errors)
                wait_ms = self._backoff.after_ms(failures)
                failures += 1
                if left and (self._now_ms() + wait_ms >= deadline_ms or failures >= tries_max):
                    self._give_up(left, passing, outcomes, errors)
                    break
                if left:
                    await self._environment.sleep(wait_ms)
            if not has_turn:
                timed_out = RequestTimedOut("OffsetCommit", "the coordinator", 0)
                errors |= dict.fromkeys(left, timed_out)
        if errors:
            raise CommitFailed(errors, outcomes)
        return outcomes

    async def ended(self, deadline_ms: float) -> bool:
        """Whether every commit that was begun before has ended; waits for that until the deadline."""
        async with _Until(self._turn, deadline_ms) as has_turn:
            return has_turn

    def _is_same(self, partition: TopicPartition, token: object | None) -> bool:
        return token is not None and self._committer.token(partition) is token

    async def _try_commit(
        self,
        left: dict[TopicPartition, OffsetAndMetadata],
        deadline_ms: float,
        outcomes: dict[TopicPartition, CommitOutcome],
        errors: dict[TopicPartition, ClientError],
    ) -> dict[TopicPartition, ClientError]:
        """Once. Takes out of `left` what is settled. Returns why the others are not, as far as it is known."""
        identity = self._committer.identity
        if self._committer.is_member and identity.generation < 0:
            return {}  # it is between two generations: what it had is lost, or about to be said so
        sent = dict(left)
        node_id = None
        try:
            node_id = await self._node(deadline_ms)
            response = await self._coordinator.ask(
                node_id,
                commit_request(identity, sent),
                at_least=commit_version(identity),
                at_most=NAMES_UNTIL,
                timeout_ms=self._timeout_ms(deadline_ms),
            )
        except ClientError as error:
            self._unanswered(node_id, error)
            if not error.retriable:
                errors |= dict.fromkeys(left, error)
                left.clear()
            return dict.fromkeys(left, error)
        passing: dict[TopicPartition, ClientError] = {}
        codes = committed_codes(sent, response)
        for partition, code in codes.items():
            if code is ErrorCode.NONE:
                self._settled(partition, sent[partition], outcomes)
                del left[partition]
            elif code in PASSING or (code in OUTDATED and self._committer.is_member):
                passing[partition] = _error(code, "OffsetCommit", partition, identity)
            else:
                errors[partition] = _error(code, "OffsetCommit", partition, identity)
                del left[partition]
        self._tell(set(codes.values()), identity, node_id)
        return passing

    def _settled(
        self, partition: TopicPartition, offset: OffsetAndMetadata, outcomes: dict[TopicPartition, CommitOutcome]
    ) -> None:
        outcomes[partition] = CommitOutcome.COMMITTED
        if self._committer.token(partition) is not None:
            self.committed[partition] = offset.offset

    def _give_up(
        self,
        left: dict[TopicPartition, OffsetAndMetadata],
        passing: Mapping[TopicPartition, ClientError],
        outcomes: dict[TopicPartition, CommitOutcome],
        errors: dict[TopicPartition, ClientError],
    ) -> None:
        for partition in left:
            error = passing.get(partition)
            if error is None or error.code in OUTDATED:
                outcomes[partition] = CommitOutcome.NOT_OURS
            else:
                errors[partition] = error

    # -------------------------------------------------------------------------------------------------------- reading
    async def fetch(
        self, partitions: Collection[TopicPartition] | None, deadline_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is committed of these, or (None) of all; partitions without an offset are left out.

        An offset in an open transaction is waited for. Raises ClientError, the last one at the deadline.
        """
        failures = 0
        while True:
            found = await self._try_fetch(partitions, deadline_ms)
            if not isinstance(found, ClientError):
                return found
            wait_ms = self._backoff.after_ms(failures)
            failures += 1
            if self._now_ms() + wait_ms >= deadline_ms:
                raise found.fresh()
            await self._environment.sleep(wait_ms)

    async def _try_fetch(
        self, partitions: Collection[TopicPartition] | None, deadline_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata] | ClientError:
        """Returns an error that passes, and raises others."""
        identity = self._committer.identity
        request = fetch_request(identity, partitions, names_member=self._committer.has_epoch)
        node_id = None
        try:
            node_id = await self._node(deadline_ms)
            response = await self._coordinator.ask(
                node_id,
                request,
                at_least=FETCH_VERSION_MIN if partitions is not None else ALL_SINCE,
                at_most=NAMES_UNTIL,
                timeout_ms=self._timeout_ms(deadline_ms),
            )
        except ClientError as error:
            self._unanswered(node_id, error)
            if not error.retriable:
                raise
            return error
        found = fetched_offsets(response)
        codes = {found.code, *found.codes.values()} - {ErrorCode.NONE}
        if not codes:
            return found.offsets
        self._tell(codes, identity, node_id)
        for code in codes:
            if code not in PASSING and not (code in OUTDATED and self._committer.is_member):
                raise _error(code, "OffsetFetch", _first(code, found.codes), identity)
        code = next(iter(codes))
        return _error(code, "OffsetFetch", _first(code, found.codes), identity)

    # --------------------------------------------------------------------------------------------------------- within
    async def _node(self, deadline_ms: float) -> int:
        if self._coordinator.node_id is not None:
            return self._coordinator.node_id
        return await self._coordinator.find(self._timeout_ms(deadline_ms))

    def _timeout_ms(self, deadline_ms: float) -> float:
        return max(1.0, min(deadline_ms - self._now_ms(), self._request_timeout_ms))

    def _tell(self, codes: set[ErrorCode], identity: Identity, node_id: int) -> None:
        for code in codes & OUTDATED:
            self._committer.refused(identity, code)
        if codes & MOVED:
            self._lost(node_id)

    def _unanswered(self, node_id: int | None, error: ClientError) -> None:
        if node_id is not None and error.retriable:
            self._lost(node_id)

    def _lost(self, node_id: int) -> None:
        self._coordinator.lost(node_id)
        self._committer.coordinator_lost(node_id)


class _Until:
    """A lock that is waited for until a deadline. `async with` says whether one has it."""

    def __init__(self, lock: asyncio.Lock, deadline_ms: float) -> None:
        self._lock = lock
        self._deadline_ms = deadline_ms
        self._has_it = False

    async def __aenter__(self) -> bool:
        try:
            async with asyncio.timeout_at(self._deadline_ms / 1000.0):
                await self._lock.acquire()
            self._has_it = True
        except TimeoutError:
            return False
        return True

    async def __aexit__(self, *_: object) -> None:
        if self._has_it:
            self._lock.release()


def _first(code: ErrorCode, codes: Mapping[TopicPartition, ErrorCode]) -> TopicPartition | None:
    return next((partition for partition, each in codes.items() if each is code), None)


def _error(code: ErrorCode, api: str, partition: TopicPartition | None, identity: Identity) -> ClientError:
    of = "" if partition is None else f" of {partition}"
    error = broker_error(code, "", f"{api}{of} in {identity.group_id}")
    if code in OUTDATED:
        error.hint = "The group has members: they, and nobody else, commit for it."
    return error
