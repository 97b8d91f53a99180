"""Lineage: any history that was set back and went on is told from the true one, and a refusal says what is missing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.cluster import lineage as module
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    ORIGIN_KEY,
    KeyKind,
    MalformedMetadata,
    commit_key,
    encode_cluster,
    incarnation_key,
    parse_key,
)
from odradek.broker.cluster.lineage import (
    Commit,
    Incarnations,
    KnownHistory,
    Lineage,
    Origin,
    contradiction,
    decode_incarnations,
    decode_origin,
    encode_commit,
    start_contradiction,
)
from odradek.broker.cluster.store import Entry, Snapshot
from tests.broker.cluster.old_copies import World

NODE_IDS = st.integers(1, 3)
BY_BROKERS = ["write", "write", "know", "look", "kill", "restart", "hold"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(BY_BROKERS), NODE_IDS),
        st.tuples(st.sampled_from(["save", "deliver"]), st.just(0)),
        st.tuples(st.sampled_from(["set back", "set back a little"]), st.integers(0, 3)),
    ),
    min_size=10,
    max_size=40,
)


def perform(world: World, step: str, number: int) -> None:
    match step:
        case "write" | "hold":
            world.start(number)
            world.write(number, is_held=step == "hold")
        case "know":
            world.look(number)
            world.record(number)
        case "look":
            world.look(number)
        case "kill":
            world.kill(number)
        case "restart":
            world.kill(number)
            world.start(number)
        case "save":
            world.save()
        case "deliver":
            world.deliver()
        case "set back":
            world.set_back(number)
            world.write_foreign(60)  # past all revisions that there were
        case _:
            world.set_back(number)
            world.write_foreign(number)


@settings(max_examples=200)
@given(STEPS)
def test_an_admitted_broker_finds_all_it_knows_and_the_true_history_admits_all(
    steps: list[tuple[str, int]],
) -> None:
    """`World` judges each start, each look and each commit by all that was ever written."""
    world = World()
    for step in steps:
        perform(world, *step)
    for node_id in (1, 2, 3):
        world.look(node_id)
        world.kill(node_id)
        world.start(node_id)


@given(st.lists(st.tuples(st.sampled_from([*BY_BROKERS, "deliver"]), NODE_IDS)))
def test_without_a_set_back_nobody_is_ever_refused(steps: list[tuple[str, int]]) -> None:
    world = World()
    for step in steps:
        perform(world, *step)
    for node_id in (1, 2, 3):
        world.look(node_id)
        assert world.start(node_id) or node_id in world.running


def test_a_copy_that_is_moved_on_by_others_is_refused_by_whoever_knows_more() -> None:
    world = World()
    for node_id in (1, 2, 3):
        assert world.start(node_id)
    world.save()
    world.look(3)
    world.record(3)
    world.kill(3)
    world.write(1)
    for node_id in (1, 2):
        world.look(node_id)
        world.record(node_id)
        world.kill(node_id)
    world.set_back(0)
    assert world.start(3)
    world.write_foreign(50)
    assert not world.start(1)
    assert not world.start(2)


def test_a_broker_that_died_before_noting_its_last_commit_does_not_hide_its_loss() -> None:
    """Its own disk does not know of it, so it is let in; another one's does, although it has written since."""
    world = World()
    assert world.start(1)
    assert world.start(2)
    world.save()
    world.write(1)
    world.look(2)
    world.record(2)
    world.kill(1)
    world.kill(2)
    world.set_back(0)
    world.write_foreign(50)
    assert world.start(1)
    world.write(1)
    assert not world.start(2)


def test_a_process_that_did_not_hear_of_its_commit_does_not_hide_its_loss() -> None:
    """It goes on after the store was set back; who has seen the commit does not."""
    world = World()
    assert world.start(1)
    world.write(1)
    world.write(1, is_held=True)
    world.save()
    world.deliver()
    assert world.start(2)
    world.set_back(0)
    world.write_foreign(50)
    world.write(1)
    assert 1 in world.running
    world.look(2)
    assert 2 not in world.running


def test_a_late_commit_of_a_replaced_process_changes_nothing() -> None:
    world = World()
    assert world.start(1)
    world.write(1)
    world.write(1, is_held=True)
    world.kill(1)
    assert world.start(1)
    world.write(1)
    past = world.past
    world.deliver()
    assert world.past == past


# -- what is said -----------------------------------------------------------------------------------------------------

MANY = tuple((f"i{number}", 10 + number) for number in range(3))
FOUND = Lineage(
    Origin("o", 5),
    {1: Commit("now", 7, 40), 2: Commit("two", 1, 30)},
    {1: Incarnations("now", MANY, forgotten=9, revision=20), 2: Incarnations("two", revision=30)},
)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (KnownHistory(50, "o", {1: Commit("now", 7, 40), 2: Commit("two", 1, 30)}), None),
        (KnownHistory(50, "o", {1: Commit("now", 3, 25)}), None),
        (KnownHistory(50, "o", {1: Commit("i1", 3, 11)}), None),
        (KnownHistory(50, "o", {1: Commit("i1", 3, 8)}), None),
        (KnownHistory(50, "o", {1: Commit("long ago", 3, 9)}), None),
        (KnownHistory(0, "o"), None),
        (KnownHistory(51, "o"), "it is at revision 50, and was at 51 before"),
        (
            KnownHistory(50, "o", {1: Commit("now", 8, 41)}),
            "it lacks what broker 1 wrote at revision 41: the newest of that broker is from revision 40",
        ),
        (
            KnownHistory(50, "o", {1: Commit("now", 6, 40)}),
            "it lacks what broker 1 wrote at revision 40: something else was written there",
        ),
        (
            KnownHistory(50, "o", {1: Commit("i1", 3, 12)}),
            "it lacks what broker 1 wrote at revision 12: the process that did so ended at revision 11 there",
        ),
        (
            KnownHistory(50, "o", {1: Commit("unknown", 3, 12)}),
            "it lacks what broker 1 wrote at revision 12, and the process that did so",
        ),
        (
            KnownHistory(50, "o", {3: Commit("three", 3, 12)}),
            "it lacks what broker 3 wrote at revision 12, and anything else of that broker",
        ),
        (KnownHistory(4, ""), "an operator has begun its metadata again since (odradek cluster restore or rebuild)"),
    ],
)
def test_who_runs_is_told_what_is_missing(known: KnownHistory, reason: str | None) -> None:
    assert contradiction(known, FOUND, 50) == reason
    if known.origin_id:
        assert start_contradiction(known, FOUND, 50) == reason


def test_a_start_takes_what_an_operator_has_begun_in_place_of_what_it_knows() -> None:
    lost = {3: Commit("three", 3, 5)}
    assert start_contradiction(KnownHistory(5, "", lost), FOUND, 50) is None
    assert start_contradiction(KnownHistory(5, "an earlier one", lost), FOUND, 50) is None
    assert start_contradiction(KnownHistory(6, "", lost), FOUND, 50) == (
        "it was restored or rebuilt in place of what came no farther than revision 5, and this one came to 6 "
        "(--revision-at-least)"
    )


def test_no_start_goes_back_behind_what_an_operator_has_begun() -> None:
    """An origin is above all that its store had come to, so who followed it is above its `supersedes`."""
    known = KnownHistory(90, "later")
    assert "in place of what came no farther than revision 5" in str(start_contradiction(known, FOUND, 100))
    assert contradiction(known, Lineage(), 100) == "it is from before the last restore or rebuild of the metadata"
    assert start_contradiction(known, Lineage(), 100) == contradiction(known, Lineage(), 100)


# -- values -----------------------------------------------------------------------------------------------------------


def entry(value: bytes, revision: int = 5) -> Entry:
    return Entry(value, revision)


def test_the_lineage_is_read_from_a_snapshot_and_other_keys_are_nothing_to_it() -> None:
    incarnations = Incarnations("b", (("a", 3),), 2)
    snapshot = Snapshot(
        9,
        {
            CLUSTER_KEY: entry(encode_cluster("c")),
            commit_key(1, "b"): entry(encode_commit(4), 8),
            incarnation_key(1): entry(incarnations.encode(), 6),
            ORIGIN_KEY: entry(Origin("o", 1).encode()),
            "/cluster/other": entry(b"of a later version"),
            "/topics/t": entry(b"nothing that is looked at"),
        },
    )
    found = Lineage.from_snapshot(snapshot)
    assert found == Lineage(Origin("o", 1), {1: Commit("b", 4, 8)}, {1: incarnations})
    assert found.incarnations[1].revision == 6
    assert found.followed(9) == KnownHistory(9, "o", {1: Commit("b", 4, 8)})


def test_the_key_of_a_process_goes_with_the_commit_that_begins_the_next() -> None:
    """Puts come before deletions in a change."""
    found = Lineage().apply(*parse_key(commit_key(1, "a")), encode_commit(1), 5)
    found = found.apply(*parse_key(commit_key(1, "b")), encode_commit(1), 6)
    found = found.apply(*parse_key(commit_key(1, "a")), None, 6)
    assert found.commits == {1: Commit("b", 1, 6)}
    assert found.apply(*parse_key(commit_key(1, "b")), None, 7).commits == {}
    named = found.apply(KeyKind.INCARNATION, "1", Incarnations("b").encode(), 6)
    assert named.apply(KeyKind.INCARNATION, "1", None, 7) == found
    assert found.apply(KeyKind.TOPIC, "t", b"", 7) is found


def test_former_incarnations_are_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INCARNATIONS_MAX", 2)
    now = Incarnations("i0")
    for number in range(1, 5):
        now = now.followed_by(f"i{number}", 10 * number)
    assert now == Incarnations("i4", (("i2", 30), ("i3", 40)), forgotten=20)
    found = Lineage(None, {1: Commit("i4", 1, 45)}, {1: now})
    assert contradiction(KnownHistory(20, "", {1: Commit("i1", 9, 20)}), found, 45) is None
    assert contradiction(KnownHistory(21, "", {1: Commit("i1", 9, 21)}), found, 45) is not None


@given(st.text(min_size=1, max_size=5), st.lists(st.tuples(st.text(max_size=5), st.integers(0, 2**62))), st.integers(0))
def test_what_is_encoded_is_decoded(current: str, past: list[tuple[str, int]], forgotten: int) -> None:
    incarnations = Incarnations(current, tuple(past), forgotten, revision=5)
    decoded = decode_incarnations(incarnations.encode(), 1, 5)
    assert (decoded, decoded.revision) == (incarnations, 5)
    origin = Origin(current, forgotten)
    assert decode_origin(origin.encode()) == origin


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("/cluster/commits/1", encode_commit(1)),
        ("/cluster/commits/1/", encode_commit(1)),
        ("/cluster/commits/x/a", encode_commit(1)),
        (commit_key(1, "a"), b"{}"),
        (commit_key(1, "a"), b'{"v":2,"number":1}'),
        ("/cluster/incarnations/x", Incarnations("a").encode()),
        (incarnation_key(1), b'{"v":1,"incarnation":"a","past":[["b"]],"forgotten":0}'),
        (incarnation_key(1), b'{"v":1,"incarnation":"a","past":7,"forgotten":0}'),
        (incarnation_key(1), b'{"v":1,"past":[],"forgotten":0}'),
        (ORIGIN_KEY, b'{"v":1,"origin":"a"}'),
        (ORIGIN_KEY, b"nothing of ours"),
    ],
)
def test_what_is_no_lineage_is_refused(key: str, value: bytes) -> None:
    with pytest.raises(MalformedMetadata):
        Lineage.from_snapshot(Snapshot(5, {key: entry(value)}))


def test_the_same_begun_in_place_of_the_same_is_the_same_origin() -> None:
    values: dict[str, Any] = {"/a": b"1", "/b": b"2"}
    assert Origin.of(values, 5) == Origin.of(dict(reversed(values.items())), 5)
    others = [Origin.of(values, 6), Origin.of({"/a": b"1"}, 5), Origin.of({"/a": b"1", "/b": b"3"}, 5)]
    assert len({origin.origin_id for origin in (Origin.of(values, 5), *others)}) == 4
