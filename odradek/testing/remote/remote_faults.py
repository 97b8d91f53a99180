"""The faults of a cluster whose brokers are threads of another process: each change is a call (calls.py)."""

from typing import Any, cast

from odradek.testing.faults.fault import Fault
from odradek.testing.faults.fault_changes import FaultFunction, FaultStatus
from odradek.testing.remote.calls import CallsToProcess
from odradek.testing.running_cluster import NotInThisMode


class RemoteFaultTable:
    """See the module: `FaultChanges`."""

    def __init__(self, calls: CallsToProcess) -> None:
        self._calls = calls

    def add(self, fault: Fault, function: FaultFunction | None = None) -> int:
        if function is not None:
            raise NotInThisMode(
                "intercept has brokers call a function of the test, and they are in another process: start the cluster "
                "without subprocess, or use a fault that is no function"
            )
        return cast(int, self._call("faults.add", fault=fault))

    def undo(self, fault_id: int) -> None:
        self._call("faults.undo", fault_id=fault_id)

    def release(self, fault_id: int, count: int | None = None) -> None:
        self._call("faults.release", fault_id=fault_id, count=count)

    def clear(self) -> None:
        self._call("faults.clear")

    def status(self, fault_id: int) -> FaultStatus:
        return cast(FaultStatus, self._call("faults.status", fault_id=fault_id))

    def in_force(self) -> list[tuple[int, Fault]]:
        return cast(list[tuple[int, Fault]], self._call("faults.in_force"))

    def _call(self, name: str, **arguments: Any) -> Any:
        return self._calls.ask({"call": name, "arguments": arguments})
