"""The journal's bytes, spelled out, and that any state and any commits come back from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster.journal import decode_file, encode_commit, encode_file
from odradek.broker.cluster.store import Change, Entry, Event, StoreDamaged
from odradek.protocol.batches.crc32c import crc32c

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ENTRIES = st.dictionaries(KEYS, st.builds(Entry, st.binary(max_size=40), st.integers(0, 2**63)), max_size=8)
EVENTS = st.dictionaries(KEYS, st.none() | st.binary(max_size=40), min_size=1, max_size=8)


def test_the_bytes_of_a_small_file() -> None:
    snapshot = bytes.fromhex("01 0000000000000007 00000001  0002 2f61  0000000000000005 01 00000001 78")
    commit = bytes.fromhex("02 0000000000000008 00 00000002  0002 2f61 00  0002 2f62 01 00000002 797a")
    header = b"ODRMETA\n\x00\x00\x00\x02"
    expected = header + crc32c(header).to_bytes(4, "big")
    for payload in (snapshot, commit):
        length = len(payload).to_bytes(4, "big")
        expected += b"\xf1rec" + length + crc32c(length + payload).to_bytes(4, "big") + payload
    change = Change(8, (Event("/a", None), Event("/b", b"yz")))
    assert encode_file({"/a": Entry(b"x", 5)}, ["/a"], 7) + encode_commit(change, ()) == expected


def test_a_commit_under_a_lease_says_which_of_its_keys_are_not_under_it() -> None:
    change = Change(8, (Event("/b", b"yz"), Event("/l", b"w"), Event("/a", None)))
    payload = bytes.fromhex(
        "02 0000000000000008 01 00000003  0002 2f62 01 00000002 797a  0002 2f6c 02 00000001 77  0002 2f61 00"
    )
    record = encode_commit(change, {"/b"})
    assert record[12:] == payload
    journal = decode_file(encode_file({}, (), 7) + record)
    assert (list(journal.entries), list(journal.leased)) == (["/b", "/l"], ["/b"])


def test_a_file_of_the_first_format_is_read() -> None:
    """There every put of a commit is under its lease, or none."""
    fields = b"ODRMETA\n\x00\x00\x00\x01"
    whole = encode_file({"/a": Entry(b"x", 5)}, ["/a"], 7) + encode_commit(Change(8, (Event("/b", b"y"),)), {"/b"})
    journal = decode_file(fields + crc32c(fields).to_bytes(4, "big") + whole[16:])
    assert list(journal.leased) == ["/a", "/b"]


@given(ENTRIES, st.data(), st.integers(0, 2**62), st.lists(st.tuples(EVENTS, st.sets(KEYS)), max_size=5))
def test_what_is_written_is_read(
    entries: dict[str, Entry],
    data: st.DataObject,
    revision: int,
    commits: list[tuple[dict[str, bytes | None], set[str]]],
) -> None:
    leased = dict.fromkeys(data.draw(st.lists(st.sampled_from(sorted(entries)), unique=True)) if entries else [])
    content = encode_file(entries, leased, revision)
    for number, (events, chosen) in enumerate(commits, start=1):
        leased_now = {key for key in (*chosen, *list(events)[: len(chosen)]) if events.get(key) is not None}
        change = Change(revision + number, tuple(Event(key, value) for key, value in events.items()))
        content += encode_commit(change, leased_now)
        for key, value in events.items():
            entries.pop(key, None)
            leased.pop(key, None)
            if value is not None:
                entries[key] = Entry(value, revision + number)
                if key in leased_now:
                    leased[key] = None
    journal = decode_file(content)
    assert journal.entries == entries
    assert journal.leased == leased
    assert (journal.revision, journal.end_position) == (revision + len(commits), len(content))


def test_a_record_of_an_unknown_kind_is_refused() -> None:
    payload = bytes([9]) + bytes(13)
    length = len(payload).to_bytes(4, "big")
    record = b"\xf1rec" + length + crc32c(length + payload).to_bytes(4, "big") + payload
    whole = encode_file({}, (), 0)
    with pytest.raises(StoreDamaged, match="unknown kind 9"):
        decode_file(whole + record)
    with pytest.raises(StoreDamaged, match="first record is not a snapshot"):
        decode_file(whole[:16] + record)


def test_a_whole_record_behind_a_broken_one_shows_damage_even_behind_rubbish() -> None:
    whole = encode_file({}, (), 0)
    first = encode_commit(Change(1, (Event("/a", b"1"),)), ())
    second = encode_commit(Change(2, (Event("/b", b"2"),)), ())
    assert decode_file(whole + first + second[:-1] + b"\xf1rec\xf1rec").revision == 1
    with pytest.raises(StoreDamaged, match="is damaged, and commits follow it"):
        decode_file(whole + first[:-1] + b"\xf1rec\xf1rec" + second)
