"""Kafka Streams with `exactly_once_v2`: the program of its own system tests, which counts, sums and joins a topic's
records while the processes that do so are killed one after the other, and compares the results at the end."""

import re
from pathlib import Path
from typing import Final

import pytest
from kafka import KafkaAdminClient

from processes.apache_kafka import QUICK_JVM, java_command
from processes.jars import KAFKA_STREAMS
from tests.compat.clusters import Ours, broker_count
from tests.compat.foreign_process import ForeignProcess

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.only_in_foreign, pytest.mark.timeout(900)]

SMOKE_TEST: Final = "org.apache.kafka.streams.tests.StreamsSmokeTest"
PARTITIONS: Final = 5
TOPICS: Final = (
    *("data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum", "sws-raw", "sws-suppressed"),
    *("cnt", "avg", "tagg", "fk"),
)
PROCESSED: Final = re.compile(r"processed (\d+) records from topic=data")
BEFORE_IT_IS_KILLED: Final = 500
"""Records of one partition, of some 4,000."""
START_S: Final = 120.0
VERIFIED_S: Final = 480.0


def smoke_test(command: str, bootstrap: str, replicas: int, directory: Path) -> ForeignProcess:
    """`process` is an instance of the application; `run` sends 20,000 records in 90 s, and checks what came of them."""
    directory.mkdir()
    settings = {
        "bootstrap.servers": bootstrap,
        "processing.guarantee": "exactly_once_v2",
        "replication.factor": str(replicas),
        "commit.interval.ms": "500",
        "metadata.max.age.ms": "1000",
        "session.timeout.ms": "6000",
    }
    (directory / "streams.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return ForeignProcess(
        java_command(
            SMOKE_TEST, str(directory / "streams.properties"), command,
            jvm_options=("-Xmx256m", f"-Djava.io.tmpdir={directory}", *QUICK_JVM),
            log_level="warn", jars=(KAFKA_STREAMS,),
        ),
        directory,
    )  # fmt: skip


def has_processed(lines: list[str]) -> bool:
    return any(int(found[1]) >= BEFORE_IT_IS_KILLED for found in map(PROCESSED.match, lines) if found)


def is_said(word: str, lines: list[str]) -> bool:
    return any(word in line for line in lines)


def test_streams_processes_each_record_exactly_once_while_it_is_killed(broker: Ours, tmp_path: Path) -> None:
    replicas = broker_count(broker)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.create_topics({name: {"num_partitions": PARTITIONS, "replication_factor": replicas} for name in TOPICS})
    finally:
        admin.close()

    def processor(name: str) -> ForeignProcess:
        return smoke_test("process", broker.bootstrap, replicas, tmp_path / name)

    with smoke_test("run", broker.bootstrap, replicas, tmp_path / "driver") as driver:
        for name in ("first", "second"):
            with processor(name) as killed:
                killed.printed_until(has_processed, START_S)
                assert not is_said("Result Verification", driver.lines)
                killed.kill()
        with processor("third") as last:
            last.printed_until(has_processed, START_S)
            code = driver.wait(VERIFIED_S)
            assert "SUCCESS" in driver.lines
            assert code == 0
            assert not is_said("SMOKE-TEST-CLIENT-EXCEPTION", last.lines)
            last.kill()
