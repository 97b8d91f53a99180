"""What a broker and its compaction worker say to one another: it comes back as it was, and nothing else is taken."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log.compaction import LastRecord
from odradek.broker.log.compaction_messages import (
    MESSAGES,
    BuildMap,
    Counts,
    Failed,
    Failure,
    GroupWritten,
    MapBuilt,
    Nonce,
    Ready,
    Round,
    WriteGroup,
    build_map_message,
    counts_of,
    error_of,
    failed,
    group_written,
    kind_of,
    packed,
    round_of,
    suffixes_of,
    unpacked,
)
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.segment import SUFFIXES, segment_path
from odradek.broker.log.segments import Source
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.protocol.errors import MalformedMessage

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
OFFSETS = st.integers(0, (1 << 63) - 1)
ROWS = st.builds(AbortedTxn, INT64, OFFSETS, OFFSETS, OFFSETS)
LASTS = st.builds(LastRecord, st.none() | OFFSETS, st.integers(-1, (1 << 15) - 1))
DIRECTORIES = st.sampled_from(
    ["data/orders-0", "/var/lib/k\u00e4se/t-1", "d/" + "x" * 40_000, os.fsdecode(b"/d/\xff-0")]
)


@st.composite
def rounds(draw: st.DrawFn) -> Round:
    directory = draw(DIRECTORIES)
    sources = [
        Source(base, following, segment_path(directory, base, ".log"), size, rows)
        for base, following, size, rows in draw(st.lists(st.tuples(OFFSETS, OFFSETS, OFFSETS, st.lists(ROWS))))
    ]
    return Round(
        directory,
        Nonce(draw(st.text("0123456789abcdef", min_size=16, max_size=16))),
        sources,
        draw(st.dictionaries(INT64, LASTS)),
        log_start_offset=draw(INT64),
        first_dirty_offset=draw(INT64),
        first_uncleanable_offset=draw(INT64),
        delete_retention_ms=draw(INT64),
        now_ms=draw(INT64),
        index_interval_bytes=draw(INT64),
        dedupe_buffer_bytes=draw(INT64),
        load_factor=draw(st.floats(allow_nan=False)),
        io_bytes=draw(INT64),
    )


@given(rounds())
def test_a_round_comes_back_as_it_was(round_: Round) -> None:
    """With all that it is about: bounds, producers, aborted transactions, options."""
    assert round_of(unpacked(BuildMap, packed(build_map_message(round_)))) == round_


@given(st.integers(0, 1 << 62), st.integers(0, 7), st.builds(Counts, *[OFFSETS] * 5))
def test_what_was_written_comes_back_as_it_was(size_bytes: int, which: int, counts: Counts) -> None:
    suffixes = [suffix for number, suffix in enumerate(SUFFIXES) if number == 0 or which >> (number - 1) & 1]
    written = unpacked(GroupWritten, packed(group_written(size_bytes, suffixes, counts)))
    assert (written.size_bytes, suffixes_of(written), counts_of(written)) == (size_bytes, suffixes, counts)


@pytest.mark.parametrize("places", [[], [1], [1, 0], [0, 0], [0, 4], [0, -1]])
def test_files_that_no_segment_has_are_refused(places: list[int]) -> None:
    written = group_written(1, [".log"], Counts(0, 0, 0, 0, 0))
    written.suffixes = places
    with pytest.raises(MalformedMessage, match="are not the files of a segment"):
        suffixes_of(unpacked(GroupWritten, packed(written)))


@pytest.mark.parametrize(
    "error",
    [
        UncleanableLog(7, "it is torn"),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "data/orders-0/00000000000000000000.log"),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("a sentence without a number"),
        ValueError("raise log.cleaner.dedupe.buffer.size"),
    ],
    ids=lambda error: type(error).__name__ + str(getattr(error, "errno", "")),
)
def test_an_error_comes_back_as_what_it_was(error: Exception) -> None:
    found = error_of(unpacked(Failed, packed(failed(error))))
    assert type(found) is type(error)
    assert str(found) == str(error)
    if isinstance(error, OSError):
        assert isinstance(found, OSError)
        assert (found.errno, found.filename) == (error.errno, error.filename)


def test_a_failure_of_a_later_version_is_refused() -> None:
    message = failed(ValueError("x"))
    message.failure = max(Failure) + 1
    with pytest.raises(MalformedMessage, match="failure 3 is not known"):
        error_of(message)


EXAMPLES = [
    Ready(program_version="1.2.3"),
    MapBuilt(end_offset=5, bytes_read=6),
    WriteGroup(base_offsets=[0, 7]),
    group_written(1, [".log"], Counts(1, 2, 3, 4, 5)),
    failed(OSError(5, "x", "y")),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_each_message_is_known_by_its_kind_and_taken_for_no_other(message: Ready | MapBuilt) -> None:
    data = packed(message)
    assert kind_of(data) is type(message)
    assert unpacked(type(message), data) == message
    for other in MESSAGES:
        if other is not type(message):
            with pytest.raises(MalformedMessage, match=f"{type(message).__name__} came where {other.__name__}"):
                unpacked(other, data)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_bytes_that_are_cut_or_too_many_are_refused(message: Ready | MapBuilt) -> None:
    data = packed(message)
    for broken in [*(data[:size] for size in range(len(data))), data + b"\0"]:
        with pytest.raises(MalformedMessage):
            unpacked(type(message), broken)


@pytest.mark.parametrize("data", [b"\0\x06\0\0", b"\xff\xff\0\0", b"\0\0\0\x01"])
def test_kinds_and_versions_that_nobody_knows_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="is not known"):
        kind_of(data)


def test_the_kinds_are_numbered_as_they_are_listed() -> None:
    assert [message.api_key for message in MESSAGES] == list(range(len(MESSAGES)))
