"""The two contenders, seen alike: Odradek, and Apache Kafka as a single KRaft node with the JVM options of its scripts.

Both listen on loopback, keep their data in directories beside one another, and run with their defaults, except that
they remove a deleted topic's files after a second rather than a minute, in the midst of another run.
"""

import contextlib
import platform
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from benchmarks.load.wire import Wire
from odradek.broker.version import VERSION
from processes.apache_kafka import OWN_JVM, ApacheKafka
from processes.jars import KAFKA_VERSION, java
from processes.odradek_broker import READY, OdradekBroker, settings_words

OURS = f"Odradek {VERSION}"
THEIRS = f"Apache Kafka {KAFKA_VERSION}"
KAFKA_HEAP = "1g"
"""What kafka-server-start.sh sets."""
DELETE_DELAY = {"log.segment.delete.delay.ms": "1000"}
DELETE_DELAY_OPTIONS = settings_words(DELETE_DELAY)
GONE_TIMEOUT_S = 60.0
"""Apache Kafka deletes for the first time half a minute after its start (LogManager.INITIAL_TASK_DELAY_MS)."""


class Process(Protocol):
    """What `OdradekBroker` and `ApacheKafka` have in common."""

    host: str
    port: int

    @property
    def pid(self) -> int: ...

    def start(self) -> None: ...

    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Server:
    """One contender, running. `stop` and `start` in turn; the port stays."""

    name: str
    version: str
    process: Process
    stop: Callable[[], object]
    data_dir: Path

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def address(self) -> str:
        return f"{self.process.host}:{self.process.port}"

    def wire(self) -> Wire:
        """A connection to it. Raises OSError."""
        return Wire(self.process.host, self.process.port)

    def wait_gone(self, topic: str) -> None:
        """Returns when the files of a deleted topic are gone. Raises TimeoutError."""
        wait_gone(self, [self.data_dir], topic)


def wait_gone(who: object, data_dirs: Iterable[Path], topic: str) -> None:
    """Returns when none of the directories has files of a deleted topic any more. Raises TimeoutError, naming `who`."""
    deadline = time.monotonic() + GONE_TIMEOUT_S
    for data_dir in data_dirs:
        while found := sorted(data_dir.glob(f"{topic}-*")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{who}: {found[0].name} is still there after {GONE_TIMEOUT_S} s")
            time.sleep(0.05)  # between two looks


@contextlib.contextmanager
def running_odradek(directory: Path, options: Sequence[str] = ()) -> Generator[Server, None, None]:
    """Odradek, started on an empty data directory."""
    with OdradekBroker(directory, *DELETE_DELAY_OPTIONS, *options) as odradek:
        ready = READY.match(odradek.ready_line)
        assert ready is not None
        yield Server("Odradek", ready["version"], odradek, odradek.terminate, odradek.data_dir)


@contextlib.contextmanager
def running_kafka(directory: Path, properties: Mapping[str, str] | None = None) -> Generator[Server, None, None]:
    """Apache Kafka, started on an empty data directory."""
    properties = {**DELETE_DELAY, **(properties or {})}
    with ApacheKafka(directory=directory, heap=KAFKA_HEAP, jvm_options=OWN_JVM, properties=properties) as kafka:
        yield Server("Apache Kafka", KAFKA_VERSION, kafka, kafka.stop, kafka.data_directory)


@contextlib.contextmanager
def running_servers(
    directory: Path, odradek_options: Sequence[str] = ()
) -> Generator[tuple[Server, Server], None, None]:
    """(Odradek, Apache Kafka), both started, with empty data directories under `directory`."""
    with (
        running_odradek(directory / "odradek", odradek_options) as odradek,
        running_kafka(directory / "kafka") as kafka,
    ):
        yield odradek, kafka


def versions() -> list[str]:
    """What the contenders run on."""
    told = subprocess.run([java(), "-version"], capture_output=True, text=True, check=False).stderr
    return [
        f"{platform.python_implementation()} {platform.python_version()}",
        f"uvloop {version('uvloop')}",
        told.partition("\n")[0].replace('"', ""),
    ]
