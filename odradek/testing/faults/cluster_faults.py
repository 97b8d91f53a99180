"""What all brokers of one cluster share of faults: the table of those in force, and the requests that were recorded."""

from typing import Final

from odradek.testing.faults.fault_table import FaultTable
from odradek.testing.faults.request_recorder import RequestRecorder

__all__ = ["ClusterFaults"]


class ClusterFaults:
    """See the module."""

    def __init__(self) -> None:
        self.table: Final = FaultTable()
        self.recorder: Final = RequestRecorder()
