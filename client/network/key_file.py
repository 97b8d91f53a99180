"""A private key that was given as text, as the file that `ssl` insists on: for this user only, and gone soon."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["key_file"]


@contextmanager
def key_file(*texts: str) -> Generator[str]:
    """The path of a file with these texts, one after the other, for as long as it is needed. Raises OSError."""
    with tempfile.NamedTemporaryFile("w", prefix="odradek-", suffix=".pem", encoding="utf-8") as file:  # has mode 0600
        file.write("\n".join(texts))
        file.flush()
        yield file.name
