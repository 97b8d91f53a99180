"""What one turn wants written becomes batches: nothing split, nothing out of order, answers where they belong."""

from itertools import pairwise
from unittest.mock import Mock

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.coordinator.machine import StoredRecord, TransactionBatch, Waiting
from odradek.broker.coordinator.turn import Turn
from odradek.protocol.errors import ErrorCode, KafkaError

Appends = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(1, 60), min_size=1, max_size=4)), max_size=20)


def nothing() -> None: ...


@given(Appends, st.integers(61, 600))
def test_parts_hold_everything_once_in_order_and_split_nothing(given_: list[tuple[str, list[int]]], limit: int) -> None:
    turn = Turn()
    asked: list[Waiting[int]] = []
    for number, (entity_id, sizes) in enumerate(given_):
        records = [StoredRecord(b"%d.%d" % (number, index), bytes(size)) for index, size in enumerate(sizes)]
        turn.append(entity_id, records, nothing)
        asked.append(Waiting())
        assert turn.reply(entity_id, asked[-1], number)
    assert bool(turn) == bool(given_)
    parts = list(turn.parts(limit))
    keys = [record.key for part in parts for record in part.records]
    assert keys == [
        b"%d.%d" % (number, index) for number, (_, sizes) in enumerate(given_) for index in range(len(sizes))
    ]
    for part in parts:
        together = {int(record.key.split(b".")[0]) for record in part.records}
        assert {reply.answer for reply in part.replies} == together, "an answer is in the part that it depends on"
        assert len(part.undos) == len(together)
        assert set(part.entities) == {given_[number][0] for number in together}
        size = 61 + sum(40 + len(record.key) + len(record.value or b"") for record in part.records)
        assert size <= limit or len(together) == 1


def test_an_answer_depends_on_the_last_records_of_its_own_entity_alone() -> None:
    turn = Turn()
    first, last, other = Waiting[str](), Waiting[str](), Waiting[str]()
    turn.append("a", [StoredRecord(b"1", bytes(100))], nothing)
    turn.append("b", [StoredRecord(b"2", bytes(100))], nothing)
    turn.append("a", [StoredRecord(b"3", bytes(100))], nothing)
    assert turn.reply("a", last, "after 3")
    assert turn.reply("b", first, "after 2")
    assert not turn.reply("c", other, "nothing was given for it")
    assert [[reply.answer for reply in part.replies] for part in turn.parts(200)] == [[], ["after 2"], ["after 3"]]


Kinds = st.sampled_from([None, TransactionBatch(7, 0), TransactionBatch(7, 1), TransactionBatch(7, 1, is_marker=True)])


@given(st.lists(Kinds, max_size=12))
def test_a_batch_is_of_one_transaction_and_a_marker_stands_alone(kinds: list[TransactionBatch | None]) -> None:
    turn = Turn()
    for number, kind in enumerate(kinds):
        turn.append("a", [StoredRecord(b"%d" % number, None)], nothing, kind)
    parts = list(turn.parts(10_000))
    assert [record.key for part in parts for record in part.records] == [b"%d" % each for each in range(len(kinds))]
    found: list[TransactionBatch | None] = []
    for part in parts:
        found += [part.transaction] * len(part.records)
        assert part.transaction is None or not part.transaction.is_marker or len(part.records) == 1
    assert found == kinds
    for before, after in pairwise(parts):
        is_marker = before.transaction is not None and before.transaction.is_marker
        assert is_marker or before.transaction != after.transaction, "what may stand together does"


def test_what_is_of_several_entities_is_waited_for_and_refused_by_each() -> None:
    turn = Turn()
    asked, then = Waiting[str](), Mock()
    turn.append("a", [StoredRecord(b"1", bytes(100))], nothing)
    turn.append("b", [StoredRecord(b"2", bytes(100))], nothing)
    turn.also_of("c")
    assert turn.reply("c", asked, "after 2")
    assert turn.when_committed("c", then)
    assert not turn.when_committed("d", then)
    first, second = turn.parts(200)
    assert (first.entities, first.replies, first.thens) == (("a",), [], [])
    assert (second.entities, [each.answer for each in second.replies], second.thens) == (
        ("b", "c"),
        ["after 2"],
        [then],
    )


REFUSAL = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")


def shares(turn: Turn, refused: int) -> tuple[list[bytes], list[bytes]]:
    """The keys that are appended, and those that are not, if the log refuses the part of this number."""
    appended: list[bytes] = []
    left: list[bytes] = []
    for number, part in enumerate(turn.parts(61 + 40 + 10)):
        if number == refused:
            assert part.left_by is None
            turn.refuse(part, REFUSAL)
        assert part.left_by in (None, REFUSAL)
        is_left = number == refused or part.left_by is not None
        (left if is_left else appended).extend(record.key for record in part.records)
    return appended, left


def test_what_is_later_of_a_refused_entity_is_left() -> None:
    turn = Turn()
    for key, entity_id in ((b"a 1", "a"), (b"b 1", "b"), (b"a 2", "a"), (b"b 2", "b"), (b"a 3", "a")):
        turn.append(entity_id, [StoredRecord(key, b"")], nothing)
    assert shares(turn, 1) == ([b"a 1", b"a 2", b"a 3"], [b"b 1", b"b 2"])


def test_what_builds_on_what_is_left_is_left_too() -> None:
    """A marker of two groups builds on the one whose batch is refused, and a commit of the other on the marker."""
    turn = Turn()
    turn.append("b", [StoredRecord(b"before", b"")], nothing)
    turn.append("a", [StoredRecord(b"refused", b"")], nothing)
    turn.append("b", [StoredRecord(b"between", b"")], nothing)
    turn.append("a", [StoredRecord(b"marker", b"")], nothing)
    turn.also_of("b")
    turn.append("c", [StoredRecord(b"other", b"")], nothing)
    turn.append("b", [StoredRecord(b"after", b"")], nothing)
    assert shares(turn, 1) == ([b"before", b"between", b"other"], [b"refused", b"marker", b"after"])


def test_what_is_left_comes_in_the_order_in_which_it_was_given() -> None:
    """It is undone in the reverse, whichever refusal it was left by."""
    turn = Turn()
    for entities in ("b", "a", "ab", "a"):
        turn.append(entities[0], [StoredRecord(entities.encode(), b"")], nothing)
        for entity_id in entities[1:]:
            turn.also_of(entity_id)
    found: list[tuple[bytes, bool]] = []
    for part in turn.parts(61 + 40 + 2):
        found += [(record.key, part.left_by is not None) for record in part.records]
        if part.left_by is None:
            turn.refuse(part, REFUSAL)
    assert found == [(b"b", False), (b"a", False), (b"ab", True), (b"a", True)]
