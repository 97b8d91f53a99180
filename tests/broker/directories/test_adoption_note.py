"""What an adoption notes of a directory, by which the first start knows whether somebody has changed it since.

Changes of each kind that a Kafka makes are refused, and another adoption takes the place of the unused one.
"""

from collections.abc import Callable

import pytest

from odradek.broker.directories.adoption_note import FILE_NAME
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.offline.adopt.adoption import adopt
from odradek.broker.offline.adopt.claim import DirectoryRefused
from odradek.broker.offline.adopt.metadata_log import DIRECTORY
from tests.broker.log.logs import read_all
from tests.broker.offline.adopt.kafka_files import DATA, KafkaDirectory, batch, topic_records
from tests.broker.servers import broker_on, started

NOTE = f"{DATA}/{FILE_NAME}"


def adopted(*, is_clean: bool = True) -> KafkaDirectory:
    directory = KafkaDirectory(is_clean=is_clean)
    directory.partition("orders-0", batch(0, 3, epoch=7), epochs=[(7, 0)])
    directory.metadata(*topic_records("orders"))
    adopt(directory.disk, DATA)
    return directory


def add(directory: KafkaDirectory, name: str, more: bytes) -> None:
    path = f"{DATA}/{name}"
    content = directory.disk.read_whole(path) if directory.disk.exists(path) else b""
    directory.disk.write_whole(path, content + more)


def of_metadata(directory: KafkaDirectory) -> None:
    name = next(name for name in directory.disk.list_dir(f"{DATA}/{DIRECTORY}") if name.endswith(".log"))
    add(directory, f"{DIRECTORY}/{name}", b"x" * 30)


def new_topic(directory: KafkaDirectory) -> None:
    directory.disk.make_dir(f"{DATA}/fresh-0")


def topic_gone(directory: KafkaDirectory) -> None:
    directory.disk.remove_tree(f"{DATA}/orders-0")


CHANGES: dict[str, tuple[Callable[[KafkaDirectory], None], str]] = {
    "Kafka was started, and nothing else": (of_metadata, DIRECTORY),
    "records": (lambda it: add(it, f"orders-0/{0:020d}.log", batch(3, epoch=8)), "orders-0"),
    "an epoch": (lambda it: add(it, "orders-0/leader-epoch-checkpoint", b"8 3\n"), "orders-0"),
    "a topic": (new_topic, "fresh-0"),
    "no topic": (topic_gone, "orders-0"),
    "DeleteRecords": (lambda it: add(it, "log-start-offset-checkpoint", b"0\n0\n"), "log-start-offset-checkpoint"),
}


@pytest.mark.parametrize("how", list(CHANGES))
async def test_what_has_changed_since_is_refused_and_adopted_again(how: str) -> None:
    directory = adopted()
    change, named = CHANGES[how]
    change(directory)
    before = directory.files()
    with pytest.raises(ForeignDirectory) as caught:
        await broker_on(directory.disk, data_dir=DATA, node_id=1).start()
    for words in ("has changed since it was adopted", named, f"run `odradek adopt {DATA}` again"):
        assert words in str(caught.value)
    assert directory.files() == before, "nothing was changed"
    adopt(directory.disk, DATA)
    async with started(broker_on(directory.disk, data_dir=DATA, node_id=1)):
        assert not directory.disk.exists(NOTE)


async def test_the_first_start_makes_the_directory_ours() -> None:
    directory = adopted()
    assert directory.disk.exists(NOTE)
    for _ in range(2):
        async with started(broker_on(directory.disk, data_dir=DATA, node_id=1)) as broker:
            assert not directory.disk.exists(NOTE)
            assert read_all(broker.context.partitions.leader("orders", 0).log)
    with pytest.raises(DirectoryRefused, match="is ours already"):
        adopt(directory.disk, DATA)


async def test_an_adoption_that_was_not_used_may_be_repeated() -> None:
    directory = adopted(is_clean=False)
    adopt(directory.disk, DATA)
    async with started(broker_on(directory.disk, data_dir=DATA, node_id=1)) as broker:
        assert broker.context.partitions.leader("orders", 0).log.log_end_offset == 3


async def test_a_note_that_cannot_be_read_is_refused() -> None:
    directory = adopted()
    directory.disk.write_whole(NOTE, b"\xff\x00")
    with pytest.raises(ForeignDirectory, match=r"cannot be read .* run `odradek adopt data` again"):
        await broker_on(directory.disk, data_dir=DATA, node_id=1).start()


async def test_an_adoption_that_dies_between_note_and_metadata_is_no_adoption() -> None:
    directory = adopted()
    directory.disk.remove(f"{DATA}/metadata.log")
    with pytest.raises(ForeignDirectory, match="odradek adopt"):
        await broker_on(directory.disk, data_dir=DATA, node_id=1).start()
    adopt(directory.disk, DATA)
    async with started(broker_on(directory.disk, data_dir=DATA, node_id=1)) as broker:
        assert broker.context.partitions.leader("orders", 0).log.log_end_offset == 3
