"""Users with passwords as values: what cannot be asked for, and that no text holds a password."""

import pytest

from odradek.client.admin.scram_users import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramChange,
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    described_users,
    problem_of,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

SECRET = "pencil-5f0c"  # noqa: S105
SHA_512 = ScramMechanism.SCRAM_SHA_512


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (ScramUpsertion("", SECRET), "name of a user is empty"),
        (ScramDeletion("", SHA_512), "name of a user is empty"),
        (ScramUpsertion("alice", ""), "password of alice is empty"),
        (ScramUpsertion("alice", f"{SECRET}\udc80"), "holds surrogates"),
        (ScramUpsertion("alice", SECRET, iterations=ITERATIONS_MIN - 1), "4095 iterations"),
        (ScramUpsertion("alice", SECRET, iterations=ITERATIONS_MAX + 1), "16385 iterations"),
        (ScramUpsertion("alice", SECRET, ScramMechanism.UNKNOWN), "mechanism of alice is unknown"),
        (ScramDeletion("alice", ScramMechanism.UNKNOWN), "mechanism of alice is unknown"),
    ],
)
def test_what_brokers_refuse_is_not_sent(change: ScramChange, why: str) -> None:
    problem = problem_of(change)
    assert problem is not None
    assert why in str(problem)
    assert SECRET not in f"{problem!r} {problem}"
    assert problem.code in (ErrorCode.UNACCEPTABLE_CREDENTIAL, ErrorCode.UNSUPPORTED_SASL_MECHANISM)


@pytest.mark.parametrize("iterations", [ITERATIONS_MIN, ITERATIONS_MAX])
def test_names_and_passwords_may_hold_anything(iterations: int) -> None:
    assert problem_of(ScramUpsertion("a,b=c d", ", =\u00e9\U0001f511", iterations=iterations)) is None
    assert problem_of(ScramDeletion("a,b=c d", SHA_512)) is None


def test_a_password_stands_in_no_repr() -> None:
    assert SECRET not in repr(ScramUpsertion("alice", SECRET, salt=SECRET.encode()))


def test_mechanisms_have_the_names_of_sasl() -> None:
    assert SHA_512.sasl_name == "SCRAM-SHA-512"
    assert ScramMechanism.of(3) is ScramMechanism.UNKNOWN


def test_users_are_described_in_order_with_errors_of_their_own() -> None:
    response = DescribeUserScramCredentialsResponse(
        results=[
            DescribeUserScramCredentialsResult(
                user="zoe",
                credential_infos=[
                    CredentialInfo(mechanism=2, iterations=8192),
                    CredentialInfo(mechanism=1, iterations=4096),
                ],
            ),
            DescribeUserScramCredentialsResult(user="bob", error_code=ErrorCode.RESOURCE_NOT_FOUND),
        ]
    )
    found = described_users(response)
    assert list(found) == ["bob", "zoe"]
    assert found["zoe"] == (
        ScramCredential(ScramMechanism.SCRAM_SHA_256, 4096),
        ScramCredential(SHA_512, 8192),
    )
    assert getattr(found["bob"], "code", None) is ErrorCode.RESOURCE_NOT_FOUND
