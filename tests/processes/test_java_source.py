"""A source file is compiled and run, with Kafka's classes; one that does not compile is told."""

import subprocess
from pathlib import Path

import pytest

from processes import java_source
from processes.apache_kafka import quick_jvm
from processes.java_source import java_source_command

SAYING = """
import org.apache.kafka.common.TopicPartition;

public class Saying {
    public static void main(String[] args) {
        System.out.println(new TopicPartition(args[0], args.length));
    }
}
"""


def run(directory: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> "subprocess.CompletedProcess[str]":
    (directory / "Saying.java").write_text(source)
    monkeypatch.setattr(java_source, "REPOSITORY", directory)
    command = java_source_command("Saying.java", "said", "twice", jvm_options=quick_jvm(), log_level="error")
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_program_has_its_arguments_and_kafkas_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(tmp_path, SAYING, monkeypatch)
    assert (done.returncode, done.stdout) == (0, "said-2\n"), done.stderr


def test_a_program_that_does_not_compile_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(tmp_path, SAYING.replace("TopicPartition(", "TopicPartitions("), monkeypatch)
    assert done.returncode != 0
    assert "TopicPartitions" in done.stdout + done.stderr
