"""Transactional clients in a world: what they do is told, and each promise holds through abort, crash and rebalance."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from odradek.testing.sim.checking.history import Polled
from odradek.testing.sim.checking.transaction_history import NO_SOURCE, Ended, Ending, InTransaction
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.cluster.group_member import Protocol
from odradek.testing.sim.cluster.transactor import Desk
from odradek.testing.sim.cluster.transactors import COPIES, STEPS, Desks
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import Result, Script, simulate
from odradek.testing.sim.world.machine import Machine

QUIET = Scenario(safety_s=9.0, faults=0, partitions=2)
WRITER = Desk("writer", abort_share=0.0)
COPIER = Desk("copier", abort_share=0.0, interval_ms=50.0)


def told(desks: Desks, script: Script | None = None) -> Result:
    result = simulate(1, replace(QUIET, desks=desks), script)
    assert result.violations == []
    return result


def read(result: Result, topic: str) -> set[int]:
    """What the last reader has read of it."""
    polls = [each for each in result.history.of(Polled) if each.client == f"final-{topic}"]
    assert {each.topic for each in polls} <= {topic}
    return {value for each in polls for _, value in each.records}


def outcomes(result: Result) -> dict[str, str]:
    return {each.transaction: each.outcome for each in result.history.of(Ended)}


def within(faults: Faults, machine: Machine, act: Callable[[], object]) -> None:
    """Does it as soon as the machine's client has sent something in a transaction that it has not wished to end."""
    records = faults.world.history.records
    sent = [each for each in records if isinstance(each, InTransaction) and each.transaction.startswith(machine.name)]
    asked = {each.transaction for each in records if isinstance(each, Ending)}
    if sent and sent[-1].transaction not in asked:
        act()
    else:
        faults.world.after(0.001, within, faults, machine, act)


def test_what_is_aborted_is_not_read_and_what_is_committed_is() -> None:
    result = told(Desks(writers=(replace(WRITER, abort_share=0.5),)))
    ends = outcomes(result)
    assert {*ends.values()} == {"committed", "aborted"}
    sent = result.history.of(InTransaction)
    committed = {each.value for each in sent if ends.get(each.transaction) == "committed"}
    assert read(result, STEPS) == committed < {each.value for each in sent}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_record_is_copied_once_though_copiers_abort(protocol: Protocol) -> None:
    copier = replace(COPIER, abort_share=0.4, protocol=protocol)
    result = told(Desks((WRITER,), (copier, replace(copier, transactional_id="copier2"))))
    sources = {each.value: each.source for each in result.history.of(InTransaction)}
    copied = Counter(sources[value] for value in read(result, COPIES))
    assert copied == Counter(read(result, STEPS))
    tries = Counter(source for source in sources.values() if source != NO_SOURCE)
    assert max(tries.values()) > 1, "some were copied by a transaction that was aborted, and again"


def test_a_writer_that_is_killed_within_a_transaction_leaves_nothing() -> None:
    """Its transaction is open when it dies: nobody ever asks to commit it."""

    def script(faults: Faults) -> list[Action]:
        transactors = faults.transactors
        (writer,) = transactors.machines
        return [
            (2.0, lambda: within(faults, writer, lambda: transactors.kill(writer))),
            (4.0, lambda: transactors.come(writer)),
        ]

    result = told(Desks(writers=(replace(WRITER, work_ms=300.0),)), script)
    asked = {each.transaction for each in result.history.of(Ending)}
    left = {each.value for each in result.history.of(InTransaction) if each.transaction not in asked}
    assert left, "it was within one"
    assert not left & read(result, STEPS)
    assert any(name.startswith("t1/2.") for name in outcomes(result)), "the next life goes on"


def test_a_copier_that_is_killed_within_a_transaction_copies_no_record_twice() -> None:
    def script(faults: Faults) -> list[Action]:
        transactors = faults.transactors
        copier = transactors.copiers[0]
        return [
            (2.5, lambda: within(faults, copier, lambda: transactors.kill(copier))),
            (5.0, lambda: transactors.come(copier)),
        ]

    result = told(Desks((WRITER,), (replace(COPIER, work_ms=300.0),)), script)
    asked = {each.transaction for each in result.history.of(Ending)}
    sent = result.history.of(InTransaction)
    left = {each.source for each in sent if each.transaction.startswith("c") and each.transaction not in asked}
    assert left, "it was within one"
    again = {each.source for each in sent if each.transaction.startswith("c1/2.")}
    assert left <= again, "the next life copies them"


def test_a_rebalance_within_a_transaction_copies_no_record_twice() -> None:
    """Another copier comes while the first one works on what it has read."""

    def script(faults: Faults) -> list[Action]:
        transactors = faults.transactors
        first, late = transactors.copiers

        def come() -> None:
            came_ms.append(faults.world.now_ms)
            transactors.come(late)

        return [(0.1, lambda: transactors.kill(late)), (3.0, lambda: within(faults, first, come))]

    came_ms: list[float] = []
    slow = replace(COPIER, work_ms=2_000.0)
    result = told(Desks((WRITER,), (slow, replace(slow, transactional_id="copier2"))), script)
    begun = {each.transaction for each in result.history.of(InTransaction) if each.at_ms < came_ms[0]}
    assert any(each.transaction in begun for each in result.history.of(Ending) if each.at_ms > came_ms[0])
    assert any(name.startswith("c2/") for name in outcomes(result))


def test_a_copier_that_stands_still_within_a_transaction_is_overtaken() -> None:
    """Its session and its transaction end meanwhile, and another one copies what it had read."""

    def script(faults: Faults) -> list[Action]:
        copier = faults.transactors.copiers[0]
        return [(2.5, lambda: within(faults, copier, copier.pause)), (8.0, copier.resume)]

    slow = replace(COPIER, work_ms=300.0)
    result = told(Desks((WRITER,), (slow, replace(slow, transactional_id="copier2"))), script)
    ends = outcomes(result)
    lost = {
        each.source
        for each in result.history.of(InTransaction)
        if each.transaction.startswith("c1/") and ends.get(each.transaction) != "committed"
    }
    by_other = {each.source for each in result.history.of(InTransaction) if each.transaction.startswith("c2/")}
    assert lost & by_other


def test_of_two_writers_with_one_id_only_one_commits_at_a_time() -> None:
    result = told(Desks(writers=(WRITER, WRITER)))
    lives = {name.rpartition(".")[0] for name, outcome in outcomes(result).items() if outcome == "committed"}
    assert len(lives) > 2, "they have fenced each other"
