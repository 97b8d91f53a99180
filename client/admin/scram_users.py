"""Users with passwords for SCRAM, as Admin takes and returns them, and the requests that describe and change them
(KIP-554). Pure.

A password never leaves the client: what is sent is salted and hashed (RFC 5802's SaltedPassword). Whoever has that can
authenticate as the user nevertheless, so it stands in no `repr`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, Self

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

__all__ = ["ScramCredential", "ScramDeletion", "ScramMechanism", "ScramUpsertion"]

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16_384
"""What brokers store (ScramMechanism.java)."""
SALT_BYTES: Final = 32


class ScramMechanism(IntEnum):
    """Kafka's numbers; UNKNOWN for one of a newer broker."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """As `sasl.mechanism` has it."""
        return self.name.replace("_", "-")

    @classmethod
    def of(cls, number: int) -> Self:
        return cls(number) if number in cls._value2member_map_ else cls["UNKNOWN"]


class ScramCredential(NamedTuple):
    """That a user has a password for a mechanism, which nobody can read."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """Sets the password of a user for a mechanism, whether there was one or not. `salt`: None for a random one."""

    user: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512
    iterations: int = ITERATIONS_MIN
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """Takes the password of a user for a mechanism away. Connections that are open stay."""

    user: str
    mechanism: ScramMechanism


ScramChange = ScramUpsertion | ScramDeletion


def problem_of(change: ScramChange) -> ClientError | None:
    """Why this cannot be asked for; None for nothing. No text holds a password. (Source: KafkaAdminClient.java.)"""
    if not change.user:
        return _unacceptable("the name of a user is empty", "Name the user.")
    if change.mechanism is ScramMechanism.UNKNOWN:
        return _unacceptable(
            f"the mechanism of {change.user} is unknown", "Give SCRAM_SHA_256 or SCRAM_SHA_512.", is_mechanism=True
        )
    if isinstance(change, ScramDeletion):
        return None
    if not change.password:
        return _unacceptable(f"the password of {change.user} is empty", "Give one that nobody guesses.")
    if not is_text(change.password):
        return _unacceptable(f"the password of {change.user} holds surrogates, which are no text", "Give another one.")
    if not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        return _unacceptable(
            f"{change.iterations} iterations for {change.user}", f"Give {ITERATIONS_MIN} to {ITERATIONS_MAX} of them."
        )
    return None


def is_text(password: str) -> bool:
    """Whether it has an UTF-8. (The error of `encode` would hold the password.)"""
    return not any("\ud800" <= character <= "\udfff" for character in password)


def _unacceptable(why: str, hint: str, *, is_mechanism: bool = False) -> ClientError:
    error = ClientError(f"AlterUserScramCredentials was not sent: {why}", hint=hint)
    error.code = ErrorCode.UNSUPPORTED_SASL_MECHANISM if is_mechanism else ErrorCode.UNACCEPTABLE_CREDENTIAL
    return error


def describe_users_request(users: Iterable[str] | None) -> DescribeUserScramCredentialsRequest:
    """None: all users that have a password for SCRAM."""
    return DescribeUserScramCredentialsRequest(users=None if users is None else [UserName(name=user) for user in users])


def described_users(
    response: DescribeUserScramCredentialsResponse,
) -> dict[str, tuple[ScramCredential, ...] | ClientError]:
    """By user, in order. Raises BrokerError."""
    what = "DescribeUserScramCredentials"
    if response.error_code:
        raise broker_error(response.error_code, response.error_message, what)
    outcomes: dict[str, tuple[ScramCredential, ...] | ClientError] = {}
    for result in sorted(response.results, key=lambda each: each.user):
        if result.error_code:
            outcomes[result.user] = broker_error(result.error_code, result.error_message, f"{what} of {result.user}")
        else:
            outcomes[result.user] = tuple(
                sorted(
                    ScramCredential(ScramMechanism.of(info.mechanism), info.iterations)
                    for info in result.credential_infos
                )
            )
    return outcomes


def alter_users_request(
    deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramCredentialUpsertion]
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=each.user, mechanism=each.mechanism) for each in deletions],
        upsertions=list(upsertions),
    )


def altered_users(response: AlterUserScramCredentialsResponse) -> dict[str, ClientError | None]:
    """By user: all changes of a user are made together, or none."""
    return {
        result.user: broker_error(
            result.error_code, result.error_message, f"AlterUserScramCredentials of {result.user}"
        )
        if result.error_code
        else None
        for result in response.results
    }
