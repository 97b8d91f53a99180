"""Which broker has applied which revision of the metadata, as the controller knows it. Pure.

Brokers say so with each heartbeat (`current_metadata_offset`), and at once when ACLs have changed. A change counts
everywhere once each broker that is registered, at its present epoch, has said that it applied the change, and each one
that could act on what it knew before does so no more:

- one whose registration has gone: `term_ms` after this controller saw that (membership/standing.py);
- one that was gone before this controller was elected: as long after its election, for it does not know when that was.

What was said to a former controller does not count; brokers say it again to the next one within a heartbeat.
"""

from typing import NamedTuple

from odradek.broker.cluster.image import ClusterImage, Delta


class _Report(NamedTuple):
    broker_epoch: int
    revision: int


class Behind(NamedTuple):
    """Who is waited for."""

    brokers: tuple[int, ...]
    """Those that are registered, and have not said that they applied it."""
    until_ms: float
    """Before that, brokers that are gone may still go by what they knew; 0.0 for none."""


class AppliedRevisions:
    """For one broker, which may be the controller or become it."""

    def __init__(self, node_id: int, term_ms: int, now_ms: float) -> None:
        self._node_id = node_id
        self._term_ms = term_ms
        self._reports: dict[int, _Report] = {}
        self._gone_ms: dict[int, float] = {}
        """When brokers were seen to go that have not come back; for that long."""
        self._began_ms = now_ms
        """When the present controller was elected, as far as was seen."""

    def follow(self, image: ClusterImage, delta: Delta, now_ms: float) -> None:
        """The metadata have changed."""
        if delta.is_controller_changed:
            self._reports.clear()
            self._began_ms = now_ms
        for broker_id in delta.brokers:
            if broker_id in image.brokers:
                self._gone_ms.pop(broker_id, None)
            else:
                self._gone_ms[broker_id] = now_ms
        if delta.brokers:
            self._gone_ms = {
                broker_id: gone_ms for broker_id, gone_ms in self._gone_ms.items() if gone_ms + self._term_ms > now_ms
            }

    def heard(self, broker_id: int, broker_epoch: int, revision: int) -> None:
        """A broker has applied everything up to there."""
        self._reports[broker_id] = _Report(broker_epoch, revision)

    def behind(self, revision: int, image: ClusterImage, *, may_be_others: bool) -> Behind:
        """Who may not know `revision` yet. `may_be_others`: whether brokers can have been gone and forgotten before
        this controller was elected, which is not so in a store that only this process has."""
        waited_for = tuple(
            broker_id
            for broker_id, broker in image.brokers.items()
            if broker_id != self._node_id and not self._has_applied(broker_id, broker.epoch, revision)
        )
        since_ms = [*self._gone_ms.values()]
        if may_be_others or any(broker_id != self._node_id for broker_id in image.registered):
            since_ms.append(self._began_ms)
        return Behind(waited_for, max(since_ms) + self._term_ms if since_ms else 0.0)

    def _has_applied(self, broker_id: int, broker_epoch: int, revision: int) -> bool:
        report = self._reports.get(broker_id)
        return report is not None and report.broker_epoch == broker_epoch and report.revision >= revision
