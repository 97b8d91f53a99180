"""Events come in the order of their moments, and those of one moment in the order in which they were set."""

import gc

from odradek.testing.sim.world.scheduler import START_S, Scheduler


def test_events_come_in_order_of_time_and_then_of_setting() -> None:
    scheduler, seen = Scheduler(), list[str]()
    scheduler.after(2.0, seen.append, "late")
    scheduler.after(1.0, seen.append, "first of two")
    scheduler.after(1.0, seen.append, "second of two")
    scheduler.at(0.0, seen.append, "past")
    scheduler.run(START_S + 1.0)
    assert seen == ["past", "first of two", "second of two"]
    assert scheduler.now_s == START_S + 1.0
    scheduler.run(START_S + 5.0)
    assert seen[3:] == ["late"]
    assert scheduler.now_s == START_S + 5.0


def test_what_an_event_sets_comes_in_the_same_run() -> None:
    scheduler, seen = Scheduler(), list[float]()

    def again() -> None:
        seen.append(scheduler.now_s - START_S)
        scheduler.after(0.5, again)

    again()
    scheduler.run(START_S + 1.2)
    assert seen == [0.0, 0.5, 1.0]


def test_a_cancelled_event_does_not_come() -> None:
    scheduler, seen = Scheduler(), list[str]()
    scheduler.after(1.0, seen.append, "cancelled").cancel()
    scheduler.run(START_S + 2.0)
    assert seen == []


def test_stop_ends_the_run_after_the_present_event() -> None:
    scheduler, seen = Scheduler(), list[str]()
    scheduler.after(1.0, scheduler.stop)
    scheduler.after(1.0, seen.append, "next")
    scheduler.run(START_S + 5.0)
    assert seen == []
    assert scheduler.now_s == START_S + 1.0
    scheduler.run(START_S + 5.0)
    assert seen == ["next"]


def test_the_collector_rests_while_the_world_runs_and_not_after() -> None:
    scheduler, seen = Scheduler(), list[bool]()
    assert gc.isenabled()
    scheduler.after(0.0, lambda: seen.append(gc.isenabled()))
    scheduler.run(START_S)
    assert seen == [False]
    assert gc.isenabled()
