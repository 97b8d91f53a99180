"""docs/command-line.md shows what really happens: its commands run, in their order, and print what stands there.

How an example runs, and what is compared, stands in `console.py`.
"""

import re
from pathlib import Path

import pytest

from odradek.client.commands import failures
from processes.odradek_broker import OdradekBroker
from tests.compat.console import Example, examples_of, run_all

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text()


def examples() -> list[Example]:
    return examples_of(PAGE)


@pytest.mark.only_in_compat
def test_every_command_of_the_page_does_what_stands_there(tmp_path: Path) -> None:
    found = examples()
    assert len(found) >= 30
    with OdradekBroker(tmp_path / "data") as broker:
        run_all(found, broker)


def test_every_command_has_its_example() -> None:
    commands = {" ".join(re.findall(r"odradek ([a-z]+(?: [a-z]+)?)", example.command)) for example in examples()}
    shown = " ".join(sorted(commands))
    groups = {
        "topics": "list create describe alter delete",
        "configs": "describe set delete",
        "groups": "list describe members reset delete",
        "transactions": "list describe abort",
    }
    for group, verbs in groups.items():
        for verb in verbs.split():
            assert f"{group} {verb}" in shown
    for command in ("produce", "consume", "producers", "brokers", "cluster status", "dump"):
        assert command in shown


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGE)
    assert targets
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []


def test_the_exit_codes_are_those_of_the_commands() -> None:
    cells = re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE)
    listed = {int(number) for cell in cells for number in cell.split(", ")}
    assert listed == {
        failures.DONE, failures.REFUSED, failures.USAGE, failures.NO_ANSWER, failures.INTERRUPTED,
        failures.TERMINATED, failures.OUTPUT_CLOSED,
    }  # fmt: skip
