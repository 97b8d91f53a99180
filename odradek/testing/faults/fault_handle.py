"""One fault as the test that has put it in holds it.

with kafka.faults.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=3) as fault:
    ...
    fault.wait_for_count(3)         # in asyncio: await
"""

from types import TracebackType
from typing import Final, Self

from odradek.testing.faults.fault import Fault
from odradek.testing.faults.fault_changes import FaultChanges
from odradek.testing.waiting import TIMEOUT_S, wait_in_thread, wait_until

__all__ = ["AnyFaultHandle", "AsyncFaultHandle", "FaultHandle"]


class AnyFaultHandle:
    """What does not wait. A context manager: at its end the fault is undone."""

    def __init__(self, table: FaultChanges, fault_id: int, fault: Fault) -> None:
        self._table = table
        self.fault_id: Final = fault_id
        self.fault: Final = fault

    def __str__(self) -> str:
        """What it does, and how often it did so far."""
        return self.fault.text(self.count)

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def count(self) -> int:
        """To how many requests it was applied; of a stalled follower, how often one was taken out of an in-sync set."""
        return self._table.status(self.fault_id).count

    @property
    def held(self) -> int:
        """How many requests wait for it now."""
        return self._table.status(self.fault_id).held

    @property
    def is_in_force(self) -> bool:
        return self._table.status(self.fault_id).is_in_force

    def undo(self) -> None:
        """It is applied no more. What it holds goes on; connections that are half open are closed. No error for one
        that was undone."""
        self._table.undo(self.fault_id)

    def release(self, count: int | None = None) -> None:
        """Lets go the requests that it has held for longest, so many. None: all, and it holds no more of them."""
        self._table.release(self.fault_id, count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()

    def _applied(self, count: int) -> bool:
        """Raises AssertionError while it is not so."""
        assert self.count >= count, str(self)
        return True

    def _holds(self, count: int) -> bool:
        """Raises AssertionError while it is not so."""
        assert self.held >= count, f"it holds {self.held}; {self}"
        return True


class FaultHandle(AnyFaultHandle):
    """For a test that may block."""

    def wait_for_count(self, count: int = 1, timeout_s: float = TIMEOUT_S) -> None:
        """Returns when it was applied so often. Raises WaitedInVain."""
        wait_in_thread(lambda: self._applied(count), f"fault applied {count} time(s)", timeout_s)

    def wait_until_held(self, count: int = 1, timeout_s: float = TIMEOUT_S) -> None:
        """Returns when so many requests wait for it. Raises WaitedInVain."""
        wait_in_thread(lambda: self._holds(count), f"{count} request(s) held", timeout_s)


class AsyncFaultHandle(AnyFaultHandle):
    """For a test in asyncio."""

    async def wait_for_count(self, count: int = 1, timeout_s: float = TIMEOUT_S) -> None:
        """As `FaultHandle.wait_for_count`."""

        async def is_so() -> bool:
            return self._applied(count)

        await wait_until(is_so, f"fault applied {count} time(s)", timeout_s)

    async def wait_until_held(self, count: int = 1, timeout_s: float = TIMEOUT_S) -> None:
        """As `FaultHandle.wait_until_held`."""

        async def is_so() -> bool:
            return self._holds(count)

        await wait_until(is_so, f"{count} request(s) held", timeout_s)
