"""The metadata store of a world set back to what it was once, under its brokers or when they are dead, and put right.

    older = OlderStore(world, brokers)
    older.save()                      a snapshot, as operators take them
    older.set_back(are_stopped=True)  it stands in place of the store, and another program has moved it on
    older.put_right()                 somebody has noticed

Nobody may take it for the newest. It is set back only when that can be asked of everybody: when each broker has made a
commit since the snapshot, and each data directory knows one. Who knows nothing of what is lost may go on with an older
store, and what he does there belongs to no history.
"""

from typing import Final

from odradek.broker.cluster.lineage import Lineage
from odradek.broker.directories.metadata_revision import load_followed
from odradek.testing.sim.cluster.brokers import DATA_DIRS, Brokers
from odradek.testing.sim.world.machine import Machine
from odradek.testing.sim.world.store import SimStore
from odradek.testing.sim.world.store_state import Saved
from odradek.testing.sim.world.world import World

KEPT: Final = 4
"""So many snapshots are kept; the oldest is taken that will do."""


class OlderStore:
    """See the module."""

    def __init__(self, world: World, brokers: Brokers) -> None:
        self.world = world
        self.brokers = brokers
        self._saved: list[Saved] = []
        self._newest: Saved | None = None

    @property
    def is_in_place(self) -> bool:
        """Whether an older state stands there now."""
        return self._newest is not None

    @property
    def _store(self) -> SimStore:
        assert self.world.store is not None, "brokers share one"
        return self.world.store

    def save(self) -> None:
        self._saved = [*self._saved, self._store.save()][-KEPT:]

    def set_back(self, *, are_stopped: bool) -> None:
        """To the oldest snapshot of which everybody knows better; without one nothing happens."""
        if self.is_in_place:
            return
        for saved in self._saved:
            if all(self._knows_better(node_id, saved) for node_id in self.brokers.ids.values()):
                break
        else:
            self.world.trace.note("#", "older store", "nobody has to know better")
            return
        self.world.happened("store fault", "", f"set back to revision {saved.state.revision}")
        running = [machine for machine in self.brokers.machines if machine.running is not None]
        for machine in running if are_stopped else ():
            self.world.happened("process crash", machine.name)
            machine.kill()
        self._newest = self._store.set_back(saved)
        for machine in running if are_stopped else ():
            self.brokers.start(machine)

    def put_right(self) -> None:
        if (newest := self._newest) is not None:
            self._newest = None
            self.world.happened("store fault", "", "put right")
            self._store.put_right(newest)

    def _knows_better(self, node_id: int, saved: Saved) -> bool:
        """Whether the broker has written since the snapshot, and its disk knows of something that was."""
        commit = Lineage.from_snapshot(self._store.state.read("/")).commits.get(node_id)
        if commit is None or commit.revision <= saved.state.revision:
            return False
        machine = self.brokers.machine(node_id)
        count = self.brokers.directories[node_id - 1]
        return all(_knows_more(machine, directory, saved.state.revision) for directory in DATA_DIRS[:count])


def _knows_more(machine: Machine, directory: str, revision: int) -> bool:
    followed = load_followed(machine.device, directory)
    return any(commit.revision > revision for commit in followed.commits.values())
