"""Requests about users of SCRAM, for tests."""

from odradek.broker.handling.context import Context
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.scram import Challenge, salted_password
from tests.broker.support import ask

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
SALT = b"0123456789abcdefghijklmnop"


def upsertion(user: str, mechanism: int = 1, said: str = "secret", iterations: int = 4096) -> ScramCredentialUpsertion:
    name = MECHANISMS.get(mechanism, "SCRAM-SHA-256")
    salted = salted_password(name, said, Challenge(SALT, max(iterations, 1)))
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted
    )


def deletion(user: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


async def altered(
    context: Context, *alterations: ScramCredentialUpsertion | ScramCredentialDeletion
) -> list[tuple[str, int, str | None]]:
    """The answer, user by user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in alterations if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in alterations if isinstance(each, ScramCredentialUpsertion)],
    )
    answer = await ask(context, request, 0)
    return [(each.user, each.error_code, each.error_message) for each in answer.results]
