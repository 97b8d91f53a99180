"""What may be done with a resource, and which operations each type of resource knows.

`authorized_operations` of Metadata, DescribeCluster and others is a bit field: bit n stands for the operation with
Kafka's code n (AclOperation.java).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from odradek.broker.access.resource import ResourceType

NOT_ASKED = -(2**31)
"""What the field holds when the request did not ask for it."""


class Operation(IntEnum):
    """With Kafka's codes. `ALL` stands in ACLs, and is never asked for."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    __hash__ = int.__hash__  # a decision is looked up by it, and that of an Enum is written in Python


def bit_field(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


SUPPORTED: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that a resource of each type knows (AclEntry.supportedOperations)."""

TOPIC_OPERATIONS: Final = bit_field(*SUPPORTED[ResourceType.TOPIC])
CLUSTER_OPERATIONS: Final = bit_field(*SUPPORTED[ResourceType.CLUSTER])
