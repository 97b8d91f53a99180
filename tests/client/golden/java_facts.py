"""What Apache Kafka's Java clients say of themselves, as our tests compare with it: settings, rules, errors, bytes.

`read` gives java_facts.json beside this module. `python -m tests.client.golden.java_facts` has Java write it anew, by
java_facts.jsh, from the jars that `processes/jars.py` names.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from processes.jars import APACHE_KAFKA, java, resolve

FILE = Path(__file__).with_suffix(".json")
SCRIPT = Path(__file__).with_suffix(".jsh")
MARK = "FACTS "
OBJECTS = ("admin", "consumer", "errors", "producer", "serializers")


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def ask_java() -> str:
    """The text of the file, as Java gives the facts now."""
    command = [str(Path(java()).with_name("jshell")), "--class-path", os.pathsep.join(map(str, resolve(*APACHE_KAFKA)))]
    command += ["-R-Dorg.slf4j.simpleLogger.defaultLogLevel=error", str(SCRIPT)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120)
    # jshell ends with 0 after an error, too.
    lines = [line.removeprefix(MARK) for line in ended.stdout.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        raise RuntimeError(ended.stdout + ended.stderr)
    facts = json.loads(lines[0])
    # A line for each row, so that a change can be read.
    parts = [f'"{name}": {_object(facts[name]) if name in OBJECTS else _list(facts[name])}' for name in sorted(facts)]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _object(part: dict[str, Any]) -> str:
    lines = [f"  {json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in sorted(part.items())]
    return "{\n" + ",\n".join(lines) + "\n}"


def _list(part: list[Any]) -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(row, sort_keys=True)}" for row in part) + "\n]"


if __name__ == "__main__":
    FILE.write_text(ask_java())
