"""Features are finalized when every registered broker has them, there or not, and taken back by operators alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster import features
from odradek.broker.cluster.features import ACLS, ENVELOPE, SUPPORTED, counts, to_finalize
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    FEATURES_KEY,
    MalformedMetadata,
    NodeState,
    decode_features,
    decode_node,
    encode_features,
    node_key,
)
from odradek.broker.cluster.store import Change, Event

ID = bytes(range(16))
OLD, NEW, NEWER = (NodeState((ID,), features=levels) for levels in ({}, SUPPORTED, {ENVELOPE: 7, "of tomorrow": 1}))


@pytest.mark.parametrize(
    ("nodes", "level"),
    [
        ({1: NEW}, 1),
        ({1: NEW, 2: NEWER}, 1),
        ({1: NEW, 2: OLD}, 0),
        ({1: NEW, 2: None}, 0),  # registered by a release that kept no node
        ({}, 0),
    ],
)
def test_it_takes_all_that_are_registered(nodes: dict[int, NodeState | None], level: int) -> None:
    known = {broker_id: node for broker_id, node in nodes.items() if node is not None}
    assert to_finalize(nodes.keys(), known, {}, {}).get(ENVELOPE, 0) == level


@given(
    st.dictionaries(st.integers(0, 5), st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 4))),
    st.dictionaries(st.sampled_from(["a", "b", "old"]), st.integers(1, 4)),
    st.sets(st.sampled_from(["a", "b"])),
)
def test_no_level_falls_none_is_above_what_anybody_has_and_what_is_held_stays(
    registered: dict[int, dict[str, int]], finalized: dict[str, int], names: set[str]
) -> None:
    nodes = {broker_id: NodeState((ID,), features=levels) for broker_id, levels in registered.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "SUPPORTED", {"a": 2, "b": 3})
        held = {name: finalized.get(name, 0) for name in names}
        after = to_finalize(registered, nodes, finalized, held)
    assert all(after.get(name, 0) == level for name, level in held.items())
    for name, level in after.items():
        raised = level > finalized.get(name, 0)
        assert level >= finalized.get(name, 0)
        assert not raised or all(levels.get(name, 0) >= level for levels in registered.values())
    assert finalized.keys() <= after.keys()


def test_they_are_read_through_the_image() -> None:
    image = ClusterImage()
    for revision, events in enumerate(
        (
            (Event(node_key(1), NEW.encode()),),
            (Event(FEATURES_KEY, encode_features({ENVELOPE: 1})),),
        ),
        start=1,
    ):
        image, _ = image.apply(Change(revision, events))
    assert image.nodes[1].features == SUPPORTED
    assert (image.features, image.features_revision) == ({ENVELOPE: 1}, 2)
    image, _ = image.apply(Change(3, (Event(FEATURES_KEY, encode_features({ENVELOPE: 1}, {"b": 0})),)))
    assert (image.features, image.held_features, image.features_revision) == ({ENVELOPE: 1}, {"b": 0}, 3)
    image, _ = image.apply(Change(4, (Event(FEATURES_KEY, None),)))
    assert (image.features, image.held_features, image.features_revision) == ({}, {}, 0)


def test_what_an_earlier_release_wrote_has_none_and_nonsense_is_refused() -> None:
    assert b"features" not in OLD.encode()
    assert decode_node(OLD.encode(), 1) == OLD
    assert decode_node(NEWER.encode(), 1) == NEWER
    for value in (b'{"v":1,"features":{"a":"1"}}', b'{"v":1,"features":[]}', b'{"v":1,"features":{"a":true}}'):
        with pytest.raises(MalformedMetadata):
            decode_features(value)


@pytest.mark.parametrize(
    ("nodes", "finalized", "expected"),
    [
        ({1: NEW, 2: NEW}, {}, True),
        ({1: NEW, 2: OLD}, {}, False),
        ({1: NEW, 2: OLD}, {ACLS: 1}, True),
        ({}, {}, False),
        ({}, {ACLS: 1}, True),
    ],
)
def test_what_all_have_counts_before_it_is_written_down(
    nodes: dict[int, NodeState], finalized: dict[str, int], expected: bool
) -> None:
    assert counts(ACLS, nodes.keys(), nodes, finalized) is expected
