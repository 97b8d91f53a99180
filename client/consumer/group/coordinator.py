"""`Coordinator`: finds the broker that coordinates a group, and asks it, over two connections of its own.

One carries what the coordinator may hold (JoinGroup, SyncGroup) and heartbeats, the other one offsets and LeaveGroup,
which would have to wait behind these. What an answer means for the member is decided elsewhere: by the membership
(`answer`), and by who commits (`ask`).
"""

from typing import Final, TypeVar

from odradek.client.cluster.cluster import Cluster
from odradek.client.cluster.topic_metadata import Node
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.consumer.group.group_messages import answer_of, described, layouts_of, wire_of
from odradek.client.consumer.group.line import Line
from odradek.client.consumer.membership.requests import (
    Answer,
    CoordinatorFound,
    DescribeTopics,
    FindCoordinator,
    Leave,
    NoAnswer,
    Refused,
    Request,
)
from odradek.client.errors.client_errors import ClientError, ConnectionFailed, broker_error
from odradek.client.metrics.metrics import Metrics
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.tls import TlsContexts
from odradek.protocol.codec import schema
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataResponse
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

__all__ = ["Coordinator"]

R = TypeVar("R", bound=schema.Response)

GROUP: Final = 0
"""The key type of groups."""


class Coordinator:
    """Of one group. `close` it."""

    def __init__(
        self,
        group_id: str,
        config: ClientConfig,
        environment: Environment,
        cluster: Cluster,
        tasks: Tasks,
        metrics: Metrics,
    ) -> None:
        self.node_id: int | None = None
        """Of the coordinator that was found last, if it has not proved wrong since."""
        self._group_id = group_id
        self._config = config
        self._environment = environment
        self._cluster = cluster
        self._metrics = metrics
        self._tls_contexts = TlsContexts(config)
        self._nodes: dict[int, Node] = {}
        self._members = Line(self._open, tasks, f"{config.client_id}: group {group_id}")
        self._offsets = Line(self._open, tasks, f"{config.client_id}: offsets of {group_id}")

    def close(self) -> None:
        self._members.close()
        self._offsets.close()

    # ----------------------------------------------------------------------------------------------- for a membership
    async def answer(self, asked: Request, node_id: int | None) -> Answer:
        """Sends a request of a membership, and says what came of it: always something."""
        try:
            match asked:
                case FindCoordinator():
                    return CoordinatorFound(await self.find())
                case DescribeTopics():
                    return await self._describe(asked)
                case _:
                    assert node_id is not None
                    wire = wire_of(asked)
                    line = self._offsets if isinstance(asked, Leave) else self._members
                    node = self._node(node_id)
                    return answer_of(
                        await line.ask(node, wire.request, at_least=wire.at_least, timeout_ms=wire.timeout_ms)
                    )
        except ClientError as error:
            if error.retriable:
                return NoAnswer(str(error))
            return Refused(error.code or ErrorCode.UNKNOWN_SERVER_ERROR, error.message)

    async def _describe(self, asked: DescribeTopics) -> Answer:
        """The coordinator has metadata as every broker, and its connection does not wait for records."""
        wire = described(asked)
        if self.node_id is not None:
            response = await self._members.ask(self._node(self.node_id), wire.request, at_least=wire.at_least)
        else:
            response = await self._cluster.ask(wire.request)
        assert isinstance(response, MetadataResponse)
        return layouts_of(response)

    # ---------------------------------------------------------------------------------------------------- for offsets
    async def find(self, timeout_ms: float | None = None) -> int:
        """Asks any broker for the coordinator. Raises ClientError, of the broker's code where it answered with one."""
        request = FindCoordinatorRequest(key=self._group_id, key_type=GROUP, coordinator_keys=[self._group_id])
        response = await self._cluster.ask(request, timeout_ms=timeout_ms)
        found = response.coordinators[0] if response.coordinators else response
        if found.error_code:
            raise broker_error(found.error_code, found.error_message, f"FindCoordinator of {self._group_id}")
        self._nodes[found.node_id] = Node(found.node_id, found.host, found.port)
        self.node_id = found.node_id
        return found.node_id

    def lost(self, node_id: int) -> None:
        """It is another broker, or cannot be reached."""
        if node_id == self.node_id:
            self.node_id = None

    async def ask(
        self, node_id: int, request: schema.Request[R], *, at_least: int, at_most: int, timeout_ms: float
    ) -> R:
        """About offsets. Raises ClientError."""
        return await self._offsets.ask(
            self._node(node_id), request, at_least=at_least, at_most=at_most, timeout_ms=timeout_ms
        )

    # --------------------------------------------------------------------------------------------------------- within
    def _node(self, node_id: int) -> Node:
        found = self._nodes.get(node_id)
        if found is None:
            raise ConnectionFailed(f"broker {node_id}", "it is not known where it is")
        return found

    async def _open(self, node: Node) -> Connection:
        return await open_connection(
            self._environment,
            self._config,
            node.node_id,
            node.host,
            node.port,
            contexts=self._tls_contexts,
            metrics=self._metrics,
        )
