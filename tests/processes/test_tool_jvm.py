"""One JVM for several of Kafka's command-line classes: they say what they say in a JVM of their own."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from processes.apache_kafka import kafka_classpath, quick_jvm, run_tool
from processes.jars import java
from processes.tool_jvm import ToolJvm
from tests.broker.log.logs import batch

pytestmark = pytest.mark.java

DUMP = "org.apache.kafka.tools.DumpLogSegments"


@pytest.fixture(scope="module")
def jvm() -> Generator[ToolJvm]:
    running = ToolJvm(kafka_classpath(), java(), quick_jvm())
    yield running
    running.stop()


@pytest.fixture
def segment(tmp_path: Path) -> str:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch())
    return str(path)


def test_it_prints_what_a_jvm_of_its_own_prints(jvm: ToolJvm, segment: str) -> None:
    said = jvm.run(DUMP, "--files", segment)
    assert said is not None
    assert "baseOffset: 0 lastOffset: 0 count: 1" in said
    assert said == run_tool(DUMP, "--files", segment, log_level="error"), "another level has a JVM of its own"


def test_what_a_tool_prints_is_its_own(jvm: ToolJvm, segment: str) -> None:
    """Neither what another one printed before, nor what one that failed had printed."""
    first = jvm.run(DUMP, "--files", segment)
    assert jvm.run(DUMP, "--files", "missing.log") is None
    assert jvm.run(DUMP, "--files", segment) == first


def test_a_code_other_than_0_is_told(jvm: ToolJvm, tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(f"process.roles=broker,controller\nlog.dirs={tmp_path / 'data'}\n")
    assert jvm.run("kafka.tools.StorageTool", "info", "--config", str(settings)) is None


def test_when_the_jvm_is_gone_the_next_one_starts_another(jvm: ToolJvm, segment: str) -> None:
    assert jvm.run(DUMP, "--files", segment) is not None
    before = jvm.pid
    os.kill(before, signal.SIGKILL)
    assert jvm.run(DUMP, "--files", segment) is None
    assert jvm.run(DUMP, "--files", segment) is not None
    assert jvm.pid != before
