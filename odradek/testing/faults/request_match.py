"""Whether a request is one that a fault, or a test that looks at recorded requests, means. Pure."""

from fnmatch import fnmatchcase

from odradek.protocol.codec.schema import Struct
from odradek.testing.faults.fault import Match
from odradek.testing.faults.request_fields import (
    NameById,
    asks_for_all_topics,
    groups_in,
    topics_in,
    transactional_ids_in,
)

__all__ = ["matches", "matches_client", "means"]


def matches(match: Match, broker: int, api: str, client_id: str | None, request: Struct, name_by_id: NameById) -> bool:
    """Whether all that the match names is so; that is also where one of several partitions is meant."""
    if match.api is not None and match.api != api:
        return False
    if match.broker is not None and match.broker != broker:
        return False
    if not matches_client(match, client_id):
        return False
    if match.topic is not None and not _names(match, request, name_by_id):
        return False
    if match.group is not None and match.group not in groups_in(request):
        return False
    return match.transactional_id is None or match.transactional_id in transactional_ids_in(request)


def matches_client(match: Match, client_id: str | None) -> bool:
    return match.client_id is None or fnmatchcase(client_id or "", match.client_id)


def means(match: Match, topic: str, partition: int | None) -> bool:
    """Whether a topic is meant, or one of its partitions; None: the topic as a whole."""
    return topic == match.topic and (match.partition is None or match.partition == partition)


def _names(match: Match, request: Struct, name_by_id: NameById) -> bool:
    if asks_for_all_topics(request):
        return True
    return any(
        topic == match.topic and (partition is None or match.partition is None or match.partition == partition)
        for topic, partition in topics_in(request, name_by_id)
    )
