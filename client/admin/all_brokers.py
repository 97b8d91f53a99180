"""A call that all brokers answer, each for its part, such as for the groups that it coordinates.

    call = AllBrokersCall(calls, "ListGroups", ask, deadline)
    by_node = await call.answers()

All brokers that there are now are asked at the same time, until all have answered in one attempt: what a broker
coordinated that has gone meanwhile is coordinated by another one, so a part of an earlier attempt would not do.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from odradek.client.admin.calls import Again, Calls, Deadline, UnknownBroker
from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.base import ClientError
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.runtime.tasks import run_together

__all__ = ["AllBrokersCall"]

V = TypeVar("V")


class AllBrokersCall(Generic[V]):
    """`ask`: asks one broker, by its id, and raises ClientError. `what`: the call, for errors and logs."""

    def __init__(self, calls: Calls, what: str, ask: Callable[[int], Awaitable[V]], deadline: Deadline) -> None:
        self._calls = calls
        self._what = what
        self._ask = ask
        self._deadline = deadline
        self._heard: dict[int, V] = {}
        """What each broker has answered last, for a report of those that do not."""

    async def answers(self) -> dict[int, V]:
        """By broker id.

        Raises ItemsFailed when a broker has not answered in time, or does not answer for good: `errors` has the reason
        by broker id, `results` the answers of the others.
        """

        async def attempt(_: list[str]) -> Mapping[str, dict[int, V] | ClientError | Again]:
            return {"": await self._once()}

        try:
            return (await self._calls.complete(self._what, [""], attempt, self._deadline))[""]
        except ItemsFailed as failed:
            raise failed.errors[""] from None

    async def _once(self) -> dict[int, V] | ClientError | Again:
        brokers = (await self._calls.ask(MetadataRequest(topics=[]), self._deadline)).brokers
        nodes = sorted(broker.node_id for broker in brokers)

        async def one(node_id: int) -> V | ClientError:
            try:
                return await self._ask(node_id)
            except ClientError as error:
                return error

        answers = dict(zip(nodes, await run_together([one(each) for each in nodes], self._what), strict=True))
        errors = {node: answer for node, answer in answers.items() if isinstance(answer, ClientError)}
        results = {node: answer for node, answer in answers.items() if not isinstance(answer, ClientError)}
        self._heard |= results
        if not errors:
            return results
        silent = {node: error for node, error in errors.items() if node not in self._heard}
        heard = {node: self._heard[node] for node in nodes if node in self._heard}
        failed = ItemsFailed(self._what, silent or errors, heard)
        passes = all(error.retriable or isinstance(error, UnknownBroker) for error in errors.values())
        return Again(failed) if passes else failed
