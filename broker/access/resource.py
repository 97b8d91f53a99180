"""What a request is about, for the question whether its caller may do that (ResourceType.java)."""

from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from odradek.protocol.errors import ErrorCode


class ResourceType(IntEnum):
    """With Kafka's codes. ACLs on delegation tokens and users are kept as in Kafka; nothing asks for them yet."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    __hash__ = int.__hash__  # as that of operations


class Resource(NamedTuple):
    kind: ResourceType
    name: str


CLUSTER: Final = Resource(ResourceType.CLUSTER, "kafka-cluster")

DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""What is answered to whom may not."""


@lru_cache(maxsize=1024)  # half the time of making it anew, for each partition of each request
def of_topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def of_group(group_id: str) -> Resource:
    return Resource(ResourceType.GROUP, group_id)


def of_transactional_id(name: str) -> Resource:
    return Resource(ResourceType.TRANSACTIONAL_ID, name)
