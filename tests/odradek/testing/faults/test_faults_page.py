"""The table of faults in docs/testing.md has each that there is, and each call in it is one that can be made."""

import inspect
import re
from pathlib import Path
from typing import Final

from odradek.testing.faults.faults import Faults
from odradek.testing.kafka import Kafka, KafkaBroker

PAGE: Final = Path(__file__).parents[4] / "docs" / "testing.md"
OTHERS: Final = {"clear"}
OPERATIONS: Final = {"move_leader", "move_coordinator", "fence", "expire_group_member"}
BROKERS: Final = {"kill", "start", "pause", "resume", "stop"}


def test_the_table_has_each_fault_and_no_other() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "kafka." in line]
    calls = {name for row in rows for name in re.findall(r"kafka\.faults\.(\w+)\(", row)}
    assert calls == {name for name, _ in inspect.getmembers(Faults, inspect.isfunction) if name[0] != "_"} - OTHERS
    operations = {name for row in rows for name in re.findall(r"kafka\.(\w+)\(", row)}
    assert operations >= OPERATIONS
    assert all(hasattr(Kafka, name) for name in operations)
    of_brokers = {name for row in rows if "kafka.brokers[1]" in row for name in re.findall(r"\.(\w+)\(\)", row)}
    assert of_brokers == BROKERS == BROKERS & set(dir(KafkaBroker))
