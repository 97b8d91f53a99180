"""`odradek …` as processes, for one cluster: what they print, and how they end."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.compat.clusters import Cluster
from tests.signals import heeding_ctrl_c

REPOSITORY = Path(__file__).resolve().parents[2]
ODRADEK = [sys.executable, "-m", "odradek"]


class Commands:
    """`odradek …` for one cluster."""

    def __init__(self, running: Cluster) -> None:
        self.running = running
        self.bootstrap = running.bootstrap
        self.environment = os.environ | {
            "ODRADEK_BOOTSTRAP_SERVER": running.bootstrap,
            "PYTHONPATH": str(REPOSITORY),
            "COLUMNS": "120",
        }

    def run(self, *arguments: str, given: bytes = b"", code: int = 0) -> bytes:
        """What it printed. Fails when it ends with another code."""
        done = subprocess.run(
            [*ODRADEK, *arguments], input=given, capture_output=True, check=False, timeout=60, env=self.environment
        )
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr.decode()[-4000:])
        self.said = done.stderr.decode()
        assert "Traceback" not in self.said
        if code in (1, 3):
            assert self.said.splitlines()[-1].startswith("Error: ")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def start(self, *arguments: str, stdin: int | None = None, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        command = heeding_ctrl_c(*ODRADEK, *arguments)
        return subprocess.Popen(command, env=self.environment, stdin=stdin, stdout=stdout, stderr=stderr)

    def on_terminal(self, *arguments: str) -> str:
        """What a person sees."""
        controller, terminal = pty.openpty()
        try:
            process = self.start(*arguments, stdin=terminal, stdout=terminal, stderr=terminal)
            os.close(terminal)
            shown = b""
            deadline = time.monotonic() + 60
            while select.select([controller], [], [], max(0.0, deadline - time.monotonic()))[0]:
                try:
                    part = os.read(controller, 65_536)
                except OSError:  # Linux says EIO when the other end is closed
                    break
                if not part:
                    break
                shown += part
            assert process.wait(60) == 0, shown
            return shown.decode().replace("\r\n", "\n")
        finally:
            os.close(controller)
