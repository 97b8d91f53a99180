"""UnregisterBroker (key 64): forgets a broker that is gone for good (KIP-631).

For the controller, to which others send it on. What it was in sync for it is not any more, as if its directory were
gone; its replicas stay assigned to it, until they are reassigned. One that is still there would register again, so it
is to be stopped first. Nor is a broker forgotten whose replica is the only one in sync or eligible: what was
acknowledged is there, if it is anywhere, and nobody could elect it cleanly any more. Kafka forgets either.

Versions: 0 the API (KIP-631).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.forwarding import forward
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(context: Context, call: Call, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    context.require(call, Operation.ALTER, CLUSTER)
    if (answer := await forward(context, call, request, TIMEOUT_MS)) is not None:
        return answer
    broker_id = request.broker_id
    image = context.metadata.image
    try:
        if broker_id not in image.nodes:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
        if broker_id in image.brokers:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"broker {broker_id} is there, and would register again: stop it first"
            )
        await MetadataChange(context, call, TIMEOUT_MS).apply(lambda: context.member.controller.unregister(broker_id))
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=call.failed(error), error_message=error.message)
    return UnregisterBrokerResponse()


TIMEOUT_MS = 30_000
"""The request carries no timeout of its own; this is Kafka's default for a request."""


def fail(request: UnregisterBrokerRequest, code: ErrorCode) -> UnregisterBrokerResponse:
    del request
    return UnregisterBrokerResponse(error_code=code, error_message=code.text)
