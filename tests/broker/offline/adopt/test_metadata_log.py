"""`__cluster_metadata-0` read: checkpoint and log together, what a crash left, and gaps and damage that are refused."""

import pytest

from odradek.broker.offline.adopt.kafka_metadata import KafkaMetadata
from odradek.broker.offline.adopt.metadata_log import DIRECTORY, UnreadableMetadata, read_metadata_log
from odradek.broker.offline.adopt.metadata_records import ProducerIdsRecord, RemoveTopicRecord
from odradek.protocol.batches.batch import HEADER_SIZE
from tests.broker.offline.adopt.kafka_files import (
    DATA,
    KafkaDirectory,
    id_of,
    metadata_batch,
    metadata_value,
    topic_records,
)

LOG = f"{0:020d}.log"


def read(directory: KafkaDirectory) -> KafkaMetadata:
    return read_metadata_log(directory.disk, f"{DATA}/{DIRECTORY}")


def names(directory: KafkaDirectory) -> list[str]:
    return sorted(topic.name for topic in read(directory).topics.values())


def checkpoint(offset: int, epoch: int = 1) -> str:
    return f"{offset:020d}-{epoch:010d}.checkpoint"


def test_the_records_of_all_segments_count_and_nothing_is_changed() -> None:
    directory = KafkaDirectory()
    directory.metadata(*topic_records("orders", 2))  # offsets 0 to 3
    directory.metadata(*topic_records("payments"), name=f"{4:020d}.log", base_offset=4)
    directory.write(f"{DIRECTORY}/quorum-state", b"{}")
    before = directory.files()
    assert names(directory) == ["orders", "payments"]
    assert directory.files() == before


def test_the_newest_checkpoint_stands_for_what_is_before_it() -> None:
    directory = KafkaDirectory()
    directory.metadata(*topic_records("first"), name=checkpoint(3))
    directory.metadata(*topic_records("newest"), name=checkpoint(10))
    directory.metadata(*topic_records("old", 6), name=f"{0:020d}.log")  # offsets 0 to 7
    directory.metadata(*topic_records("behind", 2), name=f"{8:020d}.log", base_offset=8)  # the topic itself is at 9
    assert names(directory) == ["newest"]
    directory.metadata(*topic_records("later"), name=f"{12:020d}.log", base_offset=12)
    assert names(directory) == ["later", "newest"]


def test_a_checkpoint_needs_no_log_and_a_log_from_its_beginning_on_no_checkpoint() -> None:
    directory = KafkaDirectory()
    directory.metadata(*topic_records("orders"), name=checkpoint(42))
    directory.write(f"{DIRECTORY}/{checkpoint(50)}.part", b"never finished")
    assert names(directory) == ["orders"]
    empty = KafkaDirectory()
    empty.disk.make_dir(f"{DATA}/{DIRECTORY}")
    assert names(empty) == []


@pytest.mark.parametrize("base_offset", [1, 4])
def test_a_part_that_is_missing_is_refused(base_offset: int) -> None:
    directory = KafkaDirectory()
    directory.metadata(*topic_records("orders"), name=f"{base_offset:020d}.log", base_offset=base_offset)
    with pytest.raises(
        UnreadableMetadata, match=rf"offset {base_offset} comes where 0 is expected, so a part is missi"
    ):
        read(directory)
    directory.metadata(*topic_records("payments"), name=checkpoint(base_offset))
    assert names(directory) == ["orders", "payments"]


def test_a_segment_that_is_missing_is_refused() -> None:
    directory = KafkaDirectory()
    directory.metadata(*topic_records("orders"))
    directory.metadata(*topic_records("payments"), name=f"{5:020d}.log", base_offset=5)
    with pytest.raises(UnreadableMetadata, match=r"0005\.log: offset 5 comes where 3 is expected"):
        read(directory)


def test_half_a_batch_at_the_end_is_what_a_killed_process_left_at_every_byte() -> None:
    directory = KafkaDirectory()
    directory.metadata(*topic_records("orders"))
    whole = directory.read(f"{DIRECTORY}/{LOG}")
    last = metadata_batch(3, [metadata_value(RemoveTopicRecord(topic_id=id_of("orders")))])
    for size in range(len(last)):
        directory.write(f"{DIRECTORY}/{LOG}", whole + last[:size])
        assert names(directory) == ["orders"]
        assert read(directory).torn_bytes == size
    directory.write(f"{DIRECTORY}/{LOG}", whole + last)
    assert names(directory) == []
    directory.write(f"{DIRECTORY}/{LOG}", whole + bytes(300))
    assert names(directory) == ["orders"], "room that was made and never used"


def test_damage_before_the_end_is_refused() -> None:
    directory = KafkaDirectory()
    directory.metadata(*topic_records("orders", 3))
    data = bytearray(directory.read(f"{DIRECTORY}/{LOG}"))
    data[HEADER_SIZE + 70] ^= 1
    directory.write(f"{DIRECTORY}/{LOG}", bytes(data))
    with pytest.raises(UnreadableMetadata, match=rf"{DIRECTORY}/{LOG} is damaged at position \d+: the batch does not"):
        read(directory)


def test_a_torn_file_that_is_not_the_last_segment_is_refused() -> None:
    directory = KafkaDirectory()
    for name, base_offset in ((LOG, 0), (f"{3:020d}.log", 3)):
        directory.metadata(*topic_records(f"topic-{base_offset}"), name=name, base_offset=base_offset)
    directory.write(f"{DIRECTORY}/{LOG}", directory.read(f"{DIRECTORY}/{LOG}")[:-1])
    with pytest.raises(UnreadableMetadata, match=r"0000\.log is damaged at position"):
        read(directory)
    torn = KafkaDirectory()
    torn.metadata(*topic_records("orders"), name=checkpoint(3))
    path = f"{DIRECTORY}/{checkpoint(3)}"
    torn.write(path, torn.read(path)[:-1])
    with pytest.raises(UnreadableMetadata, match=r"0001\.checkpoint is damaged at position"):
        read(torn)


@pytest.mark.parametrize("value", [b"\x01\x02\x07", b""])
def test_a_record_that_is_not_understood_is_refused(value: bytes) -> None:
    directory = KafkaDirectory()
    directory.metadata()
    data = directory.read(f"{DIRECTORY}/{LOG}")
    block = metadata_value(ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000))
    directory.write(f"{DIRECTORY}/{LOG}", data + metadata_batch(1, [block, value]))
    with pytest.raises(
        UnreadableMetadata, match=r"the record with offset 2 cannot be read: .*metadata record|TopicRec"
    ):
        read(directory)
