"""What a test does to the faults of a cluster, wherever their table is: a `FaultTable`, or the connection to one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from odradek.testing.faults.fault import Fault

__all__ = ["FaultChanges", "FaultFunction", "FaultStatus"]

FaultFunction = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class FaultStatus:
    """What a test may ask of a fault. It survives JSON."""

    count: int
    """To how many requests it was applied."""
    held: int
    """How many wait for it now."""
    is_in_force: bool


class FaultChanges(Protocol):
    """See the module. Faults are known by their numbers. In any thread."""

    def add(self, fault: Fault, function: FaultFunction | None = None) -> int:
        """Puts it in force, and returns its number. `function`: of an INTERCEPT, where the brokers are in this
        process; else NotInThisMode is raised."""
        ...

    def undo(self, fault_id: int) -> None:
        """It is applied no more, and who waits for it goes on, or is disconnected if it was half open. No error for one
        that was undone."""
        ...

    def release(self, fault_id: int, count: int | None = None) -> None:
        """Lets go the requests that it has held for longest, so many; None: all, and holds no more of them."""
        ...

    def clear(self) -> None:
        """Undoes all, and forgets that they were there."""
        ...

    def status(self, fault_id: int) -> FaultStatus:
        """All zero for one that was cleared away."""
        ...

    def in_force(self) -> list[tuple[int, Fault]]:
        """Those that do anything yet, oldest first."""
        ...
