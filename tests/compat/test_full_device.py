"""A device that is really full: a small ext4 on a loop device, which root can mount. Nothing acknowledged is lost.

Producers write until the device has no room, through rolls, with room reserved ahead. They are told so, reading goes
on, and once somebody makes room appends go on by themselves, without loss or gap. So they do after a SIGKILL on the
full device, and after a clean stop on it. In the end Apache Kafka's own tool finds nothing wrong.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from processes.dump_log_segments import dump_log_segments
from processes.odradek_broker import OdradekBroker

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

DEVICE_BYTES = 40 * 1024**2
FILLER_BYTES = 8 * 1024**2
TOPIC = "ledger"
VALUE = os.urandom(9_000)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("mounting a loop device takes root and mkfs.ext4")
    image, place = tmp_path / "device.ext4", tmp_path / "mounted"
    with image.open("wb") as file:
        file.truncate(DEVICE_BYTES)
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    mount = subprocess.run(["mount", "-o", "loop", str(image), str(place)], capture_output=True, text=True, check=False)
    if mount.returncode:
        pytest.skip(f"no loop devices here: {mount.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def written_until_full(broker: OdradekBroker, acknowledged: dict[int, int], numbers: Iterator[int]) -> str:
    """Sends one record after another and notes offset and number of each acknowledged; returns the error at the end."""
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, acks="all", retries=0, enable_idempotence=False, max_block_ms=5_000
    )
    try:
        for _ in range(DEVICE_BYTES // len(VALUE)):
            number = next(numbers)
            try:
                told = producer.send(TOPIC, number.to_bytes(8, "big") + VALUE).get(timeout=20)
            except KafkaError as error:
                return type(error).__name__
            assert told.offset not in acknowledged
            acknowledged[told.offset] = number
    finally:
        producer.close()
    raise AssertionError("the device took more than it holds")


def read_back(broker: OdradekBroker) -> dict[int, int]:
    """The number of each record by its offset."""
    found: dict[int, int] = {}
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest")
    try:
        partition = TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        while len(found) < end:
            polled = consumer.poll(timeout_ms=5_000)
            assert polled, f"{len(found)} of {end} records"
            for record in polled[partition]:
                assert record.value is not None
                assert record.value[8:] == VALUE
                assert record.offset == len(found), "without a gap"
                found[record.offset] = int.from_bytes(record.value[:8], "big")
    finally:
        consumer.close()
    return found


def all_there(broker: OdradekBroker, acknowledged: dict[int, int]) -> bool:
    found = read_back(broker)
    return {offset: found.get(offset) for offset in acknowledged} == acknowledged


@pytest.mark.only_in_compat
@pytest.mark.java
def test_a_full_device_loses_nothing_and_goes_on_when_there_is_room(mounted: Path) -> None:
    fillers = [mounted / f"filler-{number}" for number in range(3)]
    for filler in fillers:
        filler.write_bytes(bytes(FILLER_BYTES))
    acknowledged: dict[int, int] = {}
    numbers = iter(range(1_000_000))
    with OdradekBroker(mounted / "data", "--set", "log.segment.bytes=2097152") as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, 1, 1)])
        assert written_until_full(broker, acknowledged, numbers) == "KafkaStorageError"
        first_count = len(acknowledged)
        assert first_count > 200
        assert all_there(broker, acknowledged), "reading goes on"

        fillers[0].unlink()
        assert written_until_full(broker, acknowledged, numbers) == "KafkaStorageError"
        assert len(acknowledged) > first_count + 200, "appends went on by themselves"
        assert all_there(broker, acknowledged)

        broker.kill()
        fillers[1].unlink()  # a start writes a little: without any room it is refused, with a sentence that says so
        broker.start()
        assert all_there(broker, acknowledged), "killed on the full device"
        assert written_until_full(broker, acknowledged, numbers) == "KafkaStorageError"

        broker.terminate()
        fillers[2].unlink()
        broker.start()
        assert all_there(broker, acknowledged), "stopped on the full device"
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all")
        offset = producer.send(TOPIC, next(numbers).to_bytes(8, "big") + VALUE).get(timeout=20).offset
        producer.close()
        assert offset >= len(acknowledged)
        broker.terminate()
        dump = dump_log_segments(mounted / "data" / f"{TOPIC}-0")
        assert dump.findings == []
        assert dump.record_count == offset + 1
