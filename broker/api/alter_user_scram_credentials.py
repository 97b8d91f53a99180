"""AlterUserScramCredentials (key 51): sets and deletes what users authenticate with by SCRAM (KIP-554).

The client has salted and hashed the password; what is stored are the keys that follow from that. Each user has an
answer of his own, and one who stands in a request twice is refused, by whichever mechanism (ScramControlManager.java).
Connections that are open stay so. Each change is told to the log `kafka.authorizer.logger`, with who made it.

More than fit into one commit are stored by several, one after the other.

Versions: 0 is the only one.
"""

import logging
from functools import partial
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.keys import scram_user_key
from odradek.broker.cluster.store import CHUNK_SIZE, Txn
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

audit: Final = logging.getLogger("kafka.authorizer.logger")

TIMEOUT_MS: Final = 30_000
"""The request has none of its own; this is Kafka's default for a request."""
NAMES: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""Of mechanisms (ScramMechanism.java)."""

Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


async def handle(
    context: Context, call: Call, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    try:
        context.require(call, Operation.ALTER, CLUSTER)
    except KafkaError as error:
        return _refused(request, call.failed(error), error.message)
    results: dict[str, AlterUserScramCredentialsResult] = {}
    good: list[Alteration] = []
    for name, alterations in _by_user(request).items():
        result = results[name] = AlterUserScramCredentialsResult(user=name)
        try:
            _check(context, alterations)
            good += alterations
        except KafkaError as error:
            result.error_code, result.error_message = call.failed(error), error.message
    changes = MetadataChange(context, call, TIMEOUT_MS)
    for start in range(0, len(good), CHUNK_SIZE):
        chunk = good[start : start + CHUNK_SIZE]
        try:
            await changes.apply(partial(context.metadata.store.commit, _txn(chunk)))
        except KafkaError as error:
            for alteration in chunk:
                result = results[alteration.name]
                result.error_code, result.error_message = call.failed(error), error.message
        else:
            _tell(call, chunk)
    return AlterUserScramCredentialsResponse(results=[*results.values()])


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[Alteration]]:
    """Deletions before the others, as Kafka takes them."""
    found: dict[str, list[Alteration]] = {}
    every: list[Alteration] = [*request.deletions, *request.upsertions]
    for alteration in every:
        found.setdefault(alteration.name, []).append(alteration)
    return found


def _check(context: Context, alterations: list[Alteration]) -> None:
    """All that is asked for one user. Raises KafkaError: UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM,
    RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE."""
    first, scram = alterations[0], context.metadata.image.scram
    if not first.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if (mechanism := NAMES.get(first.mechanism)) is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(first, ScramCredentialDeletion):
        if scram is None or scram.find(mechanism, first.name) is None:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    else:
        _check_iterations(first.iterations)
    if len(alterations) > 1:
        raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


def _check_iterations(iterations: int) -> None:
    from odradek.broker.cluster.scram_credentials import ITERATIONS_MAX
    from odradek.protocol.scram import ITERATIONS_MIN

    if iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _txn(alterations: list[Alteration]) -> Txn:
    from odradek.broker.cluster.scram_credentials import encode_credential
    from odradek.protocol.scram_server import credential_from_salted

    put: dict[str, bytes] = {}
    delete: list[str] = []
    for each in alterations:
        mechanism = NAMES[each.mechanism]
        key = scram_user_key(mechanism, each.name)
        if isinstance(each, ScramCredentialUpsertion):
            salt, salted = bytes(each.salt), bytes(each.salted_password)
            put[key] = encode_credential(credential_from_salted(mechanism, salt, salted, each.iterations))
        else:
            delete.append(key)
    return Txn(put=put, delete=tuple(delete))


def _tell(call: Call, alterations: list[Alteration]) -> None:
    """Who has changed whose credential. Names are quoted and escaped: they are clients'."""
    for each in alterations:
        what = "deleted"
        if isinstance(each, ScramCredentialUpsertion):
            what = f"set, with {each.iterations} iterations,"
        user, mechanism = each.name, NAMES[each.mechanism]
        audit.info(
            "%a from host %a has %s the credential of user %.256a for %s",
            str(call.principal), call.host, what, user, mechanism,
        )  # fmt: skip


def _refused(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str
) -> AlterUserScramCredentialsResponse:
    """Each user has the same answer, in the order of their names."""
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message)
            for name in sorted(_by_user(request))
        ]
    )


def fail(request: AlterUserScramCredentialsRequest, code: ErrorCode) -> AlterUserScramCredentialsResponse:
    return _refused(request, code, code.text)
