"""Why a group rebalanced: a tagged field of our own on the groups of DescribeGroups and ConsumerGroupDescribe.

Kafka has nothing like it. KIP-482 has a reader skip the tags that it does not know: Kafka's own clients, kafka-python
and librdkafka do. It is sent where there is something to tell, and in flexible versions alone.

Its tag is `OD` in ASCII. Kafka numbers the tags of a struct from 0, without gaps, and none of its structs has more than
a handful, so it will not come to that number; a later field of Kafka's is not mistaken for ours, nor ours for it. Three
bytes are the price. Tags are written in rising order, so ours comes last.
"""

from typing import Final

from odradek.protocol.codec.schema import Struct, i32, i64, struct

REBALANCES_TAG: Final = 0x4F44


@struct
class GroupRebalance(Struct):
    """One rebalance. A field that comes later is a tagged one."""

    started_ms: i64
    """Unix time."""
    generation: i32
    """What it ended: a generation of a classic group, an epoch of a consumer group."""
    cause: str
    """One of few kinds, such as `session expired`; later brokers may have more."""
    reason: str
    """A sentence for people."""
    member_id: str = ""
    """The first of the members that caused it; empty where no member did."""
    instance_id: str | None = None
    last_heard_ms: i64 = -1
    """Unix time of the last request of that member before; -1: not known, or it has just come."""
