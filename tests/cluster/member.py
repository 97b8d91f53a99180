"""One life of a member of a group under test: its process, what it owns, and what it was told to be committed."""

from pathlib import Path

from odradek.testing.sim.checking.group_history import Assigned, CommitAnswered, CommitAsked, MemberGone, Revoked
from odradek.testing.sim.checking.history import Record
from tests.cluster.client_session import Job
from tests.cluster.clients import Client


class Member(Client):
    """As far as it was looked at."""

    def __init__(self, job: Job, log_file: Path) -> None:
        super().__init__(job, log_file)
        self.owned: set[int] = set()
        self.has_heard = False
        """It has been assigned something, or nothing, since the last revocation."""
        self.committed: dict[int, int] = {}
        """The highest offsets of which it was told that they are committed."""
        self._asked: dict[int, CommitAsked] = {}

    def look(self) -> None:
        count = len(self.records)
        super().look()
        for record in self.records[count:]:
            self._take(record)

    def _take(self, record: Record) -> None:
        match record:
            case Assigned():
                self.owned |= {*record.partitions}
                self.has_heard = True
            case Revoked():
                self.owned -= {*record.partitions}
                self.has_heard = False
            case MemberGone():
                self.owned.clear()
            case CommitAsked():
                self._asked[record.commit] = record
            case CommitAnswered():
                asked = self._asked.pop(record.commit)
                if not record.error:
                    for partition, offset in asked.offsets:
                        self.committed[partition] = max(offset, self.committed.get(partition, 0))
            case _:
                pass
