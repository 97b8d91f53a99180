"""DescribeGroups (key 15): state, protocol and members of classic groups.

Metadata and assignments are there while a group is stable. Authorized operations that were not asked for are
-2147483648.

v0: the API (KAFKA-2687)
v1: throttle_time_ms (KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: authorized operations (KIP-430)
v4: group_instance_id (KIP-345)
v5: flexible (KIP-482); rebalances, a field of our own (`group_rebalances`)
v6: GROUP_ID_NOT_FOUND with error_message in the place of the state Dead (KIP-1043)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct
from odradek.protocol.messages.group_rebalances import REBALANCES_TAG, GroupRebalance


@struct
class DescribedGroupMember(Struct):
    member_id: str
    group_instance_id: str | None = field(since=4, default=None)
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@struct
class DescribedGroup(Struct):
    error_code: i16 = 0
    error_message: str | None = field(since=6, default=None)
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = field(default_factory=list[DescribedGroupMember])
    authorized_operations: i32 = field(since=3, default=-2147483648)
    rebalances: list[GroupRebalance] = field(since=5, tag=REBALANCES_TAG, default_factory=list[GroupRebalance])
    """The last ones that the coordinator knows, oldest first."""


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsResponse(Response):
    throttle_time_ms: i32 = field(since=1, default=0)
    groups: list[DescribedGroup]


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    groups: list[str]
    include_authorized_operations: bool = field(since=3, default=False)
