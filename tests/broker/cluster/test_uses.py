"""Whether a data directory was in use when its broker ran last: over random histories an older copy is always found,
and the newest directory is never taken for one.

A history is made of starts that die at each step, of commits that arrive when the process is gone, and of copies that
an operator puts back. Only the model knows which directory holds everything.
"""

import random
from collections import Counter
from dataclasses import dataclass, replace

from odradek.broker.cluster.uses import PENDING_MAX, used_by, was_in_use

SEEDS = 300
STEPS = 60


@dataclass(frozen=True)
class Directory:
    noted: tuple[str, ...] = ()
    holds: int = 0
    """Up to which acknowledged record it has them all, or has given up its in-sync places for those that it lacks."""


@dataclass(frozen=True)
class LateCommit:
    """The first commit of a process that is gone. It changes nothing where another one has committed meanwhile."""

    incarnation: str
    expects: str | None


class History:
    """Of one broker with one directory, in whose place copies are put."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.directory = Directory()
        self.copies: list[Directory] = []
        self.is_replaced = False  # by a copy, and no process has committed anything on it
        self.current: str | None = None
        self.late: list[LateCommit] = []
        self.acknowledged = 0
        self.count = 0
        self.seen = Counter[str]()

    def run(self) -> None:
        for _ in range(STEPS):
            if self.copies and self.happens(0.2, "a copy is put back"):
                before, self.directory = self.directory, self.chance.choice(self.copies)
                self.is_replaced |= self.directory != before
            self.start()
            if self.happens(0.3):
                self.commits_arrive()
            if self.happens(0.4) and self.directory.noted:
                self.copies.append(self.directory)

    def start(self) -> None:
        self.count += 1
        incarnation, noted, expects = f"p{self.count}", self.directory.noted, self.current
        is_older = not was_in_use(noted, self.current)
        if is_older:
            assert self.is_replaced, "the newest directory is taken for an older copy"
            self.seen["older"] += 1
        else:
            assert self.directory.holds == self.acknowledged, "an older copy is not found"
        after = used_by(noted, self.current, incarnation)
        if not is_older:
            self.directory = replace(self.directory, noted=after)
        if self.happens(0.3, "it dies before its first commit"):
            if self.happens(0.5):
                self.late.append(LateCommit(incarnation, expects))
            return
        if self.happens(0.3):
            self.commits_arrive()  # its own is made again then
        if is_older:
            if self.happens(0.5):
                self.current = incarnation  # the in-sync places are given up
                if self.happens(0.5, "it dies before its logs are back"):
                    return
            self.directory = Directory(after, self.acknowledged)
        self.current = incarnation
        self.is_replaced = False
        if self.happens(0.3, "it dies before it acknowledges anything"):
            return
        self.acknowledged += 1
        self.directory = replace(self.directory, holds=self.acknowledged)

    def commits_arrive(self) -> None:
        late, self.late = self.late, []
        for commit in late:
            if commit.expects == self.current:
                self.current = commit.incarnation
                self.seen["a commit comes late"] += 1

    def happens(self, chance: float, name: str = "") -> bool:
        is_so = self.chance.random() < chance
        self.seen[name] += is_so
        return is_so


def test_an_older_copy_is_always_found_and_the_newest_directory_never_taken_for_one() -> None:
    seen = Counter[str]()
    for seed in range(SEEDS):
        history = History(seed)
        try:
            history.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, start {history.count}: {error}") from error
        seen += history.seen
    assert len(seen) == 7, seen
    assert min(seen.values()) >= SEEDS // 4, seen


def test_nothing_tells_without_a_note_and_in_a_store_that_names_no_process() -> None:
    assert was_in_use((), "p")
    assert was_in_use(("p",), None)
    assert used_by((), None, "p") == ("p",)
    assert used_by((), "p", "q") == ("p", "q")
    assert used_by(("p",), None, "q") == ("p", "q")


def test_processes_from_before_the_current_one_are_forgotten() -> None:
    assert used_by(("p", "q", "r"), "q", "s") == ("q", "r", "s")
    assert used_by(("p", "q"), "other", "s") == ("other", "s")


def test_the_current_process_and_the_last_of_many_starts_that_died_are_noted() -> None:
    noted: tuple[str, ...] = ("p",)
    for number in range(3 * PENDING_MAX):
        noted = used_by(noted, "p", f"q{number}")
    assert len(noted) == PENDING_MAX + 2
    assert noted[0] == "p"
    assert noted[-1] == f"q{3 * PENDING_MAX - 1}"
