"""Examples of the command line that a page shows: its commands run, in their order, and print what stands there.

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
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from processes.odradek_broker import OdradekBroker

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OVERWRITTEN = re.compile(r"[^\n\r]*\r|\x1b\[K")
"""What a line that shows progress has shown before, and what clears the rest of it."""
TIMEOUT_S = 60.0


class Example(NamedTuple):
    command: str
    shown: str


def examples_of(page: str) -> list[Example]:
    """The commands of a page in Markdown, in their order."""
    found: list[Example] = []
    for block in BLOCK.findall(page):
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
    text = OVERWRITTEN.sub("", shown.decode().replace("\r\n", "\n"))
    return text + (f"[exit code {code}]\n" if code else "")


def pattern(shown: str) -> re.Pattern[str]:
    """What the page shows, as what is expected."""
    escaped = re.escape(shown).replace("…", ".+")
    return re.compile(re.sub(r"(?:\\ )+", r"\\s+", re.sub(r"(?m)^(?:\\ )+", r"\\s*", escaped)))


def run_all(examples: Iterable[Example], broker: OdradekBroker) -> None:
    """Fails at the first that prints something else."""
    for command, expected in examples:
        printed = run(command, broker.bootstrap).replace(str(broker.port), "9092")
        assert pattern(expected).fullmatch(printed), f"$ {command}\n{printed}\ninstead of\n{expected}"
