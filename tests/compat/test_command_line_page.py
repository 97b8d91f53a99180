"""docs/command-line.md shows what really happens: its commands run, in their order, and print what stands there.

Each runs on a terminal, as its reader would see it. `…` stands for what differs each time; addresses are those of the
test's broker, and how many spaces divide columns, where a number has another width, is not compared.
"""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from client.commands import failures
from tests.odradek_broker import OdradekBroker

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text()
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TIMEOUT_S = 60.0


class Example(NamedTuple):
    command: str
    shown: str


def examples() -> list[Example]:
    found: list[Example] = []
    for block in BLOCK.findall(PAGE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Example(command, shown))
    return found


def run(command: str, bootstrap: str) -> str:
    """What a terminal shows of it, and its exit code unless that is 0."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"ODRADEK_BOOTSTRAP_SERVER": bootstrap, "PATH": path, "PYTHONPATH": str(ROOT)}
    controller, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            ["bash", "-c", f"odradek() {{ {sys.executable} -m odradek \"$@\"; }}\n{command}"],
            stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=environment, cwd=ROOT,
        )  # fmt: skip
        os.close(terminal)
        shown = b""
        deadline = time.monotonic() + TIMEOUT_S
        while select.select([controller], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                part = os.read(controller, 65_536)
            except OSError:  # Linux says EIO when the other end is closed
                break
            shown += part
        code = process.wait(TIMEOUT_S)
    finally:
        os.close(controller)
    text = shown.decode().replace("\r\n", "\n")
    return text + (f"[exit code {code}]\n" if code else "")


def pattern(shown: str) -> re.Pattern[str]:
    """What the page shows, as what is expected."""
    escaped = re.escape(shown).replace("…", ".+")
    return re.compile(re.sub(r"(?:\\ )+", r"\\s+", re.sub(r"(?m)^(?:\\ )+", r"\\s*", escaped)))


def test_every_command_of_the_page_does_what_stands_there(tmp_path: Path) -> None:
    found = examples()
    assert len(found) >= 30
    with OdradekBroker(tmp_path / "data") as broker:
        for command, expected in found:
            printed = run(command, broker.bootstrap).replace(str(broker.port), "9092")
            assert pattern(expected).fullmatch(printed), f"$ {command}\n{printed}\ninstead of\n{expected}"


def test_every_command_has_its_example() -> None:
    commands = {" ".join(re.findall(r"odradek ([a-z]+(?: [a-z]+)?)", example.command)) for example in examples()}
    shown = " ".join(sorted(commands))
    for group, verbs in {"topics": "list create describe alter delete", "configs": "describe set delete"}.items():
        for verb in verbs.split():
            assert f"{group} {verb}" in shown
    for command in ("produce", "consume", "brokers"):
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
