"""kafka-python's own integration tests, from its sdist, on a broker of ours: all but those that are listed here.

Each of these has its reason. The tests are told that the broker is Kafka 4.3. What skips itself is listed too, so that
nothing is left out unseen.

One that fails is asked once more, for kafka-python 3.0.12 has races of its own (docs/FINDINGS.md): its consumer was
seen to poll for 9 s without a record, in one of some hundred runs on a busy machine; 400 that looked for that did not.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from processes.foreign_programs import kafka_pythons_tests
from processes.free_ports import free_ports
from processes.odradek_broker import OdradekBroker, settings_words

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.slow, pytest.mark.timeout(400)]

KAFKA_VERSION: Final = "4.3.0"
BROKER: Final = {"num.partitions": "4", "group.min.session.timeout.ms": "1000"}
"""As kafka-python starts its own brokers."""

ADMIN: Final = "test_admin_integration"
LEFT_OUT: Final = {
    (ADMIN, "test_create_describe_delete_acls"): "no ACLs yet",
    (ADMIN, "test_alter_replica_log_dirs"): "AlterReplicaLogDirs is not served",
    ("test_sasl_integration", ""): "starts brokers itself, with SASL",
    ("test_ssl_integration", ""): "starts brokers itself, with TLS",
}  # fmt: skip
"""By module and test; "" is all of a module."""

SKIPPED_BY_ITSELF: Final = {
    "test_kafka_consumer_offsets_for_time_old": "Requires KAFKA_VERSION < 0.10.1",
}
PASSED_AT_LEAST: Final = 51


def test_kafka_pythons_own_tests_pass(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (port,) = free_ports(1)
    settings = BROKER | {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with OdradekBroker(tmp_path / "data", *settings_words(settings), port=port) as broker:
        environment = os.environ | {
            "KAFKA_URI": f"kafka://{broker.bootstrap}",
            "KAFKA_VERSION": KAFKA_VERSION,
            "KAFKA_ROOT": str(tmp_path / "kafka"),
        }
        for name in ("COMPAT_PART", "PYTEST_ADDOPTS"):
            environment.pop(name, None)
        cases, said = ran(["test/integration", *left_out()], tmp_path / "report.xml", environment)
        if failed := failures(cases):
            again, said_again = ran([*failed, "--log-level=DEBUG"], tmp_path / "again.xml", environment)
            assert failures(again) == [], f"{said[-10_000:]}\nand again:\n{said_again[-20_000:]}"
        assert "ERROR" not in broker.output, broker.output
    skips = [(case, case.find("skipped")) for case in cases]
    skipped = {str(case.get("name")): str(skip.get("message")) for case, skip in skips if skip is not None}
    assert skipped == SKIPPED_BY_ITSELF
    assert len(cases) - len(skipped) >= PASSED_AT_LEAST


def ran(what: list[str], report: Path, environment: dict[str, str]) -> tuple[list[ElementTree.Element], str]:
    """The cases, and what pytest has said."""
    said = subprocess.run(
        [sys.executable, "-m", "pytest", *what, *plain(report)],
        cwd=kafka_pythons_tests(), env=environment, capture_output=True, text=True, check=False, timeout=360,
    ).stdout  # fmt: skip
    return list(ElementTree.parse(report).iter("testcase")), said  # noqa: S314 - our own pytest wrote it


def failures(cases: list[ElementTree.Element]) -> list[str]:
    """As pytest takes them."""
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return [f"{str(case.get('classname')).replace('.', '/')}.py::{case.get('name')}" for case in failed]


def left_out() -> list[str]:
    words: list[str] = []
    for module, test in LEFT_OUT:
        path = f"test/integration/{module}.py"
        words += ("--deselect", f"{path}::{test}") if test else ("--ignore", path)
    return words


def plain(report: Path) -> list[str]:
    """Without what our own plugins would change: the order, and what is kept between two runs."""
    off = [word for name in ("randomly", "cacheprovider", "xdist", "asyncio") for word in ("-p", f"no:{name}")]
    return ["-q", *off, "--tb=short", "--show-capture=no", f"--junitxml={report}"]


@pytest.mark.parametrize(("module", "test"), LEFT_OUT)
def test_what_is_left_out_is_there(module: str, test: str) -> None:
    text = (kafka_pythons_tests() / "test" / "integration" / f"{module}.py").read_text()
    assert re.search(rf"^def {test}\(", text, re.MULTILINE) or not test
