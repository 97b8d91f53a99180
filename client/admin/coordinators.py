"""Which broker coordinates each group or transactional id: found when it is asked for first, kept, and found again
where it has moved.

    call = CoordinatorCall(coordinators, deadline)
    await calls.complete("DeleteGroups", group_ids, lambda some: call.each(some, ask), deadline)

A key, which is a group's id or a transactional id, has moved when its coordinator says so, says that it is not ready,
or cannot be reached. The next attempt then looks it up again. From version 4 of FindCoordinator on, several keys are
looked up at once (KIP-699).

(Source: CoordinatorStrategy.java, AdminApiDriver.java.)
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from odradek.client.admin import group_errors, transaction_errors
from odradek.client.admin.calls import Again, Calls, Deadline, UnknownBroker
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import UnsupportedVersion
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.runtime.tasks import run_together

__all__ = ["GROUPS", "TRANSACTIONS", "CoordinatorCall", "CoordinatorKind", "Coordinators"]

K = TypeVar("K")
V = TypeVar("V")

KEY_TYPES_SINCE: Final = 1
"""The version of FindCoordinator from which on not all keys are groups (KIP-98)."""
SEVERAL_SINCE: Final = 4
KEPT_MAX: Final = 10_000
"""The coordinators of so many keys are kept. With more, all are looked up again."""
TOGETHER_MAX: Final = 1_000
"""A request names so many keys at most, so that its answer stays small and comes in time."""

Found = int | ClientError | Again


class CoordinatorKind(NamedTuple):
    """What is coordinated, and how its errors are read."""

    key_type: int
    at_least: int
    """The version of FindCoordinator that knows this key type."""
    passing: frozenset[ErrorCode]
    """Errors that asking again can cure."""
    error: Callable[[int, str | None, str], ClientError]
    """Of a code, the broker's words, and what was asked."""


GROUPS: Final = CoordinatorKind(0, 0, group_errors.PASSING, group_errors.group_error)
TRANSACTIONS: Final = CoordinatorKind(
    1, KEY_TYPES_SINCE, transaction_errors.PASSING, transaction_errors.transaction_error
)
MOVED: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors after which the coordinator is looked for again. (Source: CoordinatorStrategy.java and the handlers beside it,
which keep the coordinator while it loads; a failover ends such a load, too.)"""


class Coordinators:
    """The coordinators of one kind that are known."""

    def __init__(self, calls: Calls, kind: CoordinatorKind) -> None:
        self.kind = kind
        self._calls = calls
        self._known: dict[str, int] = {}

    async def find(self, keys: Sequence[str], deadline: Deadline) -> dict[str, Found]:
        """The node that coordinates each key, or why it is not known. Raises ClientError when nobody answers."""
        found: dict[str, Found] = {each: self._known[each] for each in keys if each in self._known}
        missing = [each for each in keys if each not in found]
        if missing:
            answers = await self._look_up(missing, deadline)
            if len(self._known) + len(answers) > KEPT_MAX:
                self._known.clear()
            self._known |= {each: node for each, node in answers.items() if isinstance(node, int)}
            found |= answers
        return found

    def forget(self, key: str) -> None:
        self._known.pop(key, None)

    async def _look_up(self, keys: Sequence[str], deadline: Deadline) -> dict[str, Found]:
        at_least = SEVERAL_SINCE if len(keys) > 1 else self.kind.at_least
        request = find_coordinator_request(self.kind, keys)
        try:
            return found_coordinators(self.kind, keys, await self._calls.ask(request, deadline, at_least=at_least))
        except UnsupportedVersion:
            if len(keys) == 1:
                raise
        answers = await run_together([self._look_up([each], deadline) for each in keys], "FindCoordinator")
        return {key: node for answer in answers for key, node in answer.items()}


class CoordinatorCall:
    """One call about keys of one kind, which asks their coordinators until it is answered."""

    def __init__(self, coordinators: Coordinators, deadline: Deadline) -> None:
        self._coordinators = coordinators
        self._deadline = deadline
        self.lost: set[str] = set()
        """Keys about which an answer was lost: what the next one says of them may be of this call's own doing."""

    async def each(
        self,
        keys: Sequence[str],
        ask: Callable[[list[str], int], Awaitable[Mapping[str, V | ClientError]]],
    ) -> dict[str, V | ClientError | Again]:
        """Attempts it once: asks each coordinator about its keys, at the same time. Raises ClientError."""
        outcomes: dict[str, V | ClientError | Again] = {}
        by_node: dict[int, list[str]] = {}
        for key, node in (await self._coordinators.find(keys, self._deadline)).items():
            if isinstance(node, int):
                by_node.setdefault(node, []).append(key)
            else:
                outcomes[key] = node

        async def one(its: list[str], node_id: int) -> dict[str, V | ClientError | Again]:
            found: dict[str, V | ClientError | Again] = {}
            for begin in range(0, len(its), TOGETHER_MAX):
                some = its[begin : begin + TOGETHER_MAX]
                try:
                    answers = await ask(some, node_id)
                except ClientError as error:
                    found |= {key: self._unanswered(key, error) for key in some}
                else:
                    found |= {key: self._settled(key, answer) for key, answer in answers.items()}
            return found

        for answered in await run_together([one(some, node) for node, some in by_node.items()], "ask coordinators"):
            outcomes |= answered
        return outcomes

    async def one(
        self, key: str, items: Sequence[K], ask: Callable[[int], Awaitable[Mapping[K, V | ClientError]]]
    ) -> dict[K, V | ClientError | Again]:
        """The same for one key, whose answer is by item. Raises ClientError."""
        node = (await self._coordinators.find([key], self._deadline))[key]
        if not isinstance(node, int):
            return dict.fromkeys(items, node)
        try:
            answers = await ask(node)
        except ClientError as error:
            return dict.fromkeys(items, self._unanswered(key, error))
        return {item: self._settled(key, answer) for item, answer in answers.items()}

    def _settled(self, key: str, answer: V | ClientError) -> V | ClientError | Again:
        if not isinstance(answer, ClientError) or answer.code not in self._coordinators.kind.passing:
            return answer
        if answer.code in MOVED:
            self._coordinators.forget(key)
        return Again(answer)

    def _unanswered(self, key: str, error: ClientError) -> ClientError | Again:
        """A coordinator could not be asked, or has not answered."""
        if not error.retriable and not isinstance(error, UnknownBroker):
            return error
        self._coordinators.forget(key)
        self.lost.add(key)
        return Again(error)


def find_coordinator_request(kind: CoordinatorKind, keys: Sequence[str]) -> FindCoordinatorRequest:
    """In both forms, of which a version carries one: up to version 3 it is about the first key alone."""
    return FindCoordinatorRequest(key=keys[0], key_type=kind.key_type, coordinator_keys=list(keys))


def found_coordinators(
    kind: CoordinatorKind, keys: Sequence[str], response: FindCoordinatorResponse
) -> dict[str, Found]:
    if not response.coordinators:
        (key,) = keys
        return {key: _found(kind, key, response.node_id, response.error_code, response.error_message)}
    return {
        each.key: _found(kind, each.key, each.node_id, each.error_code, each.error_message)
        for each in response.coordinators
    }


def _found(kind: CoordinatorKind, key: str, node_id: int, code: int, message: str | None) -> Found:
    if not code:
        return node_id
    error = kind.error(code, message, f"FindCoordinator of {key}")
    return Again(error) if error.code in kind.passing else error
