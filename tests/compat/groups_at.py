"""What a group has committed, and what it is like, as kafka-python's administration is told."""

from contextlib import closing
from typing import Any

from kafka.admin import KafkaAdminClient


def committed(bootstrap: str, group: str, topic: str = "") -> dict[int, int]:
    """The offsets of the topic, which may be left out where it is the only one, by partition, without partitions that
    have none."""
    admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)  # our stubs do not have it all
    with closing(admin):
        [offsets] = admin.list_group_offsets([group]).values()
        return {
            position.partition: each.offset
            for position, each in offsets.items()
            if each.offset >= 0 and topic in ("", position.topic)
        }


def committed_sum(bootstrap: str, group: str, topic: str = "") -> int:
    """The sum of these offsets; 0 where it has none."""
    return sum(committed(bootstrap, group, topic).values())


def described(bootstrap: str, group: str) -> str:
    """What its coordinator tells of it, for people."""
    admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)
    with closing(admin):
        return repr(admin.describe_groups([group]))
