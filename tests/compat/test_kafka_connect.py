"""Kafka Connect with `exactly.once.source.support`: a worker that copies the lines of a file into a topic is killed,
several times, and each line is there exactly once for whoever reads what is committed.

The offset in the file is committed with the lines; who comes next fences the task that was killed, and its open
transaction is aborted.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import pytest

from processes.apache_kafka import QUICK_JVM, java_command
from processes.free_ports import free_ports
from processes.jars import KAFKA_CONNECT
from tests.compat.clusters import Ours, broker_count, eventually
from tests.compat.foreign_process import ForeignProcess
from tests.compat.test_transactions_of_clients import make_topic, read_by_kafka_python

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.only_in_foreign, pytest.mark.timeout(600)]

WORKER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
TOPIC: Final = "lines"
LINES: Final = 5_000
"""Of a round. The task commits 2,000 in a transaction, so that it is killed in the middle."""
ROUNDS: Final = 3
PATIENCE_S: Final = 90.0
"""A worker waits until the one that was killed has missed its session time-out."""


def worker_settings(bootstrap: str, replicas: int, port: int) -> dict[str, str]:
    topics = {
        f"{name}.storage.{option}": value
        for name in ("config", "offset", "status")
        for option, value in (("topic", f"connect-{name}"), ("replication.factor", str(replicas)))
    }
    string = "org.apache.kafka.connect.storage.StringConverter"
    return topics | {
        "bootstrap.servers": bootstrap,
        "group.id": "connect-cluster",
        "exactly.once.source.support": "enabled",
        "key.converter": string,
        "value.converter": string,
        "listeners": f"http://127.0.0.1:{port}",
        "offset.storage.partitions": "3",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
    }


def connector(file: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "exactly.once.support": "required",
        "tasks.max": "1",
        "file": str(file),
        "topic": TOPIC,
    }


def is_configured(port: int, settings: dict[str, str]) -> bool:
    """Asks the worker for the connector; False while it does not serve yet."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/lines/config",
        data=json.dumps(settings).encode(), headers={"Content-Type": "application/json"}, method="PUT",
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status in (200, 201)
    except (OSError, urllib.error.HTTPError):
        return False


def test_connect_copies_each_line_exactly_once_while_it_is_killed(broker: Ours, tmp_path: Path) -> None:
    make_topic(broker.bootstrap, TOPIC, 1, broker_count(broker))
    [port] = free_ports(1)
    settings = worker_settings(broker.bootstrap, broker_count(broker), port)
    properties, file = tmp_path / "worker.properties", tmp_path / "file"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = java_command(
        WORKER, str(properties), jvm_options=("-Xmx256m", f"-Djava.io.tmpdir={tmp_path}", *QUICK_JVM),
        log_level="warn", jars=(KAFKA_CONNECT,),
    )  # fmt: skip

    def committed() -> list[str]:
        return [value.decode() for value in read_by_kafka_python(broker.bootstrap, TOPIC, 1, "read_committed")]

    def progress_to(count: int) -> None:
        """A worker runs until so many lines are committed, and is killed at once."""
        with ForeignProcess(command, tmp_path / "worker") as worker:
            eventually(lambda: is_configured(port, connector(file)), True, PATIENCE_S)
            eventually(lambda: len(committed()) >= count, True, PATIENCE_S)
            worker.kill()

    written: list[str] = []
    for number in range(ROUNDS):
        with file.open("a") as lines:
            for index in range(LINES):
                written.append(f"line {number} {index}")
                lines.write(f"{written[-1]}\n")
        progress_to(len(written) - LINES + 1)
    progress_to(len(written))
    assert committed() == written
