"""What the README shows works as it stands there: its snippets and commands run, its options exist, its links lead
somewhere.

A snippet runs in a process of its own with nothing replaced but the broker's address; the one with top-level `await` is
put into a coroutine, as its reader would. What is added behind it only prints what the snippet got.
"""

import re
import shlex
import subprocess
import sys
from contextlib import closing
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

import click
import pytest
from kafka import KafkaConsumer, KafkaProducer

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.cli import main
from processes.odradek_broker import OdradekBroker
from tests.compat.console import examples_of, run_all

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
ADDRESS = "127.0.0.1:9092"
SNIPPET = re.compile(r"^\*\*(?P<client>[\w-]+)\*\*.*?\n```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS_SECTION = "From the command line"
FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
READY = re.compile(r"odradek \d\S* ready on ")
"""Begins what a broker prints, which is no command."""
OPTION = re.compile(r"--[a-z][a-z-]*|-[a-z]")
VALUE = "two coffees"
PROGRAM_SECTION = "Run it in a program"
TEST_SECTION = "Test with it"  # run by tests/odradek/testing/test_kafka_cluster_page.py
# What shows that the snippet did what it is there for. kafka-python's prints by itself.
SHOWN = {
    "Odradek": "print(ack)",
    "kafka-python": "",
    "aiokafka": "print(record.value)",
    "confluent-kafka": "print(record.value())",
    "Spark": 'print([bytes(row["value"]) for row in orders.collect()])',
}
SNIPPETS = {match["client"]: match["code"] for match in SNIPPET.finditer(README)}


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


class CommandLine(NamedTuple):
    command: tuple[str, ...]
    options: frozenset[str]


def command_lines(text: str) -> list[CommandLine]:
    """Each `odradek …` that stands in code, in a block of its own or in a sentence, without what is printed."""
    code = [line for match in FENCED.finditer(text) if not match["language"] for line in match["code"].splitlines()]
    code += [example.command for example in examples_of(text)]
    code += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", FENCED.sub("", text))
    parts = [part.strip() for each in code for part in each.split("|")]
    words = [shlex.split(part)[1:] for part in parts if part.startswith("odradek ") and not READY.match(part)]
    return [CommandLine(command_of(each), frozenset(word for word in each if OPTION.fullmatch(word))) for each in words]


def command_of(words: list[str]) -> tuple[str, ...]:
    """Fails for what is no command."""
    found: click.Command = main
    count = 0
    while isinstance(found, click.Group):
        found = found.commands[words[count]]
        count += 1
    return tuple(words[:count])


@cache
def options_of(command: tuple[str, ...]) -> frozenset[str]:
    """What the help of a command names."""
    asked = [sys.executable, "-m", "odradek", *command, "--help"]
    text = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return frozenset(re.findall(rf"(?<![\w-]){OPTION.pattern}", text))


def named_alone(text: str) -> frozenset[str]:
    """The options with which some code in a sentence begins."""
    return frozenset(re.findall(rf"(?<!`)`({OPTION.pattern})\b", text))


def as_program(code: str, shown: str) -> str:
    whole = f"{code}\n{shown}\n"
    if "await" not in code:
        return whole
    return f"import asyncio\n\nasync def main():\n{indent(whole, '    ')}\nasyncio.run(main())\n"


def run(code: str, broker: OdradekBroker) -> str:
    """Runs it and returns what it printed."""
    assert ADDRESS in code
    done = subprocess.run(
        [sys.executable, "-c", code.replace(ADDRESS, broker.bootstrap)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_every_python_snippet_of_the_section_is_one_of_these() -> None:
    assert sorted(SNIPPETS) == sorted(SHOWN)
    assert section("Connect").count("```python") == len(SNIPPETS)
    elsewhere = section(PROGRAM_SECTION) + section(TEST_SECTION)
    assert README.count("```python") == len(SNIPPETS) + elsewhere.count("```python")


def test_the_program_with_brokers_of_its_own_runs(tmp_path: Path) -> None:
    [code] = [match["code"] for match in FENCED.finditer(section(PROGRAM_SECTION))]
    assert "127.0.0.1:9092" in code
    program = code.replace("127.0.0.1:9092", "127.0.0.1:0")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", done.stdout)
    assert (tmp_path / "orders-data" / "meta.properties").exists()


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka", "confluent-kafka"])
def test_a_snippet_writes_a_record_and_reads_it(client: str, tmp_path: Path) -> None:
    """On a broker of its own, so that what it reads is what it wrote."""
    with OdradekBroker(tmp_path / "data") as broker:
        assert run(as_program(SNIPPETS[client], SHOWN[client]), broker).count(VALUE) == 1


def test_our_own_snippet_writes_a_record(tmp_path: Path) -> None:
    with OdradekBroker(tmp_path / "data") as broker:
        assert "Ack(topic='orders', partition=0, offset=0" in run(
            as_program(SNIPPETS["Odradek"], SHOWN["Odradek"]), broker
        )
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=5000
        )
        with closing(consumer):
            assert next(consumer).value == VALUE.encode()


@pytest.mark.java
@pytest.mark.only_in_compat
def test_the_snippet_of_spark_reads_a_record(tmp_path: Path) -> None:
    with OdradekBroker(tmp_path / "data") as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("orders", key=b"7", value=VALUE.encode()).get(timeout=10)
        assert run(as_program(SNIPPETS["Spark"], SHOWN["Spark"]), broker).count(VALUE) == 1


def test_the_commands_of_the_section_do_what_stands_there(tmp_path: Path) -> None:
    found = examples_of(section(COMMANDS_SECTION))
    assert examples_of(README) == found
    assert len(found) >= 6
    with OdradekBroker(tmp_path / "data") as broker:
        run_all(found, broker)


def test_every_command_line_names_a_command_and_options_that_its_help_has() -> None:
    lines = command_lines(README)
    assert {("serve",), ("topics", "create"), ("produce",), ("consume",)} <= {line.command for line in lines}
    assert {"--listen", "--memory", "--set", "--key-separator"} <= {name for line in lines for name in line.options}
    helps = {line.command: options_of(line.command) for line in lines}
    assert [line for line in lines if not line.options <= helps[line.command]] == []


def test_options_that_the_text_names_are_those_of_the_commands_that_it_is_about() -> None:
    """Of every command of the section about them, and of `odradek serve` elsewhere."""
    about_commands = section(COMMANDS_SECTION)
    commands = {line.command for line in command_lines(about_commands)}
    assert [
        name for name in named_alone(about_commands) if not all(name in options_of(each) for each in commands)
    ] == []
    others = named_alone(README.replace(about_commands, ""))
    assert {"--set", "--config"} <= others <= options_of(("serve",))


def test_values_that_the_readme_sets_are_accepted() -> None:
    """Every `--set` with a name of an option, not `name=value`: the name exists and the value parses."""
    given = re.findall(r"--set (\w+(?:\.\w+)+)=([^\s`]+)", README)
    assert len(given) >= 3
    for name, value in given:
        BROKER_OPTIONS[name].parse(value)


def test_the_readme_names_how_batches_are_checked() -> None:
    """The default deviates from Apache Kafka's, so it has to stand there, with the decision."""
    default = BROKER_OPTIONS["record.validation"].default_text
    assert f"`record.validation` is `{default}` by default" in section("What is not there yet")
    assert "docs/decisions/005-record-validation.md" in README


def test_links_lead_to_files() -> None:
    targets = sorted(set(re.findall(r"\]\(([^)#:]+)\)", README)))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
