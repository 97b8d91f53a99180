"""A command that says what Java it is, and does nothing else."""

import stat
from pathlib import Path

import pytest


def set_java_home(monkeypatch: pytest.MonkeyPatch, home: Path, version: str) -> Path:
    """Has JAVA_HOME name one of that version in there; the command."""
    command = home / "bin" / "java"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" 2024-01-16' >&2\n""")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return command
