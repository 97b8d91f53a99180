"""DescribeCluster (key 60): the brokers, the controller and the id of the cluster.

v0: the API (KIP-700), flexible
v1: endpoint_type, 1 brokers, 2 controllers (KIP-919)
v2: fenced brokers, if they are asked for (KIP-1073)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class DescribeClusterBroker(Struct):
    broker_id: i32
    host: str
    port: i32
    rack: str | None = None
    is_fenced: bool = field(since=2, default=False)


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    endpoint_type: i8 = field(since=1, default=1)
    cluster_id: str
    controller_id: i32 = -1
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: i32 = -2147483648


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterRequest(Request[DescribeClusterResponse]):
    include_cluster_authorized_operations: bool
    endpoint_type: i8 = field(since=1, default=1)
    include_fenced_brokers: bool = field(since=2, default=False)
