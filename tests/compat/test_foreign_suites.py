"""The tests of FastStream and of confluent-kafka-python that want a real Kafka, on one broker of the test kit.

They stand in repositories alone: `make foreign SOURCES=FOLDER` reads `FOLDER/faststream` and
`FOLDER/confluent-kafka-python`, and runs a copy of them. What they need is installed from PyPI
(processes/foreign_programs.py). What is changed in them, and what is left out, stands here, each with its reason.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from odradek.testing import cluster
from processes.foreign_programs import suites_python

pytestmark = [pytest.mark.compat, pytest.mark.only_in_foreign, pytest.mark.timeout(1_200)]

SOURCES: Final = os.environ.get("FOREIGN_SOURCES", "")
PLUGINS: Final = Path(__file__).parent / "foreign_apps"
LIMIT_S: Final = 1_000


@dataclass(frozen=True, slots=True)
class Change:
    """What stands in place of `old`, which is there once; "" takes it away."""

    path: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class Suite:
    """A repository, as it is in a folder of its name."""

    repository: str
    commit: str
    """Whose tests are counted here."""
    port: int = 0
    """Of the broker; 0: one that is free."""
    plugins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of pytest, in `foreign_apps/`, by what each is for."""
    changes: tuple[Change, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """By path, or path and test: why."""

    @property
    def name(self) -> str:
        return self.repository.rpartition("/")[2]

    @property
    def folder(self) -> Path:
        return Path(SOURCES, self.name)


@dataclass(frozen=True, slots=True)
class Run:
    """One of the suite's own runs, as its CI has them."""

    suite: Suite
    name: str
    words: tuple[str, ...]
    """Of pytest."""
    passed: int
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    """By test, those that skip themselves: why."""


FASTSTREAM: Final = Suite(
    "ag2ai/faststream",
    "7c9a125dfdf20cc45b64aac26b53559057443da1",
    port=9092,  # which its tests do not ask for: they connect to localhost
)
CONFLUENT: Final = Suite(
    "confluentinc/confluent-kafka-python",
    "8b1c7a613434eee3d0e1287d624d7af04932f410",
    plugins={"registry_in_memory": "serializers are tested with the project's registry in memory, `mock://`"},
    changes=(
        Change(
            "tests/integration/admin/test_basic_operations.py",
            "    verify_admin_acls(admin_client, acls_topic, acls_group)\n",
            "",
            "no ACLs yet",
        ),
        Change(
            "tests/integration/admin/test_incremental_alter_configs.py",
            "if not entry.is_default])",
            "if not entry.is_default and entry.name not in ('message.timestamp.after.max.ms', "
            "'consumer.assignment.interval.ms', 'consumer.heartbeat.interval.ms')])",
            "the kit's brokers have options of their own: records of the future are taken, and groups are quick",
        ),
    ),
    left_out={
        "tests/integration/admin/test_describe_operations.py": "starts brokers itself, with SASL",
        "tests/integration/admin/test_user_scram_credentials.py": "no SCRAM yet",
        "tests/integration/schema_registry/_async/test_api_client.py": "tests a Schema Registry, and no broker",
        "tests/integration/schema_registry/_sync/test_api_client.py": "tests a Schema Registry, and no broker",
        "tests/integration/share_consumer": "no share groups (KIP-932)",
        "tests/integration/share_consumer_oauth": "starts brokers itself, with SASL",
        "tests/integration/share_consumer_sasl": "starts brokers itself, with SASL",
    },
)
STANDALONE: Final = {"test_producer_dr_only_error": "This test must be run as a standalone script"}
NO_SESSION: Final = "session.timeout.ms is not supported on client side for consumer protocol."
RUNS: Final = (
    Run(FASTSTREAM, "aiokafka", ("tests", "-m", "kafka and connected"), 359),
    Run(FASTSTREAM, "confluent-kafka", ("tests", "-m", "confluent and connected"), 274),
    Run(
        CONFLUENT,
        "classic groups",
        ("tests/integration",),
        86,
        skipped=STANDALONE
        | {"test_consumer_upgrade_downgrade": "Skipping test as group protocol consumer is not enabled"},
    ),
    Run(
        CONFLUENT,
        "KIP-848 groups",
        ("tests/integration",),
        85,
        environment={"TEST_CONSUMER_GROUP_PROTOCOL": "consumer"},
        skipped=STANDALONE
        | dict.fromkeys(("test_consume_error_commit", "test_consume_error_store_offsets"), NO_SESSION),
    ),
)


def needs(suite: Suite) -> pytest.MarkDecorator:
    """Skips without its folder."""
    return pytest.mark.skipif(
        not (SOURCES and suite.folder.is_dir()),
        reason=f"its tests are on no registry: put https://github.com/{suite.repository} (commit {suite.commit[:10]}) "
        f"into FOLDER/{suite.name}, and say make foreign SOURCES=FOLDER",
    )


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=needs(run.suite), id=f"{run.suite.name}, {run.name}") for run in RUNS]
)
def test_a_suite_of_others_passes(run: Run, tmp_path: Path) -> None:
    suite, copy, report = run.suite, tmp_path / run.suite.name, tmp_path / "report.xml"
    shutil.copytree(suite.folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    for change in suite.changes:
        make(change, copy)
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
    with cluster(brokers=1, port=suite.port, subprocess=True) as kafka:
        done = subprocess.run(
            [suites_python(), "-m", "pytest", *run.words, *words(suite), f"--junitxml={report}"],
            cwd=copy, capture_output=True, text=True, check=False, timeout=LIMIT_S,
            env={**environment, **run.environment, "BROKERS": kafka.bootstrap_servers, "PYTHONPATH": str(PLUGINS)},
        )  # fmt: skip
        logged = [line for line in kafka.log_lines() if line.level in {"ERROR", "CRITICAL"}]
    said = f"{done.stdout[-20_000:]}\n{done.stderr[-3_000:]}"
    assert done.returncode == 0, said
    assert logged == []
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 - the run's own pytest wrote it
    skips = {str(case.get("name")): str(skip.get("message")) for case in cases for skip in case.findall("skipped")}
    assert skips.keys() == run.skipped.keys(), said
    assert all(skips[test].startswith(reason) for test, reason in run.skipped.items()), skips
    assert len(cases) - len(skips) == run.passed, f"{said}\nThe tests are counted at commit {suite.commit}."


def make(change: Change, folder: Path) -> None:
    path = folder / change.path
    text = path.read_text()
    assert text.count(change.old) == 1, f"{change.old!r} is not in {path} as it was: the tests are others"
    path.write_text(text.replace(change.old, change.new))


def words(suite: Suite) -> list[str]:
    """Of pytest, to have its plugins and leave out what is left out."""
    for path in suite.left_out:
        assert (suite.folder / path).exists(), f"{path} is not there: the tests are others"
    return [
        *(word for plugin in suite.plugins for word in ("-p", plugin)),
        *(f"--ignore={path}" for path in suite.left_out),
        *("-p", "no:cacheprovider", "-q", "--tb=short"),
    ]
