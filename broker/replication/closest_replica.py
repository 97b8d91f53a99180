"""Which replica a consumer had better read from (KIP-392, RackAwareReplicaSelector.java). Pure.

With `replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector` a consumer that says its rack is
sent to an in-sync follower there that has the offset, if the leader stands elsewhere; of several to the one that has
come furthest. A follower whose log ends at the offset has it, too: the consumer waits there for what comes next. One
whose offset is no longer there hears it from the leader, for a consumer that hears it from a follower asks the leader
again, and would be sent back (`ReplicaManager.findPreferredReadReplica`). So followers whose log begins later are
passed over, as they said with their last fetch.
"""

from collections.abc import Mapping
from typing import Final

from odradek.broker.replica.replicas import Replicas

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NO_REPLICA: Final = -1


def closest_replica(
    replicas: Replicas, racks: Mapping[int, str | None], rack: str, fetch_offset: int, log_start_offset: int
) -> int:
    """The broker to read from instead of the leader; NO_REPLICA for the leader. `racks`: of the brokers there are.
    `log_start_offset`: the leader's."""
    if not rack or racks.get(replicas.leader_id) == rack or fetch_offset < log_start_offset:
        return NO_REPLICA
    near = [
        (follower.log_end_offset, broker_id)
        for broker_id, follower in replicas.followers.items()
        if broker_id in replicas.isr
        and racks.get(broker_id) == rack
        and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
    ]
    return max(near)[1] if near else NO_REPLICA
