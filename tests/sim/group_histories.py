"""Histories of consumer groups: bad ones, at least two for each anomaly, and good ones that look bad."""

from collections.abc import Callable
from typing import Final

from odradek.testing.sim.checking.expectations import DARK_MS, Rules
from odradek.testing.sim.checking.finding import Anomaly
from tests.sim.stories import Story

A = Anomaly


def half_way() -> Story:
    """Four records, of which member `m` has processed two in generation 1, and committed them."""
    return (
        Story().wrote(1, 2, 3, 4).assigned(generation=1).processed((0, 1), (1, 2)).committed(2, generation=1)
    )  # fmt: skip


def rest_of(story: Story, member: str = "n") -> Story:
    return story.processed((2, 3), (3, 4), member=member)


REQUEST_TIMEOUT_MS: Final = 2_000.0


def sent_again(took_ms: float) -> Story:
    """All are processed; the commit of the third is answered after so long, and none of the fourth is asked for."""
    story = Story(Rules(request_timeout_ms=REQUEST_TIMEOUT_MS)).wrote(1, 2, 3, 4).assigned(generation=1)
    story.processed((0, 1), (1, 2), (2, 3), (3, 4)).asked_to_commit(3, commit=1, generation=1)
    return story.passes(took_ms).told_of_commit(commit=1, generation=1)


BAD_GROUPS: dict[str, tuple[Callable[[], Story], set[Anomaly]]] = {
    # -- processed ------------------------------------------------------------------------------------------------
    "nobody has processed the end": (lambda: half_way().end(), {A.UNPROCESSED, A.UNSEEN}),
    "a reader that is no member has read the rest": (
        lambda: half_way().polled(0, (0, 1), (1, 2), (2, 3), (3, 4)).end(),
        {A.UNPROCESSED},
    ),
    "an owner begins behind what was committed": (
        lambda: half_way().revoked().assigned("n", generation=2).processed((3, 4), member="n"),
        {A.BEGAN_AHEAD},
    ),
    "an owner begins in the middle of what nobody has committed": (
        lambda: Story().wrote(1, 2).assigned().processed((1, 2)),
        {A.BEGAN_AHEAD},
    ),
    "an owner begins where somebody wanted to commit only later": (
        lambda: Story().wrote(1, 2).assigned().processed((1, 2)).committed(1),
        {A.BEGAN_AHEAD},
    ),
    "an owner begins where another one had come to without a word": (
        lambda: (
            half_way()
            .polled(2, (2, 3), client="m")
            .revoked()
            .assigned("n", generation=2)
            .processed((3, 4), member="n")
        ),
        {A.BEGAN_AHEAD},
    ),
    # -- committed ------------------------------------------------------------------------------------------------
    "a broker tells less than is committed, and no request was given up": (
        lambda: sent_again(took_ms=REQUEST_TIMEOUT_MS / 2).committed(4, commit=2, generation=1).offset_told(3),
        {A.COMMIT_LOST},
    ),
    "the next owner begins at the start": (
        lambda: half_way().revoked().assigned("n", generation=2).processed((0, 1), member="n"),
        {A.COMMIT_LOST},
    ),
    "the same member begins earlier after a rebalance": (
        lambda: half_way().revoked().assigned(generation=2).processed((1, 2)),
        {A.COMMIT_LOST},
    ),
    "the last commit is lost, and the one before is not": (
        lambda: (
            half_way()
            .polled(2, (2, 3), client="m")
            .committed(3, commit=1, generation=1)
            .member_gone("m")
            .assigned("n", generation=2)
            .processed((2, 3), member="n")
        ),
        {A.COMMIT_LOST},
    ),
    "a broker tells an older offset than was acknowledged": (lambda: half_way().offset_told(1), {A.COMMIT_LOST}),
    "a broker tells that nothing is committed": (lambda: half_way().offset_told(-1), {A.COMMIT_LOST}),
    "a broker tells an older offset than another one has told": (
        lambda: (
            half_way()
            .polled(2, (2, 3), client="m")
            .asked_to_commit(3, commit=1, generation=1)
            .offset_told(3)
            .passes(10)
            .offset_told(2)
        ),
        {A.COMMIT_LOST},
    ),
    "an owner begins before what a broker had told": (
        lambda: (
            half_way()
            .polled(2, (2, 3), client="m")
            .asked_to_commit(3, commit=1, generation=1)
            .offset_told(3)
            .member_gone("m")
            .assigned("n", generation=2)
            .processed((2, 3), member="n")
        ),
        {A.COMMIT_LOST},
    ),
    "a position goes back without a rebalance": (
        lambda: half_way().polled(2, (2, 3), client="m").polled(1, (1, 2), client="m"),
        {A.NON_MONOTONIC_POLL},
    ),
    "a member commits after another one was assigned in the next generation": (
        lambda: half_way().assigned("n", generation=2).committed(2, commit=1, generation=1),
        {A.OTHER_GENERATION},
    ),
    "it has other partitions than that one": (
        lambda: half_way().assigned("n", 1, generation=7).committed(2, commit=1, generation=1),
        {A.OTHER_GENERATION},
    ),
    # -- owners ---------------------------------------------------------------------------------------------------
    "a member comes into an earlier generation": (
        lambda: half_way().revoked().assigned(generation=0),
        {A.GENERATION_BACK},
    ),
    "and other members between do not matter": (
        lambda: half_way().revoked().assigned("n", 1, generation=2).assigned("m", 1, generation=0),
        {A.GENERATION_BACK},
    ),
    "two members in one generation": (lambda: half_way().assigned("n", generation=1), {A.TWO_OWNERS}),
    "two members in one generation, one after the other": (
        lambda: half_way().revoked().assigned("n", generation=1),
        {A.TWO_OWNERS},
    ),
    "the former owner goes on for too long": (
        lambda: (
            rest_of(half_way().assigned("n", generation=2))
            .passes(DARK_MS)
            .polled(2, (2, 3), client="m")
        ),
        {A.TWO_OWNERS},
    ),
}  # fmt: skip

GOOD_GROUPS: dict[str, Callable[[], Story]] = {
    "each owner goes on where the former one ended": lambda: (
        rest_of(half_way().revoked().assigned("n", generation=2)).committed(4, "n", generation=2).end()
    ),
    "records are processed again that were not committed": lambda: (
        rest_of(half_way().polled(2, (2, 3), client="m").member_gone("m").assigned("n", generation=2)).end()
    ),
    "a member goes on where it was when it is given a partition again": lambda: (
        half_way().polled(2, (2, 3), client="m").revoked().assigned(generation=2).processed((3, 4)).end()
    ),
    "a commit without an answer is there": lambda: (
        half_way()
        .polled(2, (2, 3), client="m")
        .asked_to_commit(3, commit=1, generation=1)
        .member_gone("m")
        .assigned("n", generation=2)
        .processed((3, 4), member="n")
    ),
    "a commit without an answer is not there": lambda: (
        rest_of(
            half_way()
            .polled(2, (2, 3), client="m")
            .asked_to_commit(3, commit=1, generation=1)
            .member_gone("m")
            .assigned("n", generation=2)
        )
    ),
    "a commit was refused and is not there": lambda: (
        rest_of(
            half_way()
            .polled(2, (2, 3), client="m")
            .asked_to_commit(3, commit=1, generation=1)
            .told_of_commit(commit=1, error="ILLEGAL_GENERATION", generation=1)
            .revoked()
            .assigned("n", generation=2)
        )
    ),
    "the answer of a commit comes after the next assignment": lambda: (
        rest_of(
            half_way()
            .polled(2, (2, 3), client="m")
            .asked_to_commit(3, commit=1, generation=1)
            .assigned("n", generation=2)
            .told_of_commit(commit=1, generation=1)
        )
    ),
    "a broker was asked before the commit was acknowledged": lambda: (
        half_way().offset_told(2).passes(10).offset_told(-1, took_ms=100).offset_told(2)
    ),
    "a commit that was given up comes late": lambda: (
        half_way()
        .polled(2, (2, 3), client="m")
        .asked_to_commit(3, commit=1, generation=1)
        .told_of_commit(commit=1, error="timed out", generation=1)
        .polled(3, (3, 4), client="m")
        .committed(4, commit=2, generation=1)
        .member_gone("m")
        .assigned("n", generation=2)
        .processed((3, 4), member="n")
    ),
    "a commit that was given up and sent again comes late": lambda: (
        sent_again(took_ms=REQUEST_TIMEOUT_MS).committed(4, commit=2, generation=1).offset_told(3)
    ),
    "a client that is in another generation by the answer may have sent that one": lambda: (
        half_way()
        .asked_to_commit(2, commit=1, generation=1)
        .told_of_commit(commit=1, generation=3)
        .assigned("n", 1, generation=2)
        .asked_to_commit(2, commit=2, generation=1)
        .told_of_commit(commit=2, generation=3)
    ),
    "the former owner does not know yet": lambda: (
        rest_of(half_way().assigned("n", generation=2)).polled(2, (2, 3), client="m")
    ),
    "the former owner was gone long before": lambda: (
        rest_of(half_way().polled(2, (2, 3), client="m").revoked().passes(2 * DARK_MS).assigned("n", generation=2))
    ),
    "two lives of a static member": lambda: (
        rest_of(
            Story()
            .wrote(1, 2, 3, 4)
            .assigned(generation=1, instance_id="i")
            .processed((0, 1), (1, 2))
            .committed(2, generation=1)
            .member_gone("m")
            .assigned("n", generation=1, instance_id="i")
        )
    ),
    "clients that tell no generation": lambda: (
        rest_of(Story().wrote(1, 2, 3, 4).assigned().processed((0, 1), (1, 2)).committed(2).assigned("n"))
    ),
    "the first owner begins behind deleted records": lambda: (
        Story().wrote(3, first_offset=2).assigned().processed((2, 3)).end()
    ),
}  # fmt: skip
