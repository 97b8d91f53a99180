"""Kafka's numbers for options: whose they are, and what is done to them. Broker and client say them to each other."""

from enum import IntEnum

__all__ = ["Operation", "ResourceType"]


class ResourceType(IntEnum):
    """What has options (ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to one option (KIP-339, AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    """Back to what holds without it."""
    APPEND = 2
    """Add to a list what is not in it."""
    SUBTRACT = 3
    """Remove from a list what is in it."""
