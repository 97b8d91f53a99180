"""A file in memory that has a path, for libraries that read secrets from files alone, as OpenSSL does.

It is nowhere on a disk, only this process can open it, and it is gone when the block ends (memfd_create(2)).
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def memory_file(content: bytes) -> Generator[str]:
    """The path of a file with this content, for as long as the block runs. Raises OSError, also where the system has
    no such files."""
    if sys.platform != "linux":
        raise OSError("this system has no files in memory (memfd_create), and a secret is not written to a disk")
    descriptor = os.memfd_create("odradek", os.MFD_CLOEXEC)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
