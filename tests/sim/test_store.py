"""The metadata store of the simulator: leases that end, answers that are lost, watches that fall behind.

What it shares with every other store is shown in tests/contract/test_store.py.
"""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

from odradek.broker.cluster.store import Change, Compacted, Conflict, Lease, LeaseLost, Txn
from odradek.testing.sim.world.process import Process
from odradek.testing.sim.world.store import HOST, SimLease, SimStore, SimStoreClient
from tests.sim.support import Bench


class Scene:
    """A store, and two processes with clients of it."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.store = SimStore(self.bench.scheduler, self.bench.network, self.bench.trace, random.Random(1))
        self.one, self.other = self.bench.process("one"), self.bench.process("other")
        self.of_one, self.of_other = self.store.client(self.one, "one"), self.store.client(self.other, "other")
        self.seen: list[object] = []

    def do(self, process: Process, work: Coroutine[Any, Any, object], seconds: float = 5.0) -> None:
        self.bench.do(process, work, seconds)

    async def put(
        self, client: SimStoreClient, key: str, expect: int | None = None, lease: Lease | None = None
    ) -> None:
        """Commits, and keeps what came of it."""
        conditions = {} if expect is None else {key: expect}
        try:
            self.seen.append(await client.commit(Txn(expect=conditions, put={key: b"x"}, lease=lease)))
        except (OSError, Conflict, LeaseLost) as error:
            self.seen.append(type(error).__name__)

    async def watch(self, client: SimStoreClient) -> None:
        try:
            async for change in client.watch("/", 0):
                self.seen.append(change.revision)
        except Compacted:
            self.seen.append("Compacted")

    @property
    def keys(self) -> list[str]:
        return list(self.store.state.entries)


def test_commits_of_two_processes_are_one_after_the_other() -> None:
    scene = Scene()
    scene.do(scene.one, scene.put(scene.of_one, "/a", expect=0))
    scene.do(scene.other, scene.put(scene.of_other, "/a", expect=0))
    assert scene.seen == [1, "Conflict"]


def test_a_lease_ends_unless_it_is_renewed() -> None:
    scene = Scene()

    async def hold(renewals: int) -> None:
        lease = await scene.of_one.lease(500)
        assert isinstance(lease, SimLease)
        scene.seen.append((lease.ttl_ms, lease.lapses))
        await scene.put(scene.of_one, "/brokers/1", lease=lease)
        for _ in range(renewals):
            await asyncio.sleep(1.0)
            await lease.renew()
        await asyncio.sleep(2.5)
        try:
            await lease.renew()
        except LeaseLost:
            scene.seen.append("lost")

    scene.one.start(hold(3), "hold")
    scene.bench.run(4.5)
    assert scene.keys == ["/brokers/1"]
    scene.bench.run(5.0)
    assert scene.keys == []
    assert scene.seen == [(2_000, True), 1, "lost"]


def test_the_lease_of_a_dead_process_ends_by_itself() -> None:
    scene = Scene()

    async def hold() -> None:
        await scene.put(scene.of_one, "/brokers/1", lease=await scene.of_one.lease(2_000))

    scene.one.start(hold(), "hold")
    scene.bench.run(1.0)
    scene.one.kill()
    scene.bench.run(0.5)
    assert scene.keys == ["/brokers/1"]
    scene.bench.run(2.0)
    assert scene.keys == []


def test_what_cannot_be_reached_is_not_changed() -> None:
    scene = Scene()
    scene.bench.network.cut("one", HOST)
    scene.do(scene.one, scene.put(scene.of_one, "/a"))
    scene.store.stop()
    scene.do(scene.other, scene.put(scene.of_other, "/b"))
    assert scene.seen == ["ConnectionError", "ConnectionError"]
    assert scene.keys == []


def test_a_commit_whose_answer_is_lost_has_happened() -> None:
    scene = Scene()
    scene.store.faults("one").answer_lost_share = 1.0
    scene.do(scene.one, scene.put(scene.of_one, "/a"))
    scene.bench.network.cut(HOST, "other")
    scene.do(scene.other, scene.put(scene.of_other, "/b"))
    assert scene.seen == ["ConnectionError", "ConnectionError"]
    assert scene.keys == ["/a", "/b"]


def test_a_commit_that_is_held_happens_even_after_its_sender_has_died() -> None:
    scene = Scene()
    scene.store.faults("one").hold_ms = 5_000.0
    scene.one.start(scene.put(scene.of_one, "/a"), "put")
    scene.bench.run(0.01)
    scene.one.kill()
    assert scene.keys == []
    scene.bench.run(6.0)
    assert scene.keys == ["/a"]
    assert scene.seen == []


def test_a_watch_that_is_cut_goes_on_where_it_stood() -> None:
    scene = Scene()
    scene.one.start(scene.watch(scene.of_one), "watch")
    scene.bench.network.cut(HOST, "one")
    for key in ("/a", "/b", "/c"):
        scene.do(scene.other, scene.put(scene.of_other, key), 1.0)
    assert scene.seen == [1, 2, 3]  # what the other was answered
    scene.bench.network.heal()
    scene.bench.run()
    assert scene.seen == [1, 2, 3, 1, 2, 3]
    assert scene.one.errors == []


def test_a_watch_that_is_behind_when_the_store_compacts_is_told() -> None:
    scene = Scene()
    scene.bench.network.cut(HOST, "one")
    scene.one.start(scene.watch(scene.of_one), "watch")
    scene.do(scene.other, scene.put(scene.of_other, "/a"), 1.0)
    scene.store.compact()
    scene.bench.network.heal()
    scene.bench.run()
    assert scene.seen == [1, "Compacted"]


def test_leases_begin_anew_when_the_store_is_back() -> None:
    scene = Scene()

    async def hold() -> None:
        await scene.put(scene.of_one, "/brokers/1", lease=await scene.of_one.lease(2_000))

    scene.do(scene.one, hold(), 1.0)
    scene.store.stop()
    scene.bench.run(10.0)
    scene.store.start()
    scene.bench.run(1.5)
    assert scene.keys == ["/brokers/1"]
    scene.bench.run(1.0)
    assert scene.keys == []


def test_a_read_sees_what_was_committed_when_it_arrived() -> None:
    scene = Scene()

    async def read() -> None:
        snapshot = await scene.of_one.read("/")
        scene.seen.append((snapshot.revision, list(snapshot.entries)))

    scene.do(scene.other, scene.put(scene.of_other, "/a"))
    scene.do(scene.one, read())
    assert scene.seen == [1, (1, ["/a"])]


def test_a_change_says_what_it_did() -> None:
    scene = Scene()
    changes: list[Change] = []

    async def watch() -> None:
        async for change in scene.of_one.watch("/a", 0):
            changes.append(change)  # noqa: PERF401 - the loop is what is shown

    scene.one.start(watch(), "watch")
    scene.do(scene.other, scene.put(scene.of_other, "/a/1"))
    scene.do(scene.other, scene.put(scene.of_other, "/b/1"))
    assert [[event.key for event in change.events] for change in changes] == [["/a/1"]]


def test_a_held_commit_is_applied_when_it_is_let_go() -> None:
    """Whatever became of its sender meanwhile, and though others have come first."""
    scene = Scene()
    hold = scene.store.hold("one", lambda txn: "/a" in txn.put)
    scene.one.start(scene.put(scene.of_one, "/a"), "put")
    scene.one.start(scene.put(scene.of_one, "/b"), "put")
    scene.do(scene.other, scene.put(scene.of_other, "/c"), 0.5)
    assert (len(hold), sorted(scene.keys)) == (1, ["/b", "/c"])
    scene.one.kill()
    hold.release()
    assert (len(hold), scene.keys[-1]) == (0, "/a")


def test_an_answer_may_be_kept_back_when_a_commit_is_let_go() -> None:
    scene = Scene()
    hold = scene.store.hold("one", lambda txn: True)
    scene.one.start(scene.put(scene.of_one, "/a"), "put")
    scene.bench.run(0.2)
    hold.release(is_answered=False)
    scene.bench.run(0.2)
    assert (scene.seen, scene.keys) == ([], ["/a"])
    scene.bench.run(5.0)
    assert scene.seen == ["ConnectionError"]


def test_who_made_a_change_is_told() -> None:
    scene = Scene()
    told: list[tuple[int, str]] = []
    scene.store.changed = lambda change, host: told.append((change.revision, host))

    async def lease() -> None:
        await scene.put(scene.of_one, "/l", lease=await scene.of_one.lease(2_000))

    scene.do(scene.one, lease(), 0.5)
    scene.store.lapse("/l")
    scene.store.lapse("/unknown")
    assert (told, scene.keys) == ([(1, "one"), (2, "")], [])


def test_when_all_is_repaired_a_watch_that_was_far_behind_is_not_any_more() -> None:
    scene = Scene()
    scene.store.faults("one").watch_hold_ms = 1e9
    scene.one.start(scene.watch(scene.of_one), "watch")
    scene.do(scene.other, scene.put(scene.of_other, "/a"), 1.0)
    assert scene.seen == [1]  # what the other was answered
    scene.store.heal()
    scene.bench.run()
    assert scene.seen == [1, 1]


# -- older states -----------------------------------------------------------------------------------------------------


def test_a_store_that_is_set_back_is_older_at_a_higher_revision_until_put_right() -> None:
    scene = Scene()
    scene.do(scene.one, scene.put(scene.of_one, "/a"))
    saved = scene.store.save()
    for key in ("/b", "/c"):
        scene.do(scene.one, scene.put(scene.of_one, key))
    present = scene.store.set_back(saved)
    assert scene.store.state.revision > present.state.revision == 3
    assert list(scene.store.state.read("/").entries) == ["/a"], "what others write is under no prefix of ours"
    scene.do(scene.other, scene.put(scene.of_other, "/x"))
    scene.store.put_right(present)
    assert scene.keys == ["/a", "/b", "/c"]
    assert scene.store.state.revision == 3


def test_a_watch_begins_anew_on_what_stands_there_and_says_so_before_anything_else() -> None:
    scene = Scene()
    saved = scene.store.save()
    scene.one.start(scene.watch(scene.of_one), "watch")
    for key in ("/a", "/b"):
        scene.do(scene.other, scene.put(scene.of_other, key), 1.0)
    scene.seen.clear()

    async def see_events() -> None:
        async for change in scene.of_other.watch("/", 2):
            scene.seen.append((change.revision, [event.key for event in change.events]))

    scene.other.start(see_events(), "watch too")
    scene.bench.run(1.0)
    present = scene.store.set_back(saved)
    scene.bench.run(1.0)
    assert (2, []) in scene.seen
    scene.seen.clear()
    scene.do(scene.other, scene.put(scene.of_other, "/x"), 1.0)
    assert sorted(map(str, scene.seen)) == ["(4, ['/x'])", "4", "4"], "who wrote it, and both watches"
    scene.seen.clear()
    scene.store.put_right(present)
    scene.bench.run(1.0)
    assert sorted(map(str, scene.seen)) == ["(4, [])", "4"]


def test_what_was_on_its_way_to_a_store_never_comes_to_another_one() -> None:
    scene = Scene()
    saved = scene.store.save()
    scene.store.faults("one").hold_ms = 1_000.0
    scene.one.start(scene.put(scene.of_one, "/a"), "put")
    scene.bench.run(0.001)
    scene.store.set_back(saved)
    scene.bench.run(5.0)
    assert "/a" not in scene.keys
    assert scene.seen == ["ConnectionError"]


def test_a_set_back_ends_leases_granted_since_with_their_keys_and_keeps_older_ones() -> None:
    scene = Scene()

    async def hold(client: SimStoreClient, key: str) -> None:
        lease = await client.lease(2_000)
        await scene.put(client, key, lease=lease)
        while True:
            try:
                await lease.renew()
            except LeaseLost:
                scene.seen.append(f"{key} is lost")
                return
            await asyncio.sleep(0.5)

    scene.one.start(hold(scene.of_one, "/kept"), "hold")
    scene.bench.run(1.0)
    saved = scene.store.save()
    scene.other.start(hold(scene.of_other, "/gone"), "hold")
    scene.bench.run(1.0)
    before = scene.store.state.grant()
    scene.store.set_back(saved)
    scene.bench.run(5.0)
    assert [key for key in scene.keys if key.startswith("/")] == ["/kept"]
    assert scene.seen[-1] == "/gone is lost"
    assert scene.store.state.grant() > before, "no lease has the id of another one"
