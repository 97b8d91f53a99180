"""A request of which some partitions fail and the others are handled: it is split, and the answers are merged. Pure.

kept, failing = split(request, is_hit, name_by_id)      # None: nothing of it
merged(answer_to_kept, failed(api, failing, code))
"""

from typing import Any, Final, TypeVar

from odradek.broker.handling.context import Api
from odradek.protocol.codec.schema import ZERO_UUID, Struct
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.testing.faults.request_fields import (
    IsHit,
    NameById,
    index_of,
    list_in,
    partitions_field,
    structs_in,
    topic_name,
    topics_field,
)

__all__ = ["failed", "mark_metadata", "merged", "split"]

S = TypeVar("S", bound=Struct)

KEYS: Final = ("topic", "name", "topic_id", "group_id", "transactional_id", "producer_id")
"""By these the elements of a list are told apart; partitions have none of them."""
NO_OFFSET, NO_LEADER = -1, -1


# -- splitting ---------------------------------------------------------------------------------------------------------


def split(request: S, is_hit: IsHit, name_by_id: NameById) -> tuple[S | None, S | None]:
    """The request without what is hit, and with nothing else; None where that names no topic."""
    if (field := topics_field(request)) is not None:
        kept, hit = _split_topics(list_in(request, field), is_hit, name_by_id)
    else:
        field, kept, hit = _split_others(request, is_hit, name_by_id)
    if not hit:
        return request, None
    return (changed(request, **{field: kept}) if kept else None), changed(request, **{field: hit})


def _split_topics(topics: list[Any], is_hit: IsHit, name_by_id: NameById) -> tuple[list[Any], list[Any]]:
    kept: list[Any] = []
    hit: list[Any] = []
    for topic in topics:
        name = topic_name(topic, name_by_id)
        within = partitions_field(topic)
        if within is None:
            (hit if is_hit(name, None) else kept).append(topic)
            continue
        partitions = list_in(topic, within)
        for into, is_wanted in ((kept, False), (hit, True)):
            if some := [each for each in partitions if is_hit(name, index_of(each)) is is_wanted]:
                into.append(changed(topic, **{within: some}))
    return kept, hit


def _split_others(request: Struct, is_hit: IsHit, name_by_id: NameById) -> tuple[str, list[Any], list[Any]]:
    """Where topics stand in structs of a list: those of each group, or of each transaction."""
    for field, structs in structs_in(request):
        parts = [split(each, is_hit, name_by_id) for each in structs]
        if any(hit is not None for _, hit in parts):
            return field, [kept for kept, _ in parts if kept is not None], [hit for _, hit in parts if hit is not None]
    return "", [], []


def changed(struct: S, **values: Any) -> S:
    """A copy with other values in these fields."""
    return type(struct)(**{name: getattr(struct, name) for name in struct.fields} | values)


# -- failing -----------------------------------------------------------------------------------------------------------


def failed(api: Api, request: Any, code: ErrorCode) -> Any:
    """The answer in which each partition, or topic, that the request names has failed; None where the API's answers
    have no error but that of the whole. Raises CloseConnection where it has no answer."""
    if isinstance(request, OffsetFetchRequest):
        return _failed_offset_fetch(request, code)
    if isinstance(request, FetchRequest):
        request = changed(request, session_id=0)  # else there is one error for the whole
    answer = api.fail(request, code)
    return answer if any(structs_in(answer)) else None


def _failed_offset_fetch(request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
        groups=[
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=[
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in group.topics or ()
                ],
            )
            for group in request.groups
        ],
    )


def mark_metadata(answer: MetadataResponse, is_hit: IsHit, code: ErrorCode, *, whole_topic: bool) -> MetadataResponse:
    """The answer with the error in what it says of these topics, or partitions; the same one where it names none. A
    request may ask for all topics, so that its answer alone names them."""

    def marked(topic: MetadataResponseTopic) -> MetadataResponseTopic:
        name = topic.name or ""
        if whole_topic:
            return changed(topic, error_code=code, partitions=[]) if is_hit(name, None) else topic
        hit = {each.partition_index for each in topic.partitions if is_hit(name, each.partition_index)}
        if not hit:
            return topic
        partitions = [
            changed(each, error_code=code, leader_id=NO_LEADER) if each.partition_index in hit else each
            for each in topic.partitions
        ]
        return changed(topic, partitions=partitions)

    topics = [marked(each) for each in answer.topics]
    is_same = all(after is before for after, before in zip(topics, answer.topics, strict=True))
    return answer if is_same else changed(answer, topics=topics)


# -- merging -----------------------------------------------------------------------------------------------------------


def merged(answer: S | None, other: S) -> S:
    """The first answer with the topics, and partitions, of the other one as well."""
    if answer is None:
        return other
    for field, structs in structs_in(other):
        mine: list[Any] = list(getattr(answer, field))
        places = {key: place for place, each in enumerate(mine) if (key := _key(each))}
        for struct in structs:
            if (place := places.get(_key(struct))) is None:
                mine.append(struct)
            else:
                mine[place] = merged(mine[place], struct)
        answer = changed(answer, **{field: mine})
    return answer


def _key(struct: Struct) -> tuple[Any, ...]:
    values = [getattr(struct, name) for name in KEYS if name in struct.fields]
    return tuple(each for each in values if each not in ("", ZERO_UUID, None))
