"""Questions about what a leader does with a batch: the records it blames, whose time and which codec it stores."""

import time
from collections.abc import Sequence

from odradek.protocol.batches.batch import HEADER_SIZE, crc_matches, read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.compat.peer import Peer
from tests.compat.questions import ATTRIBUTES, MAX_TIMESTAMP, Answer, changed, name_of, question

HOUR_MS = 3_600_000
LOG_APPEND_TIME_BIT = 0x08
THEN = 1_700_000_000_000
RECORDS = [
    Record(0, THEN, b"a", b"value " * 50),
    Record(1, THEN + 2, b"", None, (("h", b"1"), ("n", None))),
    Record(2, THEN - 9, b"c", b""),
]
TARGETS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def timed(timestamps_ms: Sequence[int], keys: Sequence[bytes | None] | None = None) -> bytes:
    """A batch of records with these timestamps, and keys where there are any."""
    given = [b"k"] * len(timestamps_ms) if keys is None else keys
    return build_batch([Record(n, ms, key, b"v") for n, (ms, key) in enumerate(zip(timestamps_ms, given, strict=True))])


def sent(peer: Peer, topic: str, records: bytes, *, version: int = 9) -> PartitionProduceResponse:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    [answer] = peer.ask(request, version).responses[0].partition_responses
    return answer


def told(answer: PartitionProduceResponse) -> tuple[str, int, list[tuple[int, bool]], bool]:
    """Error, base offset, which records are blamed and whether with a reason, whether there is a message for all."""
    blamed = [(error.batch_index, bool(error.batch_index_error_message)) for error in answer.record_errors]
    return name_of(answer.error_code), answer.base_offset, blamed, bool(answer.error_message)


def stored(peer: Peer, topic: str, offset: int) -> bytes:
    """The batch at this offset."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(
        replica_id=-1, max_wait_ms=5_000, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    [answer] = peer.ask(request, 11).responses[0].partitions
    found = bytes(answer.records or b"")
    return found[: read_header(found).size_bytes]


# -- timestamps -----------------------------------------------------------------------------------------------------
@question
def records_of_the_future(peer: Peer, topic: str) -> Answer:
    """An hour ahead is the default; bounds are met within a minute, since clocks go on."""
    now = now_ms()
    near, far = now + HOUR_MS - 60_000, now + HOUR_MS + 60_000
    return [
        told(sent(peer, topic, timed(times), version=version))
        for version in (7, 8, 9)
        for times in ([now, near], [far], [now, far, near, far])
    ]


@question
def records_of_the_past(peer: Peer, topic: str) -> Answer:
    """The bound is off by default; records without a timestamp are never too old."""
    bounded = f"{topic}-bounded"
    peer.create_topic(bounded, message_timestamp_before_max_ms="60000")
    now = now_ms()
    times = ([now], [now, -1], [now, 0, now - 120_000, -1], [-1, -1], [-2], [THEN])
    return [[told(sent(peer, name, timed(each))) for each in times] for name in (topic, bounded)]


@question
def a_largest_timestamp_far_ahead_that_no_record_has(peer: Peer, topic: str) -> Answer:
    answer = told(sent(peer, topic, changed(timed([THEN, THEN - 5]), MAX_TIMESTAMP, ">q", now_ms() + 2 * HOUR_MS)))
    found = stored(peer, topic, 0)
    return answer, read_header(found).max_timestamp, crc_matches(found)


@question
def a_largest_timestamp_that_the_records_of_a_compacted_topic_do_not_have(peer: Peer, topic: str) -> Answer:
    compacted = f"{topic}-c"
    peer.create_topic(compacted, cleanup_policy="compact")
    answers: list[Answer] = []
    for offset, claimed in enumerate((THEN - 1, THEN + 1, -1, THEN)):
        answer = told(sent(peer, compacted, changed(timed([THEN]), MAX_TIMESTAMP, ">q", claimed)))
        found = stored(peer, compacted, offset)
        answers.append((answer, read_header(found).max_timestamp, crc_matches(found)))
    return answers


# -- the broker's time ----------------------------------------------------------------------------------------------
@question
def the_time_of_the_append(peer: Peer, topic: str) -> Answer:
    """Answered, written into the header, and nothing else is changed; timestamps may be of any time."""
    stamped = f"{topic}-stamped"
    peer.create_topic(stamped, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms="1")
    answers: list[Answer] = []
    for codec in Codec:
        records = build_batch(RECORDS, codec=codec)
        before = now_ms()
        answer = sent(peer, stamped, records)
        is_now = before <= answer.log_append_time_ms <= now_ms()
        found = stored(peer, stamped, answer.base_offset)
        header = read_header(found)
        answers.append(
            (
                told(answer),
                is_now,
                header.max_timestamp == answer.log_append_time_ms,
                header.base_timestamp,
                header.attributes,
                found[HEADER_SIZE:] == records[HEADER_SIZE:],
                crc_matches(found),
            )
        )
    return answers


@question
def the_time_of_the_append_of_a_duplicate(peer: Peer, topic: str) -> Answer:
    """That of the first append; with the client's timestamps, the largest of them."""
    stamped = f"{topic}-stamped"
    peer.create_topic(stamped, message_timestamp_type="LogAppendTime")
    records = build_batch(RECORDS, producer_id=7_100, producer_epoch=0, base_sequence=0)
    first, again = sent(peer, stamped, records), sent(peer, stamped, records)
    times = [sent(peer, topic, records).log_append_time_ms for _ in range(2)]
    return told(first), told(again), first.log_append_time_ms == again.log_append_time_ms, times


@question
def a_batch_that_claims_log_append_time_where_the_broker_sets_it(peer: Peer, topic: str) -> Answer:
    stamped = f"{topic}-stamped"
    peer.create_topic(stamped, message_timestamp_type="LogAppendTime")
    answer = sent(peer, stamped, changed(timed([THEN]), ATTRIBUTES, ">h", LOG_APPEND_TIME_BIT))
    return name_of(answer.error_code)


# -- keys -----------------------------------------------------------------------------------------------------------
@question
def records_without_keys_in_compacted_topics(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for policy in ("compact", "compact,delete"):
        compacted = f"{topic}-{len(policy)}"
        peer.create_topic(compacted, cleanup_policy=policy)
        for keys in ([b"k", b""], [None], [b"k", None, b"k", None]):
            answers += [told(sent(peer, compacted, timed([THEN] * len(keys), keys), version=v)) for v in (7, 9)]
    return answers


@question
def records_with_several_mistakes(peer: Peer, topic: str) -> Answer:
    compacted = f"{topic}-c"
    peer.create_topic(compacted, cleanup_policy="compact", message_timestamp_before_max_ms="60000")
    now = now_ms()
    return [
        told(sent(peer, compacted, timed([now, THEN, now, THEN], [None, b"k", b"k", None]))),
        told(sent(peer, compacted, timed([THEN, THEN], [None, None]))),
    ]


# -- the topic's codec ----------------------------------------------------------------------------------------------
@question
def batches_compressed_anew(peer: Peer, topic: str) -> Answer:
    """From every codec to every other one: what is read back, and all of the header but size and checksum."""
    answers: list[Answer] = []
    for target in TARGETS:
        name = f"{topic}-{target}"
        peer.create_topic(name, compression_type=target)
        for number, source in enumerate(Codec):
            records = build_batch(RECORDS, codec=source, producer_id=7_200, producer_epoch=1, base_sequence=3 * number)
            answer = sent(peer, name, records)
            found = stored(peer, name, answer.base_offset)
            header = read_header(found)._replace(batch_length=0, crc=0)
            answers.append((told(answer), header, crc_matches(found), list(iterate_records(found))))
    return answers


@question
def batches_compressed_anew_at_a_level(peer: Peer, topic: str) -> Answer:
    """More at the highest than at the lowest."""
    text = b" ".join(b"%d" % (number * number % 10_007) for number in range(5_000))
    records = build_batch([Record(0, THEN, None, text)])
    answers: list[Answer] = []
    for codec, low, high in (("gzip", "1", "9"), ("lz4", "1", "17"), ("zstd", "-5", "19")):
        sizes: list[int] = []
        for level in (low, high):
            name = f"{topic}-{codec}-{level}"
            peer.create_topic(name, 1, compression_type=codec, **{f"compression_{codec}_level": level})
            assert sent(peer, name, records).error_code == 0
            sizes.append(len(stored(peer, name, 0)))
        answers.append((codec, sizes[0] > sizes[1]))
    return answers


@question
def batches_compressed_anew_and_stamped(peer: Peer, topic: str) -> Answer:
    both = f"{topic}-both"
    peer.create_topic(both, compression_type="gzip", message_timestamp_type="LogAppendTime")
    answer = sent(peer, both, build_batch(RECORDS, codec=Codec.ZSTD))
    found = stored(peer, both, 0)
    header = read_header(found)
    times = {record.timestamp_ms - answer.log_append_time_ms for record in iterate_records(found)}
    return told(answer), header.attributes, header.base_timestamp, times


@question
def batches_that_are_too_large_before_or_after(peer: Peer, topic: str) -> Answer:
    """What would fit once compressed is refused all the same, and what fits until it is unpacked."""
    unpacking, packing = f"{topic}-u", f"{topic}-p"
    peer.create_topic(unpacking, compression_type="uncompressed", max_message_bytes="1000")
    peer.create_topic(packing, compression_type="gzip", max_message_bytes="1000")
    records = [Record(0, THEN, None, bytes(2_000))]
    return [
        told(sent(peer, name, build_batch(records, codec=codec)))[:3]
        for name in (unpacking, packing)
        for codec in (Codec.NONE, Codec.GZIP, Codec.ZSTD)
    ]
