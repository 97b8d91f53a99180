"""The commands of `odradek` as processes, against one broker of ours, three, and Apache Kafka: what they print, and how
they end. Records go in by `produce`, and out by `consume` and by kafka-python."""

import json
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from processes.apache_kafka import ApacheKafka
from tests.compat.clusters import EVERY_KIND, USER, broker_count, cluster, eventually
from tests.compat.commands import Commands

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]


@pytest.fixture(scope="module", params=EVERY_KIND)
def odradek(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Commands]:
    with cluster(request.param, tmp_path_factory.mktemp("commands")) as running:
        yield Commands(running)


# ------------------------------------------------------------------------------------------------------- security
def test_credentials_come_from_a_file_in_kafkas_own_form(odradek: Commands, tmp_path: Path) -> None:
    if not isinstance(odradek.running, ApacheKafka):
        pytest.skip("our broker has no SASL yet")
    secure = f"127.0.0.1:{odradek.running.ports['SASL_PLAINTEXT']}"
    file = tmp_path / "client.properties"
    _, user, password = USER
    for given, code in ((password, 0), ("wrong", 1)):
        file.write_text(
            f"bootstrap.servers={secure}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
            f'  username="{user}" password="{given}";\nlinger.ms=1\n'
        )
        for command in (["topics", "list"], ["produce", "nowhere"]):  # of which the latter sends nothing
            odradek.run(*command, "--config", str(file), "-b", secure, code=code)
            assert len(odradek.said.splitlines()) == code
            assert ("SCRAM-SHA-256 as user 'alice'" in odradek.said) == bool(code)


# --------------------------------------------------------------------------------------------------------- topics
@pytest.mark.telling
def test_a_topics_life(odradek: Commands) -> None:
    replicas = broker_count(odradek.running)
    created = odradek.run("topics", "create", "life", "--partitions", "3", "--set", "retention.ms=60000")
    assert created == b"life created with 3 partition(s), %d replica(s) each\n" % replicas
    assert b"life\t3\t%d\n" % replicas in odradek.run("topics", "list")
    assert {"life"} <= {topic["name"] for topic in odradek.json("topics", "list")}
    [described] = odradek.json("topics", "describe", "life", "--offsets")
    assert described["configs"] == {"retention.ms": "60000"}
    assert [(each["partition"], each["end_offset"]) for each in described["partitions"]] == [(0, 0), (1, 0), (2, 0)]
    odradek.run("topics", "alter", "life", "--partitions", "4", "--set", "segment.ms=70000", "--unset", "retention.ms")
    eventually(lambda: odradek.json("topics", "describe", "life")[0]["configs"], {"segment.ms": "70000"})
    assert len(odradek.json("topics", "describe", "life")[0]["partitions"]) == 4
    assert odradek.run("topics", "delete", "life") == b"life deleted\n"
    eventually(lambda: b"life\t" in odradek.run("topics", "list"), False)
    odradek.run("topics", "describe", "life", code=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in odradek.said


def test_what_exists_already_or_not_is_an_error_unless_that_is_well(odradek: Commands) -> None:
    odradek.run("topics", "create", "twice")
    odradek.run("topics", "create", "twice", code=1)
    assert "TOPIC_ALREADY_EXISTS" in odradek.said
    printed = odradek.run("topics", "create", "twice", "thrice", "--if-not-exists")
    assert b"twice exists already\n" in printed
    assert b"thrice created" in printed
    assert odradek.run("topics", "delete", "twice", "nowhere", code=1) == b"twice deleted\n"
    assert odradek.run("topics", "delete", "twice", "thrice", "--if-exists") == b"thrice deleted\n"
    [created] = odradek.json("topics", "create", "by-id")
    assert odradek.run("topics", "delete", "--ids", created["topic_id"]) == f"{created['topic_id']} deleted\n".encode()


def test_of_several_topics_the_good_ones_are_created_and_each_error_is_told(odradek: Commands) -> None:
    printed = odradek.run("topics", "create", "good", "not a name", "worse name", code=1)
    assert printed.startswith(b"good created")
    assert odradek.said.count("Error: CreateTopics of") == 2
    assert odradek.run("topics", "create", "dry", "--validate-only").startswith(b"dry would be created")
    odradek.run("topics", "describe", "dry", code=1)


def test_a_person_gets_a_table(odradek: Commands) -> None:
    odradek.run("topics", "create", "table", "--partitions", "2", "--set", "segment.ms=70000")
    shown = odradek.on_terminal("topics", "describe", "table", "--offsets").splitlines()
    assert shown[0].split() == [
        "TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OSR", "ELR", "OFFLINE", "START", "END",
    ]  # fmt: skip
    assert [line.split()[:2] for line in shown[1:3]] == [["table", "0"], ["table", "1"]]
    assert shown[3] == "table: segment.ms=70000"
    piped = odradek.run("topics", "describe", "table").decode().splitlines()
    assert [line.split("\t")[:2] for line in piped] == [["table", "0"], ["table", "1"]]


# -------------------------------------------------------------------------------------------------------- options
def test_options_are_set_shown_and_deleted(odradek: Commands) -> None:
    odradek.run("topics", "create", "options")
    assert odradek.run("configs", "describe", "topic", "options", "segment.ms").startswith(
        b"segment.ms\t604800000\tdef"
    )
    odradek.run("configs", "set", "topic", "options", "segment.ms=70000", "max.message.bytes=5000")

    def shown(*arguments: str) -> dict[str, tuple[str, str]]:
        entries = odradek.json("configs", "describe", "topic", "options", *arguments)
        return {entry["name"]: (entry["value"], entry["source"]) for entry in entries}

    expected = {"segment.ms": ("70000", "TOPIC"), "max.message.bytes": ("5000", "TOPIC")}
    eventually(lambda: shown("segment.ms", "max.message.bytes"), expected)
    odradek.run("configs", "delete", "topic", "options", "segment.ms")
    eventually(lambda: "segment.ms" in shown(), False)
    assert "max.message.bytes" in shown()
    everything = odradek.run("configs", "describe", "topic", "options", "--all")
    assert b"\nsegment.ms\t" in everything
    odradek.run("configs", "set", "topic", "options", "retention.ms=soon", code=1)
    assert "INVALID_CONFIG" in odradek.said
    odradek.run("configs", "describe", "topic", "nowhere", code=1)


def test_more_in_sync_replicas_than_there_are_is_warned_of(odradek: Commands) -> None:
    """Every broker takes such a number, and counts as many as there are."""
    odradek.run("topics", "create", "beyond", "--partitions", "1", "--replication-factor", "1")
    assert odradek.run("configs", "set", "topic", "beyond", "min.insync.replicas=4") == b"topic beyond changed\n"
    warning = (
        "min.insync.replicas=4 is more than beyond has replicas (1): it counts as 1, and acks=all is refused while "
    )
    assert odradek.said.startswith(f"Warning: {warning}")
    eventually(lambda: odradek.json("topics", "describe", "beyond")[0]["configs"], {"min.insync.replicas": "4"})
    odradek.run("produce", "beyond", given=b"taken\n")  # with acks=all, the default


def test_the_options_of_brokers(odradek: Commands) -> None:
    for broker in odradek.json("brokers")["brokers"]:
        shown = odradek.run("configs", "describe", "broker", str(broker["node_id"]), "num.partitions")
        assert shown == b"num.partitions\t2\tstatic-broker\n"
    odradek.run("configs", "describe", "broker", "77", code=1)
    assert "the cluster has no broker 77" in odradek.said


def test_an_option_that_a_broker_does_not_know_is_stored_with_a_warning(odradek: Commands) -> None:
    broker = str(odradek.json("brokers")["brokers"][0]["node_id"])
    odradek.run("configs", "set", "broker", broker, "no.such.option=secret")
    eventually(
        lambda: odradek.run("configs", "describe", "broker", broker, "no.such.option"),
        b"no.such.option\t(hidden)\tdynamic-broker\n",
    )
    odradek.run("configs", "set", "broker", broker, "no.such.option=another")
    assert odradek.said == (f"Warning: broker {broker} does not know no.such.option: it is stored, and has no effect\n")


@pytest.mark.telling
def test_brokers_are_listed_with_their_disks(odradek: Commands) -> None:
    odradek.run("topics", "create", "disks", "--partitions", "2")
    found = odradek.json("brokers", "--log-dirs")
    brokers = {each["node_id"]: each for each in found["brokers"]}
    assert sorted(f"{each['host']}:{each['port']}" for each in brokers.values()) == sorted(odradek.bootstrap.split(","))
    assert found["controller_id"] in brokers
    assert all(each["log_dirs"][0]["replicas"] >= 2 for each in brokers.values())
    lines = [
        f"{node_id}\t{each['host']}\t{each['port']}\t{each['rack'] or '-'}\t{'yes' if controls else 'no'}\n"
        for node_id, each in sorted(brokers.items())
        for controls in (node_id == found["controller_id"],)
    ]
    assert odradek.run("brokers") == "".join(lines).encode()
    assert odradek.run("brokers", "--log-dirs").count(b"\t") == 6 * len(brokers)


# -------------------------------------------------------------------------------------------------------- records
@pytest.mark.telling
def test_lines_go_in_and_come_out_in_the_order_of_their_partition(odradek: Commands) -> None:
    odradek.run("topics", "create", "lines", "--partitions", "3")
    lines = [b"line %d \xff\xfe" % number for number in range(20_000)]
    odradek.run("produce", "lines", "--partition", "1", given=b"\n".join(lines))
    assert odradek.run("consume", "lines") == b"".join(line + b"\n" for line in lines)
    assert odradek.run("consume", "lines", "--from", "-2").splitlines() == lines[-2:]
    assert odradek.run("consume", "lines", "--from", "777", "--max", "3", "-p", "1").splitlines() == lines[777:780]
    assert odradek.run("consume", "lines", "--from", "latest") == b""
    assert odradek.run("consume", "lines", "--from", "@99999999999999") == b""
    assert odradek.run("consume", "lines", "-p", "0", "-p", "2") == b""
    odradek.run("consume", "lines", "-p", "7", code=1)
    assert "lines has no partition 7; it has 3, from 0 on." in odradek.said


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_other_clients_read_what_was_produced(odradek: Commands, codec: str) -> None:
    topic = f"produced-{codec}"
    odradek.run("topics", "create", topic, "--partitions", "1")
    given = b"".join(b"key %d:value %d\n" % (number, number) for number in range(1_000)) + b"NULL:NULL\n"
    settings = ("--set", f"compression.type={codec}", "--header", "h=1", "--null-marker", "NULL")
    odradek.run("produce", topic, "--key-separator", ":", *settings, given=given)
    consumer = KafkaConsumer(bootstrap_servers=odradek.bootstrap, group_id=None, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[Any] = []
        while len(found) < 1_001:
            found += [record for records in consumer.poll(timeout_ms=10_000).values() for record in records]
        assert [(each.key, each.value) for each in found] == [
            *((b"key %d" % number, b"value %d" % number) for number in range(1_000)),
            (None, None),
        ]
        assert {tuple(each.headers) for each in found} == {(("h", b"1"),)}
    finally:
        consumer.close()


def test_a_topic_is_copied_by_json(odradek: Commands) -> None:
    odradek.run("topics", "create", "original", "copy", "--partitions", "1")
    odradek.run("produce", "original", "--key-separator", ":", "--header", "h=\xe9", given=b"k:v\n\xff:\x00\n:\n")
    copied = odradek.run("consume", "original", "--json")
    odradek.run("produce", "copy", "--json", given=copied)
    again = odradek.run("consume", "copy", "--json")
    assert again == copied.replace(b'"original"', b'"copy"')
    assert [json.loads(line).get("key_base64") for line in again.splitlines()] == [None, "/w==", None]


def test_a_line_that_is_none_ends_it_after_those_before(odradek: Commands) -> None:
    odradek.run("topics", "create", "odd", "--partitions", "1")
    odradek.run("produce", "odd", "--key-separator", ":", given=b"a:1\nb:2\nc\nd:4\n", code=1)
    assert "Line 3 was not delivered" in odradek.said
    assert "Acknowledged: 2." in odradek.said
    assert odradek.run("consume", "odd") == b"1\n2\n"


def test_a_record_that_is_too_large_is_told_by_its_line(odradek: Commands) -> None:
    odradek.run("topics", "create", "small", "--partitions", "1", "--set", "max.message.bytes=1000")
    odradek.run("produce", "small", given=b"ok\n" + b"x" * 5_000 + b"\n", code=1)
    assert "Line 2 was not delivered" in odradek.said
    assert odradek.run("consume", "small") == b"ok\n"


def test_topics_that_do_not_exist_are_told(odradek: Commands) -> None:
    odradek.run("consume", "nowhere", code=1)
    odradek.run("produce", "nowhere", "--timeout", "2", given=b"x\n", code=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in odradek.said


# ------------------------------------------------------------------------------------------------ pipes and signals
def test_follow_prints_what_comes_and_ends_by_ctrl_c(odradek: Commands) -> None:
    odradek.run("topics", "create", "followed", "--partitions", "2")
    odradek.run("produce", "followed", given=b"first\n")
    process = odradek.start("consume", "followed", "--follow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"first\n"
    odradek.run("produce", "followed", given=b"second\n")
    assert process.stdout.readline() == b"second\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_the_end_of_the_pipe_is_the_end(odradek: Commands) -> None:
    odradek.run("topics", "create", "piped", "--partitions", "1")
    odradek.run("produce", "piped", given=b"x" * 999 + b"\n" + b"y\n" * 200_000)
    process = odradek.start("consume", "piped", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert len(process.stdout.readline()) == 1_000
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(30), said) == (141, b"")


def test_produce_delivers_line_by_line_and_ends_by_ctrl_c_with_what_it_has(odradek: Commands) -> None:
    odradek.run("topics", "create", "typed", "--partitions", "1")
    process = odradek.start("produce", "typed", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"one\n")
    process.stdin.flush()
    deadline = time.monotonic() + 30
    while odradek.run("consume", "typed") != b"one\n":  # while its input is still open
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


def test_the_rate_is_kept(odradek: Commands) -> None:
    odradek.run("topics", "create", "paced", "--partitions", "1")
    odradek.run("produce", "paced", "--rate", "20", given=b"x\n" * 21)
    stamps = [json.loads(line)["timestamp_ms"] for line in odradek.run("consume", "paced", "--json").splitlines()]
    assert 950 <= stamps[-1] - stamps[0] <= 3_000


def test_without_a_broker_there_is_one_sentence_and_its_own_code(odradek: Commands) -> None:
    for command in (["brokers"], ["topics", "list"], ["consume", "x"], ["produce", "x"]):
        odradek.run(*command, "-b", "127.0.0.1:1", "--timeout", "0.5", given=b"x\n", code=3)
        assert "127.0.0.1:1" in odradek.said
        assert len(odradek.said.splitlines()) == 1
