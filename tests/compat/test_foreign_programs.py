"""Programs that people run read with groups of ours: a Faust, a Quix Streams and a kombu application, and kcat.

Each reads, commits, ends, and goes on where it was: after the broker was restarted, too. Faust copies in transactions,
too. The applications stand in
`foreign_apps/`, and run in an environment of their own.
"""

import shutil
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from processes.foreign_programs import applications_python
from tests.compat.clusters import eventually
from tests.compat.conftest import OPTIONS
from tests.compat.foreign_process import ForeignProcess
from tests.compat.groups_at import committed_sum
from tests.compat.kit_cluster import KitCluster
from tests.compat.test_transactions_of_clients import read_by_kafka_python

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.slow, pytest.mark.timeout(240)]

APPS: Final = Path(__file__).parent / "foreign_apps"
PARTITIONS: Final = 2
RECORDS: Final = 20
COPIED: Final = 600
COPY_S: Final = 60.0
LABELS: Final = ("first", "second")
KCAT: Final = shutil.which("kcat")
WITH_KCAT = pytest.mark.skipif(KCAT is None, reason="kcat is not installed: on Debian it is the package kcat")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Generator[KitCluster]:
    """A broker that these tests alone use, since they restart it.

    kombu sends to a topic that it has only asked for: with one partition by default, it makes no difference whether the
    topic was created by that or by itself.
    """
    options = OPTIONS | {"num.partitions": "1"}
    with KitCluster(1, tmp_path_factory.mktemp("foreign") / "data", options) as running:
        yield running


def create(bootstrap: str, topic: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics({topic: {"num_partitions": PARTITIONS, "replication_factor": 1}})


def write(bootstrap: str, topic: str, label: str, count: int = RECORDS) -> list[str]:
    values = [f"{label} {number}" for number in range(count)]
    with closing(KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value.encode(), partition=number % PARTITIONS)
        producer.flush()
    return values


def restart(ours: KitCluster) -> None:
    ours.stop()
    ours.start()


def taken(lines: list[str]) -> list[str]:
    """The values, without the banner that a program prints."""
    return [line for line in lines if line.startswith(LABELS)]


def reads_commits_and_goes_on(ours: KitCluster, app: str, directory: Path) -> None:
    """Its records are committed before it is stopped; then the broker is restarted, and it is started for the next."""
    topic, group = f"{app}-topic", f"{app}-group"
    words = [applications_python(), str(APPS / f"{app}_app.py"), ours.bootstrap, group, topic, str(directory)]
    create(ours.bootstrap, topic)
    for number, label in enumerate(LABELS, 1):
        written = write(ours.bootstrap, topic, label)
        with ForeignProcess(words, directory) as process:
            assert sorted(taken(process.printed_until(lambda lines: len(taken(lines)) >= RECORDS))) == sorted(written)
            eventually(lambda: committed_sum(ours.bootstrap, group), number * RECORDS)
        restart(ours)


def test_a_faust_application_goes_on(ours: KitCluster, tmp_path: Path) -> None:
    reads_commits_and_goes_on(ours, "faust", tmp_path)


def test_faust_copies_in_transactions_and_goes_on(ours: KitCluster, tmp_path: Path) -> None:
    """It is killed when all is committed. While it copies, a kill makes it copy some twice: it cuts what it commits
    before it ends the transaction, and sends on in between. It cannot be stopped: it commits twice then, and fails."""
    bootstrap, group, source, target = ours.bootstrap, "faust-copiers", "faust-source", "faust-target"
    words = [applications_python(), str(APPS / "faust_copier_app.py"), bootstrap, group, source, target]
    for topic in (source, target):
        create(bootstrap, topic)
    written: list[str] = []
    for label in LABELS:
        written += write(bootstrap, source, label, COPIED)
        with ForeignProcess([*words, str(tmp_path)], tmp_path) as copier:
            eventually(lambda: committed_sum(bootstrap, group, source), len(written), COPY_S)
            copier.kill()
    copied = read_by_kafka_python(bootstrap, target, PARTITIONS, "read_committed")
    assert sorted(value.decode() for value in copied) == sorted(written)


def test_a_quix_streams_application_goes_on(ours: KitCluster, tmp_path: Path) -> None:
    reads_commits_and_goes_on(ours, "quix", tmp_path)


def test_a_kombu_application_goes_on(ours: KitCluster, tmp_path: Path) -> None:
    words = [applications_python(), str(APPS / "kombu_app.py"), ours.bootstrap, "kombu-queue"]
    values: list[str] = []
    for label in LABELS:
        sent = [f"{label} {number}" for number in range(5)]
        with ForeignProcess([*words, *sent], tmp_path) as app:
            assert app.printed_until(lambda lines: len(lines) >= 5) == sent
        values += sent
        restart(ours)
    assert committed_sum(ours.bootstrap, "kombu-queue-consumer-group") == len(values)


@WITH_KCAT
def test_two_kcats_share_a_group(ours: KitCluster, tmp_path: Path) -> None:
    """Each has a partition; what one has not committed when it is killed, the other reads."""
    create(ours.bootstrap, "kcat")
    words = [
        *(KCAT or "", "-b", ours.bootstrap, "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000"),
        *("-X", "heartbeat.interval.ms=500", "-X", "auto.commit.interval.ms=200", "-u", "-q", "-f", "%p %s\\n"),
        *("-G", "kcat-group", "kcat"),
    ]
    with ExitStack() as members:
        one, other = (members.enter_context(ForeignProcess(words, tmp_path)) for _ in range(2))
        written = set(write(ours.bootstrap, "kcat", "first"))
        eventually(lambda: {line.partition(" ")[2] for line in one.lines + other.lines}, written)
        eventually(lambda: committed_sum(ours.bootstrap, "kcat-group"), RECORDS)
        before = len(other.lines)
        one.kill()
        alone = write(ours.bootstrap, "kcat", "third")
        other.printed_until(lambda lines: {line.partition(" ")[2] for line in lines[before:]} >= set(alone))


@WITH_KCAT
def test_kcat_stops_at_the_end_and_goes_on_there(ours: KitCluster, tmp_path: Path) -> None:
    create(ours.bootstrap, "kcat-e")
    words = [KCAT or "", "-b", ours.bootstrap, "-X", "auto.offset.reset=earliest", "-q", "-e", "-G", "kcat-e", "kcat-e"]
    for label in LABELS:
        written = write(ours.bootstrap, "kcat-e", label)
        with ForeignProcess(words, tmp_path) as reader:
            assert reader.wait() == 0
            assert sorted(reader.lines) == sorted(written)
