"""The store as a broker's process writes it: each commit carries its stamp, and none changes an older store."""

import asyncio
from contextlib import aclosing

import pytest

from odradek.broker.cluster.keys import commit_key, incarnation_key
from odradek.broker.cluster.lineage import Commit, Incarnations, Lineage, contradiction
from odradek.broker.cluster.stamped_store import StampedStore
from odradek.broker.cluster.store import OPERATIONS_MAX, Conflict, MetadataStore, StoreWentBack, Superseded, Txn
from tests.broker.cluster.faulty_store import Fate, FaultyStore
from tests.broker.cluster.old_copies import OldStore


async def lineage_of(store: MetadataStore) -> Lineage:
    return Lineage.from_snapshot(await store.read("/"))


async def begun(store: MetadataStore, incarnation: str, node_id: int = 1) -> StampedStore:
    """After its first commit."""
    stamped = StampedStore(store, node_id, incarnation)
    stamped.begin(await lineage_of(store))
    await stamped.commit(Txn(put={"/begun": b""}))
    return stamped


async def test_each_commit_is_the_newest_of_its_process() -> None:
    store = OldStore()
    stamped = await begun(store, "a")
    revision = 0
    for number, txn in enumerate(
        (Txn(put={"/x": b""}), Txn(delete=("/absent",)), Txn(lasting={"/y": b""}), Txn(delete=("/x",))), start=2
    ):
        revision = await stamped.commit(txn)
        assert (await lineage_of(store)).commits == {1: Commit("a", number, revision)}
        assert revision == (await store.read("/")).revision
    assert await stamped.commit(Txn(expect={"/x": 0})) == revision, "which changes nothing"
    assert list((await store.read("/")).entries) == ["/begun", commit_key(1, "a"), incarnation_key(1), "/y"]


async def test_the_stamp_of_a_commit_under_a_lease_outlives_the_lease() -> None:
    store = OldStore()
    stamped = await begun(store, "a")
    lease = await stamped.lease(2_000)
    revision = await stamped.commit(Txn(put={"/brokers/1": b""}, lease=lease))
    await lease.revoke()
    assert "/brokers/1" not in (await store.read("/")).entries
    assert (await lineage_of(store)).commits == {1: Commit("a", 2, revision)}


async def test_the_next_process_says_where_the_one_before_has_ended() -> None:
    store = OldStore()
    first = await begun(store, "a")
    other = await begun(store, "x", node_id=2)
    end = await first.commit(Txn(put={"/x": b""}))
    await other.commit(Txn(put={"/y": b""}))
    second = StampedStore(store, 1, "b")
    second.begin(await lineage_of(store))
    lease = await second.lease(2_000)
    revision = await second.commit(Txn(expect={"/z": 0}, put={"/brokers/1": b""}, delete=("/y",), lease=lease))
    assert revision == (await store.read("/")).revision, "in one commit, whatever that is"
    await lease.revoke()
    found = await lineage_of(store)
    assert found.incarnations[1] == Incarnations("b", (("a", end),))
    assert found.commits[1] == Commit("b", 1, revision)
    left = [key for key in (await store.read("/")).entries if key.startswith("/cluster/commits/")]
    assert left == [commit_key(1, "b"), commit_key(2, "x")]


async def test_a_first_commit_without_room_for_more_comes_behind_one_of_its_own() -> None:
    store = OldStore()
    stamped = StampedStore(store, 1, "a")
    stamped.begin(Lineage())
    put = {f"/{number:03}": b"" for number in range(OPERATIONS_MAX)}
    assert await stamped.commit(Txn(expect=dict.fromkeys(put, 0), put=put)) == 2
    assert (await lineage_of(store)).commits == {1: Commit("a", 2, 2)}


async def test_commits_that_are_begun_at_once_are_of_one_process() -> None:
    store = OldStore()
    way = FaultyStore(store)
    stamped = StampedStore(way, 1, "a")
    stamped.begin(Lineage())
    way.fates.append(Fate.HELD)
    commits = [asyncio.ensure_future(stamped.commit(Txn(put={f"/{number}": b""}))) for number in range(2)]
    await asyncio.sleep(0)
    assert len(way.commits) == 1
    await way.deliver()
    assert await asyncio.gather(*commits) == [1, 2]
    assert (await lineage_of(store)).incarnations == {1: Incarnations("a")}


async def test_a_first_commit_without_an_answer_is_found_again() -> None:
    store = OldStore()
    way = FaultyStore(store)
    stamped = StampedStore(way, 1, "a")
    stamped.begin(Lineage())
    way.fates.append(Fate.LOST)
    with pytest.raises(OSError, match="the answer is lost"):
        await stamped.commit(Txn(put={"/x": b""}))
    assert await stamped.commit(Txn(put={"/y": b""})) == 2
    assert (await lineage_of(store)).incarnations == {1: Incarnations("a")}


async def test_what_the_last_process_had_under_way_comes_before_the_next_begins_or_never() -> None:
    store = OldStore()
    way = FaultyStore(store)
    first = await begun(way, "a")
    way.fates.extend([Fate.LATE, Fate.LATE])
    for key in ("/early", "/late"):
        with pytest.raises(OSError, match="does not answer"):
            await first.commit(Txn(put={key: b""}))
    known = await lineage_of(store)
    early, late = way.commits[-2:]
    await store.commit(early)
    second = StampedStore(store, 1, "b")
    second.begin(known)
    with pytest.raises(Conflict):
        await second.commit(Txn(put={"/x": b""}))
    await second.commit(Txn(put={"/x": b""}))
    assert (await lineage_of(store)).incarnations[1].past == (("a", 2),)
    with pytest.raises(Conflict):
        await store.commit(late)
    assert "/late" not in (await store.read("/")).entries


async def test_a_conflict_is_one_and_the_process_goes_on() -> None:
    store = OldStore()
    stamped = await begun(store, "a")
    revision = await stamped.commit(Txn(put={"/x": b"1"}))
    with pytest.raises(Conflict):
        await stamped.commit(Txn(expect={"/x": 0}, put={"/x": b"2"}))
    assert await stamped.commit(Txn(expect={"/x": revision}, put={"/x": b"2"})) == revision + 1


async def test_a_store_that_was_set_back_takes_nothing_however_high_its_revision_is() -> None:
    store = OldStore()
    stamped = await begun(store, "a")
    before = store.saved()
    await stamped.commit(Txn(put={"/x": b"1"}))
    store.become(*before)
    for _ in range(5):
        await store.commit(Txn(put={"/of-others": b""}))
    for txn in (Txn(put={"/y": b""}), Txn(delete=("/absent",)), Txn(expect={"/z": 0})):
        with pytest.raises(StoreWentBack, match=r"set back .*: it lacks what broker 1 wrote at revision 2: the newest"):
            await stamped.commit(txn)
    assert "/y" not in (await store.read("/")).entries


async def test_a_commit_without_an_answer_counts_when_the_watch_has_told_of_it() -> None:
    store = OldStore()
    way = FaultyStore(store)
    stamped = await begun(way, "a")
    before = store.saved()
    way.fates.append(Fate.LOST)
    with pytest.raises(OSError, match="the answer is lost"):
        await stamped.commit(Txn(put={"/x": b"1"}))
    async with aclosing(stamped.watch("/", 1)) as changes:
        assert (await anext(changes)).revision == 2
    store.become(*before)
    with pytest.raises(StoreWentBack, match="wrote at revision 2"):
        await stamped.commit(Txn(put={"/x": b"1"}))


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_commit_without_an_answer_that_is_not_found_never_happens(is_first: bool) -> None:
    store = OldStore()
    way = FaultyStore(store)
    stamped = StampedStore(way, 1, "a")
    stamped.begin(Lineage())
    if not is_first:
        await stamped.commit(Txn(put={"/begun": b""}))
    way.fates.append(Fate.LATE)
    with pytest.raises(OSError, match="does not answer"):
        await stamped.commit(Txn(put={"/late": b""}))
    revision = await stamped.commit(Txn(put={"/x": b""}))
    assert [type(each) for each in await way.deliver()] == [Conflict]
    found = await lineage_of(store)
    assert found.incarnations[1] == Incarnations("a.1", () if is_first else (("a", 1),))
    assert found.commits == {1: Commit("a.1", 2 if is_first else 3, revision)}
    assert found.current(1) == "a"
    assert await stamped.commit(Txn(put={"/x": b""})) == revision + 1


async def test_who_saw_a_commit_without_an_answer_refuses_the_store_that_lost_it() -> None:
    store = OldStore()
    way = FaultyStore(store)
    stamped = await begun(way, "a")
    before = store.saved()
    way.fates.append(Fate.LOST)
    with pytest.raises(OSError, match="the answer is lost"):
        await stamped.commit(Txn(put={"/x": b"1"}))
    seen = (await lineage_of(store)).followed(2)
    store.become(*before)
    for number in range(5):
        await stamped.commit(Txn(put={"/y": b"%d" % number}))
    reason = contradiction(seen, await lineage_of(store), 6)
    assert reason == "it lacks what broker 1 wrote at revision 2: the process that did so ended at revision 1 there"


async def test_a_commit_that_is_cancelled_counts_as_one_without_an_answer() -> None:
    store = OldStore()
    way = FaultyStore(store)
    stamped = await begun(way, "a")
    way.fates.append(Fate.HELD)
    commit = asyncio.ensure_future(stamped.commit(Txn(put={"/x": b""})))
    await asyncio.sleep(0)
    commit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await commit
    await stamped.commit(Txn(put={"/y": b""}))
    assert (await lineage_of(store)).incarnations[1].current == "a.1"


async def test_what_was_under_way_with_a_lost_commit_is_a_conflict_and_no_other_process() -> None:
    """Both are of the part that has ended; the first arrives when the next one has begun."""
    store = OldStore()
    way = FaultyStore(store)
    stamped = await begun(way, "a")
    way.fates.extend([Fate.HELD, Fate.LATE])
    held = asyncio.ensure_future(stamped.commit(Txn(put={"/y": b""})))
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="does not answer"):
        await stamped.commit(Txn(put={"/x": b""}))
    await stamped.commit(Txn(put={"/z": b""}))
    await way.deliver()
    with pytest.raises(Conflict):
        await held


async def test_a_store_that_does_not_answer_behind_a_conflict_leaves_it_a_conflict() -> None:
    store = OldStore()
    way = FaultyStore(store)
    stamped = await begun(way, "a")
    way.fates.append(Fate.HELD)
    commit = stamped.commit(Txn(expect={"/x": 5}, put={"/x": b"1"}))
    commit.send(None)
    way.is_cut = True
    answering = way.deliver()
    with pytest.raises(StopIteration):
        answering.send(None)
    with pytest.raises(Conflict):
        commit.send(None)


async def test_who_is_replaced_by_another_process_changes_nothing_and_is_told_why() -> None:
    store = OldStore()
    first = await begun(store, "a")
    await begun(store, "b")
    with pytest.raises(Superseded, match="another process has become broker 1"):
        await first.commit(Txn(put={"/x": b"1"}))
    assert "/x" not in (await store.read("/")).entries


async def test_a_start_on_a_store_that_is_set_back_meanwhile_is_refused() -> None:
    store = OldStore()
    await begun(store, "x", node_id=2)
    before = store.saved()
    first = await begun(store, "a")
    await first.commit(Txn(put={"/x": b""}))
    known = await lineage_of(store)
    store.become(*before)
    second = StampedStore(store, 1, "b")
    second.begin(known)
    with pytest.raises(StoreWentBack, match="it lacks what broker 1 wrote"):
        await second.commit(Txn(put={"/x": b""}))
