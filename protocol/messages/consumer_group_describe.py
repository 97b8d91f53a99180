"""ConsumerGroupDescribe (key 69): state, epochs and members of consumer groups (KIP-848).

Authorized operations that were not asked for are -2147483648. member_type: 0 classic, 1 consumer, -1 unknown.

v0: the API, flexible; rebalances, a field of our own (`group_rebalances`)
v1: member_type (KIP-1099)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct, uuid
from odradek.protocol.messages.group_rebalances import REBALANCES_TAG, GroupRebalance


@struct
class TopicPartitions(Struct):
    topic_id: uuid
    topic_name: str
    partitions: list[i32]


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions]


@struct
class Member(Struct):
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: i32
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: i8 = field(since=1, default=-1)


@struct
class DescribedGroup(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    assignor_name: str = ""
    members: list[Member] = field(default_factory=list[Member])
    authorized_operations: i32 = -2147483648
    rebalances: list[GroupRebalance] = field(tag=REBALANCES_TAG, default_factory=list[GroupRebalance])
    """The last ones that the coordinator knows, oldest first."""


@message(key=69, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeResponse(Response):
    throttle_time_ms: i32 = 0
    groups: list[DescribedGroup]


@message(key=69, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeRequest(Request[ConsumerGroupDescribeResponse]):
    group_ids: list[str]
    include_authorized_operations: bool
