"""Which batches compaction takes up, and what it says of the others: a header and the bytes that it came with."""

import pytest

from odradek.broker.log.uncleanable import UncleanableLog, check_batch, reading
from odradek.protocol.batches.batch import HEADER_SIZE, read_header
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from tests.broker.log.compacted_logs import data_batch

BATCH = data_batch(7, (b"a", b"1"), (b"b", b"2"))
HEADER = read_header(BATCH)


def test_a_whole_batch_is_taken_wherever_the_last_one_ended() -> None:
    for next_offset in (0, 6, 7):
        check_batch(HEADER, BATCH, next_offset)
        check_batch(HEADER, memoryview(BATCH), next_offset)


@pytest.mark.parametrize(
    ("changes", "data", "why"),
    [
        pytest.param({"magic": 1}, BATCH, "message format 1,", id="old format"),
        pytest.param({}, BATCH[:-1], f"{len(BATCH)} bytes long by its header and {len(BATCH) - 1} are", id="cut"),
        pytest.param({}, BATCH + b"\x00", f"and {len(BATCH) + 1} are there", id="more"),
        pytest.param({"batch_length": 48}, BATCH[: HEADER_SIZE - 1], "60 bytes long by its header", id="no header"),
        pytest.param({"last_offset_delta": -1}, BATCH, "offsets 7 to 6", id="offsets that fall"),
        pytest.param({"base_offset": 6}, BATCH, "offsets 6 to 7 where 7 was expected", id="offsets that come twice"),
        pytest.param({}, BATCH[:-1] + b"\x02", "checksum", id="another content"),
    ],
)
def test_what_is_no_whole_batch_is_refused(changes: dict[str, int], data: bytes, why: str) -> None:
    header = HEADER._replace(**changes)
    with pytest.raises(UncleanableLog, match=f"offset {header.base_offset} .*{why}") as caught:
        check_batch(header, data, 7)
    assert caught.value.offset == header.base_offset
    assert why in caught.value.reason


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.CORRUPT_MESSAGE, "why so"), MalformedMessage("why so")])
def test_what_reading_a_batch_raises_names_the_batch(error: Exception) -> None:
    with pytest.raises(UncleanableLog, match=r"offset 7 .*why so") as caught, reading(HEADER):
        raise error
    assert caught.value.__cause__ is error


def test_mistakes_of_our_own_are_not_the_logs() -> None:
    with pytest.raises(ZeroDivisionError), reading(HEADER):
        raise ZeroDivisionError
