"""Which batches leave the loop for compression: by the size of the largest, and none where nothing is compressed."""

import pytest

from odradek.client.producer.sending.compression import COMPRESSED_IN_LOOP_BYTES_MAX, is_compressed_in_thread
from odradek.protocol.batches.compression import Codec

LARGEST = COMPRESSED_IN_LOOP_BYTES_MAX


@pytest.mark.parametrize(
    ("codec", "sizes", "expected"),
    [
        (Codec.ZSTD, [], False),
        (Codec.ZSTD, [LARGEST, LARGEST], False),
        (Codec.ZSTD, [1, LARGEST + 1], True),
        (Codec.NONE, [LARGEST + 1], False),
    ],
)
def test_one_batch_that_is_too_large_takes_its_request_along(codec: Codec, sizes: list[int], expected: bool) -> None:
    assert is_compressed_in_thread(codec, sizes) is expected
