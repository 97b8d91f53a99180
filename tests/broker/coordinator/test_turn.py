"""What one turn wants written becomes batches: nothing split, nothing out of order, answers where they belong."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.coordinator.machine import StoredRecord, Waiting
from odradek.broker.coordinator.turn import Turn

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
