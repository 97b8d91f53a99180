"""The members of an etcd cluster, and which of them is asked.

One is asked for as long as it answers. `failed` moves on to the next; `connected` looks for one that can be reached,
the present one first, and gives each a short time. The brokers begin with different members, so that they spread.
"""

import logging
from collections.abc import Sequence
from typing import Final

from odradek.broker.cluster.etcd.certificates import Certificates
from odradek.broker.cluster.etcd.member import CallFailed, Member, open_channel
from odradek.broker.cluster.etcd.messages import STATUS, decode_cluster_id
from odradek.broker.cluster.store import StoreClosed, StoreRefused, Unreachable
from odradek.broker.config.store_address import Endpoint
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

CONNECT_MS: Final = 300.0
"""How long one member may take to be connected before another one is tried."""
PAUSE_MS: Final = 50.0
"""Between two rounds in which none could be reached."""
STATUS_MS: Final = 1000.0


class Members:
    """All members, of which one is asked."""

    def __init__(
        self, endpoints: Sequence[Endpoint], certificates: Certificates | None, environment: Environment
    ) -> None:
        self._environment = environment
        self._members = [Member(endpoint, open_channel(endpoint, certificates)) for endpoint in endpoints]
        self._current = environment.random_below(len(endpoints))
        self._cluster_id = 0
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._members)

    def __str__(self) -> str:
        return ", ".join(str(member) for member in self._members)

    async def connected(self, deadline_ms: float) -> Member:
        """A member to which a connection stands. Raises Unreachable, StoreRefused, StoreClosed.

        `deadline_ms` is on the environment's monotonic clock.
        """
        while not self._is_closed:
            first = self._current
            for index in range(first, first + len(self._members)):
                member = self._members[index % len(self._members)]
                left_ms = deadline_ms - self._environment.monotonic_ms()
                if not await member.is_connected(min(left_ms, CONNECT_MS)) or self._is_closed:
                    continue
                if member.is_checked or await self._is_of_one_cluster(member):
                    self._current = index % len(self._members)
                    return member
            if self._environment.monotonic_ms() + PAUSE_MS >= deadline_ms:
                raise Unreachable(f"no member of etcd ({self}) could be reached in time: {await self._reason()}")
            await self._environment.sleep(PAUSE_MS)
        raise StoreClosed("the metadata store is closed")

    @property
    def asked(self) -> Member:
        """The one that is asked next, if it can be reached."""
        return self._members[self._current]

    def failed(self, member: Member) -> None:
        """It did not answer: the next one is asked from now on."""
        if self.asked is member:
            self._current = (self._current + 1) % len(self._members)

    async def close(self) -> None:
        """Calls that are under way fail."""
        self._is_closed = True
        for member in self._members:
            await member.close()

    async def _is_of_one_cluster(self, member: Member) -> bool:
        """Once for each member: nothing may be written to another cluster by mistake. Raises StoreRefused."""
        if len(self._members) > 1:
            try:
                cluster_id = decode_cluster_id(await member.ask(STATUS, b"", STATUS_MS))
            except CallFailed as error:
                logger.debug("etcd's member %s does not say who it is: %s", member, error)
                return False
            self._cluster_id = self._cluster_id or cluster_id
            if cluster_id != self._cluster_id:
                raise StoreRefused(
                    f"the member {member} belongs to another etcd cluster than the others of {self}: metadata.store "
                    "must name members of one cluster"
                )
        member.is_checked = True
        return True

    async def _reason(self) -> str:
        """Why not, in gRPC's words, which it tells to a call only."""
        try:
            await self.asked.ask(STATUS, b"", PAUSE_MS)
        except CallFailed as error:
            return error.details or error.code
        return "they are slow"
