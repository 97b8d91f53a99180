"""Histories of transactions: bad ones, at least two for each anomaly, and good ones that look bad."""

from collections.abc import Callable
from typing import Final

from odradek.testing.sim.checking.finding import Anomaly
from tests.sim.stories import UNCLEAN, Story

A = Anomaly
COPIES: Final = "copies"


def two_sent() -> Story:
    return Story().sends("p.1", 1, 2)


def copied(*copies: tuple[str, int], ends: tuple[str, ...] = ()) -> Story:
    """Value 1, committed, and then copies of it, each a transaction and a value. `ends`: which of these commit."""
    story = Story().sends("p.1", 1).commits("p.1")
    for transaction, value in copies:
        story.sends(transaction, value, source=1, topic=COPIES)
        story.commits(transaction) if transaction in ends else story.aborts(transaction)
    return story.repaired()


BAD_TRANSACTIONS: Final[dict[str, tuple[Callable[[], Story], set[Anomaly]]]] = {
    # -- uncommitted reads ------------------------------------------------------------------------------------------
    "a reader gets what is aborted later": (
        lambda: two_sent().ending("p.1").polled(0, (0, 1), (1, 2)).ended("p.1", "aborted"),
        {A.UNCOMMITTED_READ},
    ),
    "a reader gets what was aborted before": (
        lambda: two_sent().aborts("p.1").polled(0, (0, 1)),
        {A.UNCOMMITTED_READ},
    ),
    "a reader gets it before anybody asked to commit": (
        lambda: two_sent().polled(0, (0, 1)).commits("p.1"),
        {A.UNCOMMITTED_READ},
    ),
    "a reader gets what a producer left open that was killed": (
        lambda: two_sent().polled(0, (0, 1), (1, 2)),
        {A.UNCOMMITTED_READ},
    ),
    # -- torn ---------------------------------------------------------------------------------------------------------
    "one of two records is missing at the end": (
        lambda: two_sent().commits("p.1").repaired().last_read((0, 1)).end(),
        {A.TORN_TRANSACTION},
    ),
    "one of two is missing and nobody knows the outcome": (
        lambda: two_sent().ending("p.1").repaired().last_read((1, 2)).end(),
        {A.TORN_TRANSACTION},
    ),
    "nothing of a committed transaction is there": (
        lambda: two_sent().commits("p.1").repaired().last_read().end(),
        {A.TORN_TRANSACTION},
    ),
    # -- copies -------------------------------------------------------------------------------------------------------
    "an input has no copy": (
        lambda: copied(("c.1", 2)).last_read((0, 1)).last_read(topic=COPIES).end(),
        {A.LOST_INPUT},
    ),
    "one of two inputs has no copy": (
        lambda: (
            Story()
            .sends("p.1", 1, 2)
            .commits("p.1")
            .sends("c.1", 3, source=1, topic=COPIES)
            .commits("c.1")
            .repaired()
            .last_read((0, 1), (1, 2))
            .last_read((0, 3), topic=COPIES)
            .end()
        ),
        {A.LOST_INPUT},
    ),
    "an input has two copies": (
        lambda: (
            copied(("c.1", 2), ("d.1", 3), ends=("c.1", "d.1"))
            .last_read((0, 1))
            .last_read((0, 2), (2, 3), topic=COPIES)
            .end()
        ),
        {A.DOUBLED_INPUT},
    ),
    "one transaction copies an input twice": (
        lambda: (
            Story()
            .sends("p.1", 1)
            .commits("p.1")
            .sends("c.1", 2, 3, source=1, topic=COPIES)
            .commits("c.1")
            .repaired()
            .last_read((0, 1))
            .last_read((0, 2), (1, 3), topic=COPIES)
            .end()
        ),
        {A.DOUBLED_INPUT},
    ),
}

GOOD_TRANSACTIONS: Final[dict[str, Callable[[], Story]]] = {
    "a commit whose outcome nobody knows is there": lambda: (
        two_sent().ending("p.1").polled(0, (0, 1), (1, 2)).repaired().last_read((0, 1), (1, 2)).end()
    ),
    "a commit whose outcome nobody knows is not there": lambda: two_sent().ending("p.1").repaired().last_read().end(),
    "a transaction is read before its producer hears of its end": lambda: (
        two_sent().ending("p.1").polled(0, (0, 1), (1, 2)).ended("p.1").repaired().last_read((0, 1), (1, 2)).end()
    ),
    "an input is copied when the first attempt was aborted": lambda: (
        copied(("c.1", 2), ("c.2", 3), ends=("c.2",)).last_read((0, 1)).last_read((2, 3), topic=COPIES).end()
    ),
    "nobody copies": lambda: two_sent().commits("p.1").repaired().last_read((0, 1), (1, 2)).end(),
    "half of it is gone after an unclean election that was logged": lambda: _unclean(),
}


def _unclean() -> Story:
    story = Story(UNCLEAN).stored(1, (1, 2), 0).sends("p.1", 1, 2).commits("p.1")
    return story.unclean(3, 1).stored(3, (3,), 1).repaired().last_read((0, 1)).end()
