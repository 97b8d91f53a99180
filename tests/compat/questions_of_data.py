"""Questions about records: Produce with every kind of bad batch and sequence, Fetch, ListOffsets, epochs, deletion."""

from odradek.protocol.batches.batch import pack_batch
from odradek.protocol.batches.compression import Codec, compress
from odradek.protocol.batches.record_encoding import build_batch, encode_records
from odradek.protocol.batches.records import Record
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.peer import Peer
from tests.compat.questions import (
    ATTRIBUTES,
    BATCH_LENGTH,
    CLOSED,
    LAST_OFFSET_DELTA,
    MAGIC,
    MAX_TIMESTAMP,
    RECORD_COUNT,
    Answer,
    batch,
    changed,
    fetched,
    listed,
    name_of,
    produced,
    question,
)

CONTROL_BIT, LOG_APPEND_TIME_BIT = 0x20, 0x08
SEQUENCE_MAX = 2**31 - 1


# -- where to -------------------------------------------------------------------------------------------------------
@question
def produce_to_an_unknown_topic(peer: Peer, topic: str) -> Answer:
    return produced(peer, f"{topic}-unknown", batch())


@question
def produce_to_a_partition_out_of_range(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch(), index=1), produced(peer, topic, batch(), index=-1)


@question
def produce_to_a_name_that_no_topic_can_have(peer: Peer, topic: str) -> Answer:
    return [produced(peer, name, batch()) for name in ("", ".", "a/b")]


@question
def produce_with_each_acks(peer: Peer, topic: str) -> Answer:
    return [produced(peer, topic, batch(), acks=acks) for acks in (-1, 1, 2, -2)]


@question
def produce_with_acks_0_and_an_error(peer: Peer, topic: str) -> Answer:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=5, records=batch())])
    try:
        peer.ask(ProduceRequest(acks=0, timeout_ms=1_000, topic_data=[data]), 9)
    except ConnectionError:
        return CLOSED
    return "answered"


# -- the batch ------------------------------------------------------------------------------------------------------
@question
def a_good_batch_of_each_codec(peer: Peer, topic: str) -> Answer:
    return [produced(peer, topic, batch(3, codec=codec, value=b"v" * 300)) for codec in Codec]


@question
def a_batch_with_a_bad_crc(peer: Peer, topic: str) -> Answer:
    good = batch()
    return produced(peer, topic, good[:-1] + bytes([good[-1] ^ 1]))


@question
def a_batch_of_an_older_magic(peer: Peer, topic: str) -> Answer:
    return [produced(peer, topic, changed(batch(), MAGIC, ">b", magic)) for magic in (0, 1)]


@question
def a_batch_of_a_later_magic(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, changed(batch(), MAGIC, ">b", 3))


@question
def a_batch_with_a_wrong_count(peer: Peer, topic: str) -> Answer:
    return [produced(peer, topic, changed(batch(3), RECORD_COUNT, ">i", count)) for count in (2, 4, 0, -1)]


@question
def a_batch_with_a_wrong_last_offset_delta(peer: Peer, topic: str) -> Answer:
    return [produced(peer, topic, changed(batch(3), LAST_OFFSET_DELTA, ">i", delta)) for delta in (1, 3, -1)]


@question
def a_batch_whose_header_agrees_with_itself_and_not_with_its_records(peer: Peer, topic: str) -> Answer:
    records = changed(batch(3), RECORD_COUNT, ">i", 2)
    return produced(peer, topic, changed(records, LAST_OFFSET_DELTA, ">i", 1))


@question
def bytes_behind_the_last_record(peer: Peer, topic: str) -> Answer:
    good = batch(3)
    longer = changed(good + b"\0\0", BATCH_LENGTH, ">i", len(good) + 2 - BATCH_LENGTH - 4)
    return produced(peer, topic, longer)


@question
def bytes_behind_the_last_compressed_record(peer: Peer, topic: str) -> Answer:
    records = [Record(offset, 1_700_000_000_000, None, b"value") for offset in range(3)]
    payload = compress(Codec.GZIP, encode_records(records, 0, 1_700_000_000_000) + b"\0\0")
    longer = pack_batch(
        payload,
        record_count=3,
        last_offset_delta=2,
        base_timestamp=1_700_000_000_000,
        max_timestamp=1_700_000_000_000,
        codec=Codec.GZIP,
    )
    return produced(peer, topic, longer)


@question
def records_later_than_the_largest_timestamp(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, changed(batch(3), MAX_TIMESTAMP, ">q", 1_700_000_000_001))


@question
def looking_for_a_record_later_than_the_largest_timestamp(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, changed(batch(3), MAX_TIMESTAMP, ">q", 1_700_000_000_001))
    return listed(peer, topic, 1_700_000_000_002)


@question
def a_gap_between_the_offsets_of_records(peer: Peer, topic: str) -> Answer:
    records = [Record(offset, 1_700_000_000_000, None, b"value") for offset in (0, 2)]
    return produced(peer, topic, changed(build_batch(records), LAST_OFFSET_DELTA, ">i", 1))


@question
def a_control_batch(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, changed(batch(), ATTRIBUTES, ">h", CONTROL_BIT))


@question
def a_batch_that_claims_log_append_time(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, changed(batch(), ATTRIBUTES, ">h", LOG_APPEND_TIME_BIT))


@question
def a_batch_of_a_codec_that_does_not_exist(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, changed(batch(), ATTRIBUTES, ">h", 5))


@question
def a_batch_of_a_codec_that_it_is_not(peer: Peer, topic: str) -> Answer:
    """Plain records that are announced as zstd."""
    return produced(peer, topic, changed(batch(), ATTRIBUTES, ">h", Codec.ZSTD))


@question
def zstd_before_version_7(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch(codec=Codec.ZSTD), version=6), produced(peer, topic, batch(), version=3)


@question
def a_batch_that_is_too_large(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch(value=b"x" * 1_048_588))


@question
def a_base_offset_other_than_0(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch(base_offset=5))


@question
def two_batches_for_one_partition(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch() + batch())


@question
def no_batch(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, b"")


@question
def half_a_batch(peer: Peer, topic: str) -> Answer:
    return [produced(peer, topic, batch()[:size_bytes]) for size_bytes in (10, 40, 65)]


@question
def a_transactional_batch_without_a_transactional_id(peer: Peer, topic: str) -> Answer:
    records = batch(producer_id=7_000, epoch=0, sequence=0, is_transactional=True)
    return produced(peer, topic, records)


# -- producers ------------------------------------------------------------------------------------------------------
def sent(peer: Peer, topic: str, *sequences: int, count: int = 1, epoch: int = 0) -> Answer:
    batches = [batch(count, producer_id=7_001, epoch=epoch, sequence=sequence) for sequence in sequences]
    return produced(peer, topic, *batches)


@question
def sequences_in_order(peer: Peer, topic: str) -> Answer:
    return sent(peer, topic, 0, 3, 6, count=3)


@question
def a_gap_in_the_sequence(peer: Peer, topic: str) -> Answer:
    return sent(peer, topic, 0, 1, 3, 2)


@question
def a_first_sequence_other_than_0(peer: Peer, topic: str) -> Answer:
    return sent(peer, topic, 5, 6)


@question
def duplicates_of_the_last_five_batches_and_of_an_older_one(peer: Peer, topic: str) -> Answer:
    return sent(peer, topic, *range(6), 5, 1, 0, 6)


@question
def a_part_of_a_former_batch(peer: Peer, topic: str) -> Answer:
    return sent(peer, topic, 0, count=3), sent(peer, topic, 0, count=2), sent(peer, topic, 1, count=2)


@question
def a_higher_epoch_begins_with_0(peer: Peer, topic: str) -> Answer:
    return [
        sent(peer, topic, 0, 1),
        sent(peer, topic, 2, epoch=1),
        sent(peer, topic, 0, epoch=1),
        sent(peer, topic, 2, epoch=0),
        sent(peer, topic, 1, epoch=1),
    ]


@question
def sequences_wrap(peer: Peer, topic: str) -> Answer:
    return sent(peer, topic, SEQUENCE_MAX - 1, SEQUENCE_MAX, 0, 1), sent(peer, topic, SEQUENCE_MAX)


@question
def a_batch_across_the_largest_sequence(peer: Peer, topic: str) -> Answer:
    return sent(peer, topic, SEQUENCE_MAX - 1, count=4), sent(peer, topic, 2)


@question
def a_producer_id_without_a_sequence(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch(producer_id=7_002, epoch=0))


@question
def a_producer_id_without_an_epoch(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch(producer_id=7_003, sequence=0))


@question
def a_sequence_without_a_producer_id(peer: Peer, topic: str) -> Answer:
    return produced(peer, topic, batch(sequence=3))


@question
def a_producer_id_for_nobody(peer: Peer, topic: str) -> Answer:
    """The ids themselves are each broker's own."""
    asked = (("", -1, -1), (None, -1, -1), (None, 5, -1), (None, -1, 5), (None, 5, 5))
    answers: list[tuple[str, bool, int]] = []
    for transactional_id, producer_id, epoch in asked:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=1_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        while name_of((answer := peer.ask(request, 4)).error_code) == "COORDINATOR_LOAD_IN_PROGRESS":
            pass  # Kafka fetches its first block of ids only then
        answers.append((name_of(answer.error_code), answer.producer_id >= 0, answer.producer_epoch))
    return answers


# -- reading --------------------------------------------------------------------------------------------------------
@question
def fetch_inside_and_outside_of_the_log(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch(3))
    return [fetched(peer, topic, offset) for offset in (0, 1, 3, 4, -1)]


@question
def fetch_of_what_does_not_exist(peer: Peer, topic: str) -> Answer:
    return fetched(peer, f"{topic}-unknown", 0), fetched(peer, topic, 0, index=1), fetched(peer, topic, 0, index=-1)


@question
def fetch_with_another_leader_epoch(peer: Peer, topic: str) -> Answer:
    return fetched(peer, topic, 0, epoch=1_000_000)


@question
def fetch_of_one_byte_gets_a_whole_batch(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch(3), batch(2))
    return fetched(peer, topic, 0, max_bytes=1)


@question
def zstd_before_fetch_version_10(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch(3, codec=Codec.ZSTD))
    return [fetched(peer, topic, 0, version=version) for version in (4, 9)]


@question
def fetches_of_a_topic_that_is_compressed_with_zstd(peer: Peer, topic: str) -> Answer:
    """With nothing in it, with a batch, and out of its range; before the version that knows zstd, and since."""
    name = f"{topic}-z"
    peer.create_topic(name, compression_type="zstd")
    empty = [fetched(peer, name, 0, version=version) for version in (4, 9, 10)]
    produced(peer, name, batch(3))
    return empty, [fetched(peer, name, offset, version=version)[:2] for version in (4, 9, 10) for offset in (0, 9)]


@question
def zstd_since_fetch_version_10(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch(3, codec=Codec.ZSTD))
    return fetched(peer, topic, 0, version=10)


@question
def offsets_by_special_timestamps(peer: Peer, topic: str) -> Answer:
    empty = [listed(peer, topic, timestamp) for timestamp in (-1, -2, -3, -4, -5, 0)]
    produced(peer, topic, batch(3))
    return empty, [listed(peer, topic, timestamp) for timestamp in (-1, -2, -3, -4, -5)]


@question
def offsets_by_time(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch(3), batch(2))
    at = 1_700_000_000_000
    return [listed(peer, topic, timestamp) for timestamp in (0, at, at + 1, at + 2, at + 3)]


@question
def offsets_by_timestamps_that_mean_nothing(peer: Peer, topic: str) -> Answer:
    return [
        listed(peer, topic, -6),
        listed(peer, topic, -100),
        listed(peer, topic, -3, version=6),
        listed(peer, topic, -4, version=7),
        listed(peer, topic, -5, version=8),
    ]


@question
def offsets_of_a_partition_named_twice(peer: Peer, topic: str) -> Answer:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted, wanted])])
    [answer] = peer.ask(request, 9).topics
    return [name_of(partition.error_code) for partition in answer.partitions]


@question
def offsets_of_what_does_not_exist(peer: Peer, topic: str) -> Answer:
    return listed(peer, f"{topic}-unknown", -1), listed(peer, topic, -1, index=1), listed(peer, topic, -1, epoch=9_999)


@question
def ends_of_leader_epochs(peer: Peer, topic: str) -> Answer:
    """For the present epoch, a later one, an unknown topic and partition, and a caller who knows of a later one."""
    produced(peer, topic, batch(3))
    asked = (
        (topic, 0, -1, 0),
        (topic, 0, -1, 9_999),
        (f"{topic}-unknown", 0, -1, 0),
        (topic, 1, -1, 0),
        (topic, 0, 9_999, 0),
    )
    answers: list[tuple[str, int, int]] = []
    for name, index, current, epoch in asked:
        wanted = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=[wanted])])
        [answer] = peer.ask(request, 4).topics[0].partitions
        answers.append((name_of(answer.error_code), answer.leader_epoch, answer.end_offset))
    return answers


@question
def records_deleted_up_to(peer: Peer, topic: str) -> Answer:
    """Out of range, then a valid one, then what is before it, then all; partitions that do not exist."""
    produced(peer, topic, batch(3), batch(3))
    asked = [(topic, 0, 7), (topic, 0, -2), (topic, 0, 3), (topic, 0, 1), (topic, 0, -1), (topic, 1, 0)]
    answers: list[tuple[str, int]] = []
    for name, index, offset in [*asked, (f"{topic}-unknown", 0, 0)]:
        wanted = DeleteRecordsPartition(partition_index=index, offset=offset)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[wanted])], timeout_ms=5_000)
        [answer] = peer.ask(request, 2).topics[0].partitions
        answers.append((name_of(answer.error_code), answer.low_watermark))
    return answers, fetched(peer, topic, 0), listed(peer, topic, -2)


@question
def the_largest_timestamp_of_deleted_records(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch(3))
    wanted = DeleteRecordsPartition(partition_index=0, offset=3)
    peer.ask(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=5_000), 2)
    return listed(peer, topic, -3)
