"""Which batches are compressed in the event loop, and which leave it for a helper thread. Pure."""

from collections.abc import Iterable
from typing import Final

from odradek.protocol.batches.compression import Codec

COMPRESSED_IN_LOOP_BYTES_MAX: Final = 64 * 1024
"""Of a batch before compression. To hand one to a thread and back costs more than to compress a smaller one."""


def is_compressed_in_thread(codec: Codec, sizes_bytes: Iterable[int]) -> bool:
    """Whether the batches of one request, of these sizes, are compressed in a thread, so that the loop goes on."""
    return codec is not Codec.NONE and any(size > COMPRESSED_IN_LOOP_BYTES_MAX for size in sizes_bytes)
