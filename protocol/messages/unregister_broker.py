"""UnregisterBroker (key 64): forgets a broker that is gone for good.

v0: the API (KIP-631), flexible
"""

from odradek.protocol.codec.schema import Request, Response, i16, i32, message


@message(key=64, versions=(0, 0), flexible=0)
class UnregisterBrokerResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message(key=64, versions=(0, 0), flexible=0)
class UnregisterBrokerRequest(Request[UnregisterBrokerResponse]):
    broker_id: i32
