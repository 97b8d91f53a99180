"""Damage to a partition's directory, of the kinds that Apache Kafka's DumpLogSegments must find."""

import struct
from pathlib import Path
from typing import Final

DAMAGES: Final = ("flipped bit", "offset gap", "index entry", "time index entry")
SUFFIXES: Final = {"index entry": ".index", "time index entry": ".timeindex"}


def damage(directory: Path, kind: str) -> None:
    """Damages the second segment of the partition, or an index of it; `kind` is one of `DAMAGES`."""
    path = sorted(directory.glob(f"*{SUFFIXES.get(kind, '.log')}"))[1]
    data = bytearray(path.read_bytes())
    match kind:
        case "flipped bit":
            data[len(data) // 2] ^= 1
        case "offset gap":
            second = struct.unpack_from(">i", data, 8)[0] + 12
            struct.pack_into(">q", data, second, struct.unpack_from(">q", data, second)[0] + 1)
        case "index entry":
            struct.pack_into(">i", data, 8, struct.unpack_from(">i", data, 8)[0] + 1)
        case "time index entry":
            struct.pack_into(">q", data, 0, struct.unpack_from(">q", data, 0)[0] + 1)
        case _:
            raise ValueError(kind)
    path.write_bytes(data)
