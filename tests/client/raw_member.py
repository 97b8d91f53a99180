"""A member of a classic group by raw messages, alone in it and its leader, at a broker in this process."""

import asyncio
from collections.abc import Mapping, Sequence

from odradek.protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.wire import RawClient

FIND, JOIN, SYNC, HEARTBEAT = 2, 7, 5, 4


async def joined(
    client: RawClient, group_id: str, partitions: Mapping[str, Sequence[int]], *, instance_id: str | None = None
) -> tuple[str, int]:
    """Joins and takes these partitions. Returns the member id and the generation."""
    metadata = encode_subscription(Subscription(list(partitions)))
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    await client.ask(FindCoordinatorRequest(key=group_id), FIND)  # so that there is one
    answer = await client.ask(request, JOIN)
    while answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.value:
        await asyncio.sleep(0.01)  # a broker tells nobody when it has loaded its groups
        answer = await client.ask(request, JOIN)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED.value:
        request.member_id = answer.member_id
        answer = await client.ask(request, JOIN)
    assert answer.error_code == 0, answer
    assert answer.leader == answer.member_id
    assignment = encode_assignment(Assignment(partitions))
    synced = await client.ask(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=assignment)],
        ),
        SYNC,
    )
    assert synced.error_code == 0, synced
    return answer.member_id, answer.generation_id


async def heartbeat(client: RawClient, group_id: str, member_id: str, generation: int) -> int:
    """The error code."""
    request = HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id)
    return (await client.ask(request, HEARTBEAT)).error_code
