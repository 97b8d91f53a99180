"""In which order rounds begin: those that take minutes first, each in a process of its own.

Pytest's processes share the rounds out by `--dist worksteal`: each gets an equal piece of the list, and takes from the
others' ends when it has finished its own. What a process is about to begin stays with it, so that two rounds of minutes
one after the other, at the end of a random order, kept one process busy for minutes longer than the rest.
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(minutes: Sequence[T], others: Sequence[T], processes: int) -> list[T]:
    """All of them, each of the `minutes` where another process's piece begins."""
    order = list(others)
    begins = piece_begins(len(minutes) + len(others), processes)
    for index, each in enumerate(minutes):
        order.insert(begins[index % processes], each)
    return order


def piece_begins(count: int, processes: int) -> list[int]:
    """As `WorkStealingScheduling.check_schedule` of pytest-xdist has it: each gets its share of what is left."""
    begins = [0]
    for left in range(processes, 1, -1):
        begins.append(begins[-1] + (count - begins[-1]) // left)
    return begins
