"""The digest of the demo: what it tells apart. Loading itself is shown by the demo, against a broker."""

import pytest

from odradek.spark_jobs.demo.load import Digest

Records = list[tuple[bytes, bytes]]
RECORDS: Records = [(b"UA", b"one"), (b"AA", b"two"), (b"", b"three")]


def digest(records: Records) -> Digest:
    made = Digest()
    for key, value in records:
        made.add(key, value)
    return made


def test_equal_records_have_equal_digests() -> None:
    """The same records in the same order give the same digest, and the count."""
    assert digest(RECORDS) == digest(list(RECORDS))
    assert hash(digest(RECORDS)) == hash(digest(list(RECORDS)))
    assert digest(RECORDS).count == 3


@pytest.mark.parametrize(
    "other",
    [
        RECORDS[:2],
        [*RECORDS, (b"", b"")],
        RECORDS[::-1],
        [(b"UA", b"oneA"), (b"A", b"two"), (b"", b"three")],
        [(b"UAo", b"ne"), (b"AA", b"two"), (b"", b"three")],
        [(b"UA", b"onf"), (b"AA", b"two"), (b"", b"three")],
    ],
    ids=["one fewer", "an empty one more", "another order", "a byte in the next record", "a byte in the key", "a bit"],
)
def test_a_digest_tells_other_records(other: Records) -> None:
    """Each change of count, order, boundary or content gives another digest."""
    assert digest(other) != digest(RECORDS)
