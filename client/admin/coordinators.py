"""Which broker coordinates each group: found when it is asked for first, kept, and found again where it has moved.

    call = GroupCall(coordinators, deadline)
    await calls.complete("DeleteGroups", group_ids, lambda some: call.each(some, ask), deadline)

A group has moved when its coordinator says so, says that it is not ready, or cannot be reached. The next attempt then
looks it up again. From version 4 of FindCoordinator on, several groups are looked up at once (KIP-699).

(Source: CoordinatorStrategy.java, AdminApiDriver.java.)
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from odradek.client.admin.calls import Again, Calls, Deadline, UnknownBroker
from odradek.client.admin.group_errors import MOVED, PASSING, group_error
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import UnsupportedVersion
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.runtime.tasks import run_together

__all__ = ["Coordinators", "GroupCall"]

K = TypeVar("K")
V = TypeVar("V")

SEVERAL_SINCE: Final = 4
GROUP: Final = 0
"""The key type of groups."""
KEPT_MAX: Final = 10_000
"""The coordinators of so many groups are kept. With more, all are looked up again."""
TOGETHER_MAX: Final = 1_000
"""A request names so many groups at most, so that its answer stays small and comes in time."""

Found = int | ClientError | Again


class Coordinators:
    """The coordinators that are known."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: dict[str, int] = {}

    async def find(self, group_ids: Sequence[str], deadline: Deadline) -> dict[str, Found]:
        """The node that coordinates each group, or why it is not known. Raises ClientError when nobody answers."""
        found: dict[str, Found] = {each: self._known[each] for each in group_ids if each in self._known}
        missing = [each for each in group_ids if each not in found]
        if missing:
            answers = await self._look_up(missing, deadline)
            if len(self._known) + len(answers) > KEPT_MAX:
                self._known.clear()
            self._known |= {each: node for each, node in answers.items() if isinstance(node, int)}
            found |= answers
        return found

    def forget(self, group_id: str) -> None:
        self._known.pop(group_id, None)

    async def _look_up(self, group_ids: Sequence[str], deadline: Deadline) -> dict[str, Found]:
        at_least = SEVERAL_SINCE if len(group_ids) > 1 else 0
        request = find_coordinator_request(group_ids)
        try:
            return found_coordinators(group_ids, await self._calls.ask(request, deadline, at_least=at_least))
        except UnsupportedVersion:
            if not at_least:
                raise
        answers = await run_together([self._look_up([each], deadline) for each in group_ids], "FindCoordinator")
        return {group_id: node for answer in answers for group_id, node in answer.items()}


class GroupCall:
    """One call about groups, which asks their coordinators until it is answered."""

    def __init__(self, coordinators: Coordinators, deadline: Deadline) -> None:
        self._coordinators = coordinators
        self._deadline = deadline
        self.lost: set[str] = set()
        """Groups about which an answer was lost: what the next one says of them may be of this call's own doing."""

    async def each(
        self,
        group_ids: Sequence[str],
        ask: Callable[[list[str], int], Awaitable[Mapping[str, V | ClientError]]],
    ) -> dict[str, V | ClientError | Again]:
        """Attempts it once: asks each coordinator about its groups, at the same time. Raises ClientError."""
        outcomes: dict[str, V | ClientError | Again] = {}
        by_node: dict[int, list[str]] = {}
        for group_id, node in (await self._coordinators.find(group_ids, self._deadline)).items():
            if isinstance(node, int):
                by_node.setdefault(node, []).append(group_id)
            else:
                outcomes[group_id] = node

        async def one(its: list[str], node_id: int) -> dict[str, V | ClientError | Again]:
            found: dict[str, V | ClientError | Again] = {}
            for begin in range(0, len(its), TOGETHER_MAX):
                some = its[begin : begin + TOGETHER_MAX]
                try:
                    answers = await ask(some, node_id)
                except ClientError as error:
                    found |= {group_id: self._unanswered(group_id, error) for group_id in some}
                else:
                    found |= {group_id: self._settled(group_id, answer) for group_id, answer in answers.items()}
            return found

        for answered in await run_together([one(some, node) for node, some in by_node.items()], "ask coordinators"):
            outcomes |= answered
        return outcomes

    async def one(
        self, group_id: str, items: Sequence[K], ask: Callable[[int], Awaitable[Mapping[K, V | ClientError]]]
    ) -> dict[K, V | ClientError | Again]:
        """The same for one group, whose answer is by item. Raises ClientError."""
        node = (await self._coordinators.find([group_id], self._deadline))[group_id]
        if not isinstance(node, int):
            return dict.fromkeys(items, node)
        try:
            answers = await ask(node)
        except ClientError as error:
            return dict.fromkeys(items, self._unanswered(group_id, error))
        return {item: self._settled(group_id, answer) for item, answer in answers.items()}

    def _settled(self, group_id: str, answer: V | ClientError) -> V | ClientError | Again:
        if not isinstance(answer, ClientError) or answer.code not in PASSING:
            return answer
        if answer.code in MOVED:
            self._coordinators.forget(group_id)
        return Again(answer)

    def _unanswered(self, group_id: str, error: ClientError) -> ClientError | Again:
        """A coordinator could not be asked, or has not answered."""
        if not error.retriable and not isinstance(error, UnknownBroker):
            return error
        self._coordinators.forget(group_id)
        self.lost.add(group_id)
        return Again(error)


def find_coordinator_request(group_ids: Sequence[str]) -> FindCoordinatorRequest:
    """In both forms, of which a version carries one: up to version 3 it is about the first group alone."""
    return FindCoordinatorRequest(key=group_ids[0], key_type=GROUP, coordinator_keys=list(group_ids))


def found_coordinators(group_ids: Sequence[str], response: FindCoordinatorResponse) -> dict[str, Found]:
    if not response.coordinators:
        (group_id,) = group_ids
        return {group_id: _found(group_id, response.node_id, response.error_code, response.error_message)}
    return {
        each.key: _found(each.key, each.node_id, each.error_code, each.error_message) for each in response.coordinators
    }


def _found(group_id: str, node_id: int, code: int, message: str | None) -> Found:
    if not code:
        return node_id
    error = group_error(code, message, f"FindCoordinator of {group_id}")
    return Again(error) if error.code in PASSING else error
