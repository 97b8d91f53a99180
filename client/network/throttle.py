"""Which answers silence a connection: `throttle_time_ms` in them, from the version on that KIP-219 gave each API.

Since then a broker answers first and then does not read from the connection for so long, and the client keeps still by
itself. An older version of the same answer comes after the broker has waited. (Source: `shouldClientThrottle` of Java's
response classes. Those that came after KIP-219 throttle in all their versions.)
"""

from typing import Final

__all__ = ["THROTTLE_MS_MAX", "silence_ms"]

THROTTLE_MS_MAX: Final = 600_000
"""No answer keeps a connection still for longer. Kafka's own limit follows from its quotas' windows: 11 s."""

_SINCE: Final = {
    0: 6,  # Produce
    1: 8,  # Fetch
    2: 3,  # ListOffsets
    3: 6,  # Metadata
    8: 4,  # OffsetCommit
    9: 4,  # OffsetFetch
    10: 2,  # FindCoordinator
    11: 3,  # JoinGroup
    12: 2,  # Heartbeat
    13: 2,  # LeaveGroup
    14: 2,  # SyncGroup
    15: 2,  # DescribeGroups
    16: 2,  # ListGroups
    18: 2,  # ApiVersions
    19: 3,  # CreateTopics
    20: 2,  # DeleteTopics
    21: 1,  # DeleteRecords
    22: 1,  # InitProducerId
    24: 1,  # AddPartitionsToTxn
    25: 1,  # AddOffsetsToTxn
    26: 1,  # EndTxn
    28: 1,  # TxnOffsetCommit
    29: 1,  # DescribeAcls
    30: 1,  # CreateAcls
    31: 1,  # DeleteAcls
    32: 2,  # DescribeConfigs
    33: 1,  # AlterConfigs
    34: 1,  # AlterReplicaLogDirs
    35: 1,  # DescribeLogDirs
    37: 1,  # CreatePartitions
    38: 1,  # CreateDelegationToken
    39: 1,  # RenewDelegationToken
    40: 1,  # ExpireDelegationToken
    41: 1,  # DescribeDelegationToken
    42: 1,  # DeleteGroups
}


def silence_ms(api_key: int, version: int, throttle_time_ms: int) -> int:
    """For how long the connection keeps still after an answer with this throttle_time_ms; 0: not at all."""
    if throttle_time_ms <= 0 or version < _SINCE.get(api_key, 0):
        return 0
    return min(throttle_time_ms, THROTTLE_MS_MAX)
