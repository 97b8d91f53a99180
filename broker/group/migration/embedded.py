"""Assignments of a consumer group in the bytes that classic members read (protocol/consumer_protocol.py). Pure."""

from collections.abc import Collection, Mapping

from odradek.broker.group.topics_view import TopicsView
from odradek.protocol.consumer_protocol import NEWEST_VERSION, Assignment, encode_assignment


def assignment_for(partitions: Mapping[bytes, Collection[int]], subscription: bytes, topics: TopicsView) -> bytes:
    """By names, in the version of the member's own subscription; topics that do not exist any more are left out."""
    by_name = {
        topic.name: sorted(indexes)
        for topic_id, indexes in partitions.items()
        if indexes and (topic := topics.by_id(topic_id)) is not None
    }
    version = min(int.from_bytes(subscription[:2], "big", signed=True), NEWEST_VERSION)
    return encode_assignment(Assignment({name: by_name[name] for name in sorted(by_name)}), version)
