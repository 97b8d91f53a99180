"""The processes in which brokers compact logs, as another process sees them."""

from pathlib import Path


def workers_of(broker_pid: int) -> list[int]:
    """Those that run their program already: one that is stopped before holds up the broker that starts it."""
    found: list[int] = []
    for path in Path(f"/proc/{broker_pid}/task").glob("*/children"):
        try:
            children = map(int, path.read_text().split())
            found += [child for child in children if "compaction_process" in Path(f"/proc/{child}/cmdline").read_text()]
        except OSError:  # it has ended since
            continue
    return found
