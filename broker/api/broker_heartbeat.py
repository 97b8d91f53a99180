"""BrokerHeartbeat (key 63): a broker tells the controller that it is there (KIP-631).

Only brokers may say so, on their listener and with the epoch of their registration. The loss of the connection is told
to the controller, too (controller/fencing.py). A broker that is about to stop says so in the metadata, so
`want_shut_down` is not needed; whoever sends it may stop when it leads nothing any more. `current_metadata_offset` is
the revision of the metadata that the broker has applied, for which changes of ACLs wait (controller/acl_spread.py).

Versions: 1 offline log directories (KIP-858). 2 log directories that get no new partitions (KIP-1066), of which there
are none here.
"""

from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def handle(context: Context, call: Call, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    broker_id, broker_epoch = request.broker_id, request.broker_epoch
    context.require_broker(call)
    context.member.controller.require_active()
    if request.cordoned_log_dirs:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no log directory can be kept from getting new partitions")
    if not context.member.fencing.heard(broker_id, broker_epoch):
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered with epoch {broker_epoch}"
        )
    if context.member.acl_spread is not None:
        context.member.acl_spread.heard(broker_id, broker_epoch, request.current_metadata_offset)
    call.caller.on_close = lambda: context.member.fencing.connection_lost(broker_id, broker_epoch)
    image = context.metadata.image
    return BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= image.revision,
        is_fenced=False,
        should_shut_down=request.want_shut_down and not image.led_by(broker_id),
    )


def fail(request: BrokerHeartbeatRequest, code: ErrorCode) -> BrokerHeartbeatResponse:
    del request
    return BrokerHeartbeatResponse(error_code=code)
