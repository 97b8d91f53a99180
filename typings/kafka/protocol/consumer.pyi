from enum import IntEnum
from typing import Any

class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1

class OffsetSpec(IntEnum):
    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3

# The message classes are made at import from JSON; tests only decode and compare with them.
def __getattr__(name: str) -> Any: ...
