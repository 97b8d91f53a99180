"""DescribeUserScramCredentials (key 50): which users can authenticate by SCRAM, and with how many iterations (KIP-554).

No users, or null, are all of them. A user who is named twice, or has no credential, has an error of his own. Salts and
keys are not told.

Versions: 0 is the only one.
"""

from collections import Counter
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

CODES: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Of mechanisms (ScramMechanism.java)."""


async def handle(
    context: Context, call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    context.require(call, Operation.DESCRIBE, CLUSTER)
    scram = context.metadata.image.scram
    if request.users:
        counts = Counter(user.name for user in request.users)
    else:
        counts = Counter({name: 1 for users in (scram.users.values() if scram else ()) for name in users})
    results: list[DescribeUserScramCredentialsResult] = []
    for name, count in counts.items():
        result = DescribeUserScramCredentialsResult(user=name, error_message="")
        results.append(result)
        try:
            if count > 1:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
                )
            found = scram.of_user(name) if scram else {}
            if not found:
                raise KafkaError(
                    ErrorCode.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {name}"
                )
            result.credential_infos = [
                CredentialInfo(mechanism=CODES[mechanism], iterations=each.iterations)
                for mechanism, each in sorted(found.items())
            ]
        except KafkaError as error:
            result.error_code, result.error_message = call.failed(error), error.message
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def fail(request: DescribeUserScramCredentialsRequest, code: ErrorCode) -> DescribeUserScramCredentialsResponse:
    del request
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=code.text, results=[])
