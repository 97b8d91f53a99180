"""The table of faults: applied as often as was said, by several threads, too; what is held goes on when it is to."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from odradek.testing.faults.fault import Fault, Kind, match_of
from odradek.testing.faults.fault_table import Entry, FaultTable, Held, Outcome

DROP_TWICE = Fault(kind=Kind.DROP, match=match_of(api="Fetch"), times=2)
HOLD = Fault(kind=Kind.HOLD, match=match_of(api="Fetch"))


def put(table: FaultTable, fault: Fault) -> tuple[int, Entry]:
    fault_id = table.add(fault)
    return fault_id, table.entries[-1]


def test_it_is_applied_as_often_as_was_said() -> None:
    table, changes = FaultTable(), 0

    def changed() -> None:
        nonlocal changes
        changes += 1

    table.watchers.append(changed)
    fault_id, entry = put(table, DROP_TWICE)
    assert table.in_force() == [(fault_id, DROP_TWICE)]
    assert [table.take(entry) for _ in range(4)] == [True, True, False, False]
    assert table.entries == ()
    assert table.in_force() == []
    assert table.status(fault_id).count == 2
    assert changes == 2


def test_threads_that_take_at_the_same_time_take_no_more() -> None:
    table = FaultTable()
    fault_id, entry = put(table, Fault(kind=Kind.DROP, match=match_of(), times=100))
    with ThreadPoolExecutor(4) as pool:
        taken = sum(pool.map(table.take, [entry] * 1000))
    assert taken == table.status(fault_id).count == 100


async def test_release_lets_go_who_was_held_first_and_undo_all() -> None:
    table, loop = FaultTable(), asyncio.get_running_loop()
    fault_id, entry = put(table, HOLD)
    held = [Held(loop) for _ in range(3)]
    assert [table.hold(entry, each) for each in held] == [True] * 3
    waiting = [asyncio.create_task(each.wait()) for each in held]
    assert table.status(fault_id).held == 3
    await asyncio.to_thread(table.release, fault_id, 1)
    assert await waiting[0] is Outcome.GO_ON
    assert table.status(fault_id).held == 2
    await asyncio.to_thread(table.release, fault_id)
    assert await asyncio.gather(*waiting) == [Outcome.GO_ON] * 3
    assert not table.status(fault_id).is_in_force
    assert not table.hold(entry, Held(loop)), "it is undone"


async def test_what_holds_or_stays_is_in_force_when_it_is_used_up() -> None:
    table, loop = FaultTable(), asyncio.get_running_loop()
    held_id, held_entry = put(table, Fault(kind=Kind.HOLD, match=match_of(), times=1))
    open_id, open_entry = put(table, Fault(kind=Kind.HALF_OPEN, match=match_of(), times=1))
    held, stuck = Held(loop), Held(loop)
    for entry, each in ((held_entry, held), (open_entry, stuck)):
        assert table.take(entry)
        assert not table.take(entry)
        assert table.hold(entry, each)
    assert [fault_id for fault_id, _ in table.in_force()] == [held_id, open_id]
    table.forget(held_entry, held)
    assert [fault_id for fault_id, _ in table.in_force()] == [open_id]
    table.clear()
    assert await stuck.wait() is Outcome.CLOSE
    assert table.in_force() == []
    assert table.status(open_id).count == 0, "it is forgotten"


async def test_a_wait_ends_by_time_and_by_the_end_of_the_broker() -> None:
    loop = asyncio.get_running_loop()
    assert await Held(loop).wait(1) is Outcome.GO_ON
    held = Held(loop)
    held.interrupt()
    assert await held.wait() is Outcome.CLOSE


def test_who_is_held_by_a_broker_that_is_gone_is_let_go_without_an_error() -> None:
    table, loop = FaultTable(), asyncio.new_event_loop()
    fault_id, entry = put(table, HOLD)
    assert table.hold(entry, Held(loop))
    loop.close()
    table.undo(fault_id)
    assert table.status(fault_id).held == 0
