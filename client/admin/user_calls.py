"""The calls of Admin about users with passwords for SCRAM (KIP-554).

Any broker describes them; the controller changes them, as in KafkaAdminClient.java.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.client.admin.base import AdminBase, items_of
from odradek.client.admin.calls import Deadline
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.scram_users import (
    SALT_BYTES,
    ScramCredential,
    ScramDeletion,
    ScramUpsertion,
    alter_users_request,
    altered_users,
    describe_users_request,
    described_users,
    problem_of,
)
from odradek.client.arguments import require_all
from odradek.client.cluster.cluster import CONTROLLER
from odradek.client.errors.base import ClientError
from odradek.protocol.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from odradek.protocol.scram import Challenge, salted_password

__all__ = ["UserCalls"]

DESCRIBE: Final = "DescribeUserScramCredentials"


class UserCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: float | None = None
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """For which mechanisms users have passwords, by user. None: all that have one.

        Raises ItemsFailed, with RESOURCE_NOT_FOUND for a user who was named and has none; BrokerError;
        UnsupportedVersion before Kafka 2.7.
        """
        deadline = self._deadline(timeout_ms)
        if users is None:
            return await self._describe_all_users(deadline)
        wanted = await items_of("users", users, "users' names")
        require_all("users", wanted, str, "users' names (str)")
        if not wanted:
            return {}  # an empty list would stand for all of them

        async def attempt(some: list[str]) -> Mapping[str, tuple[ScramCredential, ...] | ClientError]:
            return described_users(await self._calls.ask(describe_users_request(some), deadline))

        return await self._calls.complete(DESCRIBE, wanted, attempt, deadline)

    async def _describe_all_users(self, deadline: Deadline) -> dict[str, tuple[ScramCredential, ...]]:
        async def once() -> Mapping[str, tuple[ScramCredential, ...] | ClientError]:
            return described_users(await self._calls.ask(describe_users_request(None), deadline))

        found = await self._calls.until(DESCRIBE, once, deadline)
        errors = {user: outcome for user, outcome in found.items() if isinstance(outcome, ClientError)}
        results = {user: outcome for user, outcome in found.items() if not isinstance(outcome, ClientError)}
        if errors:
            raise ItemsFailed(DESCRIBE, errors, results)
        return results

    async def alter_user_scram_credentials(
        self, changes: Iterable[ScramUpsertion | ScramDeletion], *, timeout_ms: float | None = None
    ) -> None:
        """Sets passwords of users and takes them away; all changes of a user are made together, or none.

        Open connections stay. Raises ItemsFailed with the error of each user whose password was not changed, and
        ClientError for an empty password or numbers that brokers refuse, before anything is sent.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await items_of("changes", changes, "ScramUpsertion and ScramDeletion objects")
        for each in wanted:
            _require_change(each)
            if (problem := problem_of(each)) is not None:
                raise problem
        upsertions = [await self._salted(each) for each in wanted if isinstance(each, ScramUpsertion)]
        deletions = [each for each in wanted if isinstance(each, ScramDeletion)]

        async def attempt(some: list[str]) -> Mapping[str, ClientError | None]:
            request = alter_users_request(
                [each for each in deletions if each.user in some], [each for each in upsertions if each.name in some]
            )
            return altered_users(await self._calls.ask(request, deadline, node=CONTROLLER))

        users = [each.user for each in wanted]
        await self._calls.complete("AlterUserScramCredentials", users, attempt, deadline)

    async def _salted(self, change: ScramUpsertion) -> ScramCredentialUpsertion:
        """Takes milliseconds, so it is done in a helper thread."""
        salt = self._environment.random_bytes(SALT_BYTES) if change.salt is None else change.salt
        salted = await self._environment.run_blocking(
            salted_password, change.mechanism.sasl_name, change.password, Challenge(salt, change.iterations)
        )
        return ScramCredentialUpsertion(
            name=change.user,
            mechanism=change.mechanism,
            iterations=change.iterations,
            salt=salt,
            salted_password=salted,
        )


def _require_change(change: object) -> None:
    """Raises TypeError, which does not show what stands there: it may hold a password."""
    if not isinstance(change, ScramUpsertion | ScramDeletion):
        kind = type(change).__name__
        raise TypeError(f"changes must be ScramUpsertion and ScramDeletion objects, and have a {kind}")
