"""A data directory of Apache Kafka 4.3.1 is adopted, served, read back equal, appended to, and dumped by Kafka's tool.

Once Kafka was stopped as it should be, once it was killed. That an adoption changes no file of Kafka's is shown by
their checksums. An idempotent producer that wrote to Kafka goes on with the broker that took its place.
"""

import hashlib
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from processes.apache_kafka import ApacheKafka, run_tool
from processes.dump_log_segments import MAIN_CLASS, SUFFIXES, Dump, DumpedBatch, dump_log_segments, read_dump
from processes.odradek_broker import REPOSITORY, OdradekBroker, OdradekFailed
from tests.compat.adoptable import (
    CODECS,
    CONFIGS,
    PARTITIONS,
    PATIENCE_S,
    PROPERTIES,
    Load,
    Place,
    Sending,
    Written,
    topic_ids,
    write,
)

pytestmark = [
    pytest.mark.compat,
    pytest.mark.only_in_compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

NOT_SERVED = ["__cluster_metadata-0"]
COORDINATED = ["__consumer_offsets-0", "__transaction_state-0"]
"""The partitions of coordinators, of which Kafka was told to make one each. They are served."""
NODE_ID = 1
APPENDED_EACH = 300
EVERY_PLACE = [(topic, index) for topic, count in PARTITIONS.items() for index in range(count)]


@dataclass(slots=True)
class Story:
    """A directory from Kafka's end to that of the broker which adopted it. Each test looks at another part of it."""

    load: Load
    data_dir: Path
    while_running: list[str] = field(default_factory=list[str])
    """What was said to an adoption, and to a broker, of a directory that Kafka held."""
    before_adoption: str = ""
    dry_run: str = ""
    adoption: str = ""
    changed: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By step: files that were changed, made or removed by it."""
    topic_ids: dict[str, str] = field(default_factory=dict[str, str])
    configs: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    by_kafka_python: dict[Place, Written] = field(default_factory=dict[Place, Written])
    by_librdkafka: dict[Place, Written] = field(default_factory=dict[Place, Written])
    committed: dict[Place, Written] = field(default_factory=dict[Place, Written])
    appended: Load = field(default_factory=Load)
    of_survivor: list[Place] = field(default_factory=list[Place])
    """What one and the same producer wrote to Kafka, and then to us."""
    after_appending: dict[Place, Written] = field(default_factory=dict[Place, Written])
    log: str = ""


@pytest.fixture(scope="module", params=["stopped", "killed"])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp(request.param)
    with ApacheKafka(directory=directory, properties=PROPERTIES) as kafka:
        load = write(kafka)
        survivor = Sending(kafka.bootstrap, load, {"enable.idempotence": True, "reconnect.backoff.max.ms": 200})
        survivor.send("codecs", 0, Written(b"before", b"survivor"))
        survivor.flush()
        read_group(kafka)
        story = Story(load, kafka.data_directory, of_survivor=[*survivor.newest])
        story.while_running = [adopt(kafka.data_directory, "--dry-run"), adopt(kafka.data_directory)]
        if request.param == "killed":
            kafka.kill()
        else:
            kafka.stop()
        load.open_producers.clear()
        tell(story, survivor, kafka.port)
        yield story


def tell(story: Story, survivor: Sending, port: int) -> None:
    """Adopts, serves, reads, appends and reads again."""
    story.before_adoption = refusal(story.data_dir)
    before = checksums(story.data_dir)
    story.dry_run = adopt(story.data_dir, "--dry-run")
    story.changed["dry run"] = difference(before, checksums(story.data_dir))
    story.adoption = adopt(story.data_dir, "--node-id", str(NODE_ID))
    story.changed["adoption"] = difference(before, checksums(story.data_dir))
    broker = OdradekBroker(story.data_dir, "--node-id", str(NODE_ID))
    broker.port = port
    with broker:
        story.topic_ids = topic_ids(broker.bootstrap)
        story.configs = configs(broker)
        story.by_kafka_python = read_by_kafka_python(broker)
        story.by_librdkafka = read_by_librdkafka(broker, "read_uncommitted")
        story.committed = read_by_librdkafka(broker, "read_committed")
        append(broker, story, survivor)
        story.after_appending = read_by_kafka_python(broker)
        story.log = broker.output
    after = checksums(story.data_dir)
    story.changed["topics not served"] = [
        name for name in difference(before, after) if name.startswith(tuple(NOT_SERVED))
    ]


def refusal(data_dir: Path) -> str:
    """What a broker says that does not start; nothing if it does."""
    broker = OdradekBroker(data_dir, "--node-id", str(NODE_ID))
    try:
        broker.start()
    except OdradekFailed as error:
        return str(error)
    finally:
        broker.close()
    return ""


def adopt(data_dir: Path, *options: str) -> str:
    """What the command said, and its exit code."""
    command = [sys.executable, "-m", "odradek", "adopt", str(data_dir), *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)
    return f"{done.stdout}{done.stderr}[exit code {done.returncode}]"


def checksums(data_dir: Path) -> dict[str, str]:
    return {
        path.relative_to(data_dir).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(data_dir.rglob("*"))
        if path.is_file()
    }


def difference(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def read_group(kafka: ApacheKafka) -> None:
    """A group that commits an offset, so that there is an internal topic for it."""
    consumer = KafkaConsumer(
        "codecs", bootstrap_servers=kafka.bootstrap, group_id="readers", auto_offset_reset="earliest"
    )
    assert consumer.poll(timeout_ms=10_000, max_records=10)
    consumer.commit()
    consumer.close()


def configs(broker: OdradekBroker) -> dict[str, dict[str, str]]:
    """What is set for each topic itself."""
    command = [sys.executable, "-m", "odradek", "topics", "describe", "--json", "-b", broker.bootstrap, *PARTITIONS]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, timeout=60)
    return {topic["name"]: topic["configs"] for topic in json.loads(done.stdout)}


def read_by_kafka_python(broker: OdradekBroker) -> dict[Place, Written]:
    found: dict[Place, Written] = {}
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest")
    try:
        partitions = [KafkaPythonPartition(topic, index) for topic, index in EVERY_PLACE]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any((consumer.position(partition) or 0) < end for partition, end in ends.items()):
            polled = consumer.poll(timeout_ms=10_000, max_records=10_000)
            assert polled, "no records, and the ends are not reached"
            for records in polled.values():
                for record in records:
                    assert record.value is not None
                    headers = tuple((name, value or b"") for name, value in record.headers)
                    found[record.topic, record.partition, record.offset] = Written(
                        record.key or b"", record.value, headers
                    )
    finally:
        consumer.close()
    return found


def read_by_librdkafka(broker: OdradekBroker, isolation_level: str) -> dict[Place, Written]:
    found: dict[Place, Written] = {}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation_level,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for topic, index in EVERY_PLACE])
    ended: set[tuple[str, int]] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(ended) < len(EVERY_PLACE):
        assert time.monotonic() < deadline, f"only the ends of {ended} are reached"
        for message in consumer.consume(1_000, 0.2):  # as many, or those that came in that time
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(place_of(message)[:2])
            else:
                found[place_of(message)] = written_of(message)
    consumer.close()
    return found


def place_of(message: Message) -> Place:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset


def written_of(message: Message) -> Written:
    key, value = message.key(), message.value()
    assert key is not None
    assert value is not None
    headers: Any = message.headers() or []
    return Written(bytes(key), bytes(value), tuple((name, header) for name, header in headers))


def append(broker: OdradekBroker, story: Story, survivor: Sending) -> None:
    """A new idempotent producer writes to every partition, and one that Kafka knew goes on."""
    rng = random.Random(7)
    with Sending(broker.bootstrap, story.appended, {"enable.idempotence": True, "compression.type": "lz4"}) as sending:
        for number in range(APPENDED_EACH * len(EVERY_PLACE)):
            topic, index = EVERY_PLACE[number % len(EVERY_PLACE)]
            sending.send(topic, index, Written(b"new %d" % number, rng.randbytes(300) + b"." * 300))
    survivor.load = story.appended
    survivor.send("codecs", 0, Written(b"after", b"survivor"))
    survivor.flush()
    story.of_survivor = sorted(survivor.newest)


# -- before -----------------------------------------------------------------------------------------------------------


def test_what_kafka_wrote_is_what_it_should_be(story: Story) -> None:
    """Or the tests below would show nothing."""
    segments = sorted((story.data_dir / "codecs-0").glob("*.log"))
    assert len(segments) >= 5
    assert len({place[:2] for place in story.load.records}) == len(EVERY_PLACE)
    assert story.load.aborted
    assert story.load.undecided
    assert (story.data_dir / "ledger-0" / f"{0:020d}.txnindex").stat().st_size > 0


def test_a_directory_that_kafka_runs_on_is_refused(story: Story) -> None:
    for said in story.while_running:
        assert said == (
            f"Error: {story.data_dir} cannot be used: another running broker holds the lock file; stop the broker that "
            "runs on it, and try again\n[exit code 1]"
        )


def test_a_directory_that_is_not_adopted_is_refused_by_the_broker(story: Story) -> None:
    assert f"run `odradek adopt {story.data_dir}`" in story.before_adoption
    assert not list(story.data_dir.glob("*-stray"))


# -- the adoption -----------------------------------------------------------------------------------------------------


def test_no_file_of_kafkas_is_changed(story: Story) -> None:
    made = {"metadata.log", "metadata.revision", ".odradek-adopted", ".lock"}
    assert "metadata.log" in story.changed["adoption"]
    assert set(story.changed["adoption"]) <= made
    assert set(story.changed["dry run"]) <= {".lock"}
    assert story.changed["topics not served"] == []


def test_everything_is_told(story: Story) -> None:
    for said in (story.dry_run, story.adoption):
        assert re.search(r"^  codecs: 1 partition, \d+ segments, \d+ bytes; retention\.ms=-1; segm", said, re.MULTILINE)
        assert re.search(r"^  ledger: 3 partitions, .*; index\.interval\.bytes=1024; segment\.byt", said, re.MULTILINE)
        assert re.search(r"^  table: 2 partitions, .*; cleanup\.policy=compact; max\.message\.by", said, re.MULTILINE)
        for name in ("__consumer_offsets", "__transaction_state"):
            assert re.search(rf"^  {name}: 1 partition, .*; cleanup\.policy=compact", said, re.MULTILINE)
        assert "kept where they are, and not served yet:\n" + "".join(f"  {name}\n" for name in NOT_SERVED) in said
        assert "not taken" not in said
    assert story.dry_run.endswith("Nothing was changed. Without --dry-run, 5 topics would be adopted.\n[exit code 0]")
    assert story.adoption.endswith(f"odradek serve --data-dir {story.data_dir} --node-id 1\n[exit code 0]")


def test_topics_keep_their_ids_and_options(story: Story) -> None:
    assert story.topic_ids == story.load.topic_ids
    assert story.configs == CONFIGS


# -- reading and writing ----------------------------------------------------------------------------------------------


def test_everything_is_read_back_equal(story: Story) -> None:
    """Of the compacted topic, what was compacted away is missing, and never the newest record of a key."""
    written = story.load.records
    assert story.by_kafka_python == story.by_librdkafka
    assert {place: record for place, record in story.by_kafka_python.items() if place[0] != "table"} == {
        place: record for place, record in written.items() if place[0] != "table"
    }
    table = {place: record for place, record in story.by_kafka_python.items() if place[0] == "table"}
    assert table == {place: written[place] for place in table}
    assert table.keys() >= set(story.load.newest_of_the_table.values())
    assert len(table) < sum(place[0] == "table" for place in written), "Kafka had compacted"


def test_readers_of_committed_records_get_neither_aborted_nor_undecided_ones(story: Story) -> None:
    hidden = story.load.aborted | story.load.undecided
    assert story.committed == {place: record for place, record in story.by_librdkafka.items() if place not in hidden}
    assert hidden <= story.by_librdkafka.keys()


def test_new_records_follow_those_of_kafka(story: Story) -> None:
    assert len(story.appended.records) == APPENDED_EACH * len(EVERY_PLACE) + 1
    assert story.after_appending.items() >= story.by_kafka_python.items()
    assert story.after_appending.items() >= story.appended.records.items()
    for topic, index in EVERY_PLACE:
        before = [place[2] for place in story.by_kafka_python if place[:2] == (topic, index)]
        after = [place[2] for place in story.appended.records if place[:2] == (topic, index)]
        assert max(before) < min(after)


def test_an_idempotent_producer_of_kafkas_goes_on(story: Story) -> None:
    assert [story.after_appending[place].key for place in story.of_survivor] == [b"before", b"after"]


# -- afterwards -------------------------------------------------------------------------------------------------------


def test_the_broker_found_nothing_strange(story: Story) -> None:
    lines = [line for line in story.log.splitlines() if re.search(r" (WARNING|ERROR) ", line)]
    assert lines == []
    assert sorted(path.name for path in story.data_dir.iterdir() if path.is_dir()) == sorted(
        [*NOT_SERVED, *COORDINATED, *(f"{topic}-{index}" for topic, index in EVERY_PLACE)]
    )


@pytest.mark.parametrize(("topic", "index"), EVERY_PLACE)
def test_kafkas_own_tool_finds_nothing(story: Story, topic: str, index: int) -> None:
    dump = dumped(story.data_dir / f"{topic}-{index}", is_compacted=topic == "table")
    assert dump.findings == []
    ours = {place[2] for place in story.appended.records if place[:2] == (topic, index)}
    older, newer = split_at(dump, min(ours))
    assert len({batch.leader_epoch for batch in newer}) == 1
    assert newer[0].leader_epoch > max(batch.leader_epoch for batch in older)
    known = {batch.producer_id for batch in older}
    given_out = {batch.producer_id for batch in newer if batch.codec == "lz4"}
    assert given_out
    assert max(known) < min(given_out), "no producer id is given out twice"
    if topic == "codecs":
        assert {batch.codec for batch in older} == set(CODECS)
        (survivor,) = {batch.producer_id for batch in newer} - given_out
        assert survivor in known


def dumped(directory: Path, *, is_compacted: bool) -> Dump:
    """What DumpLogSegments says. It takes the gaps of a compacted log for mistakes; these are left out."""
    if not is_compacted:
        return dump_log_segments(directory)
    files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    output = run_tool(MAIN_CLASS, "--deep-iteration", "--files", ",".join(map(str, files)), check=False)
    dump = read_dump(output, expects_gaps=True)
    dump.findings = [finding for finding in dump.findings if not finding.startswith("Non-consecutive offsets in ")]
    return dump


def split_at(dump: Dump, offset: int) -> tuple[list[DumpedBatch], list[DumpedBatch]]:
    return (
        [batch for batch in dump.batches if batch.base_offset < offset],
        [batch for batch in dump.batches if batch.base_offset >= offset],
    )
