"""ConsumerGroupDescribe: state, epochs and members of consumer groups, in every version."""

from odradek.broker.access.operations import NOT_ASKED, Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    DescribedGroup,
    TopicPartitions,
)
from tests.broker.groups import GROUP, finalize, make_consumer_group, make_group, running_groups
from tests.broker.support import ask
from tests.broker.transactions import Denying

VERSIONS = range(2)
GROUP_OPERATIONS = 3400


async def describe(
    context: Context, *group_ids: str, version: int = 1, with_operations: bool = False
) -> list[DescribedGroup]:
    request = ConsumerGroupDescribeRequest(group_ids=list(group_ids), include_authorized_operations=with_operations)
    return (await ask(context, request, version)).groups


async def test_a_group_is_described_with_what_its_members_have_and_are_to_have() -> None:
    async with running_groups() as context:
        await make_consumer_group(context, GROUP)
        topic_id = context.metadata.image.topics["orders"].topic_id
        everything = Assignment(
            topic_partitions=[TopicPartitions(topic_id=topic_id, topic_name="orders", partitions=[0, 1, 2])]
        )
        for version in VERSIONS:
            [group] = await describe(context, GROUP, version=version)
            assert (group.error_code, group.error_message, group.group_id) == (ErrorCode.NONE, None, GROUP)
            assert (group.group_state, group.assignor_name) == ("Stable", "uniform")
            assert group.group_epoch == group.assignment_epoch
            assert group.authorized_operations == NOT_ASKED
            [member] = group.members
            assert (member.member_id, member.instance_id, member.rack_id) == ("member", None, None)
            assert (member.member_epoch, member.subscribed_topic_names) == (group.group_epoch, ["orders"])
            assert member.subscribed_topic_regex is None
            assert (member.assignment, member.target_assignment) == (everything, everything)
            assert member.member_type == (1 if version >= 1 else -1)
            [told] = group.rebalances
            assert (told.cause, told.member_id, told.instance_id) == ("member joined", "member", None)
            assert told.reason == "member member joined, subscribed to orders"
            assert (told.generation, told.last_heard_ms) == (group.group_epoch - 1, -1)
            assert told.started_ms > 0


async def test_each_group_is_answered_for_itself_in_the_order_of_the_request() -> None:
    async with running_groups() as context:
        await make_consumer_group(context, GROUP)
        await make_group(context, "classic")
        for version in VERSIONS:
            groups = await describe(context, "nothing", GROUP, "", "classic", version=version)
            assert [(group.group_id, ErrorCode(group.error_code)) for group in groups] == [
                ("nothing", ErrorCode.GROUP_ID_NOT_FOUND),
                (GROUP, ErrorCode.NONE),
                ("", ErrorCode.INVALID_GROUP_ID),
                ("classic", ErrorCode.GROUP_ID_NOT_FOUND),
            ]
            assert all(group.error_message for group in groups if group.error_code)


async def test_what_may_be_done_is_told_where_it_is_asked() -> None:
    async with running_groups() as context:
        await make_consumer_group(context, GROUP)
        for version in VERSIONS:
            known, unknown = await describe(context, GROUP, "b", version=version, with_operations=True)
            assert known.authorized_operations == GROUP_OPERATIONS
            assert unknown.authorized_operations == NOT_ASKED


async def test_before_the_feature_is_finalized_no_group_is_described() -> None:
    async with running_groups() as context:
        await finalize(context, {})
        [group] = await describe(context, GROUP)
        assert (group.error_code, group.members) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_a_group_of_another_broker_is_not_described_here() -> None:
    async with running_groups() as context:
        context.groups.stop()
        [group] = await describe(context, GROUP)
        assert group.error_code == ErrorCode.NOT_COORDINATOR


async def test_a_topic_that_may_not_be_seen_hides_the_group() -> None:
    async with running_groups(access=Denying((Operation.DESCRIBE, of_topic("orders")))) as context:
        await make_consumer_group(context, GROUP)
        [group] = await describe(context, GROUP)
        assert (group.error_code, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
