"""Values of records that carry numbers, by which a history knows the records.

encoded(7, 200)          the number, and 200 bytes of no meaning
decoded(value)           the number again
"""


def encoded(value: int, size_bytes: int = 0) -> bytes:
    """A record's value that carries the number, and so many bytes of no meaning."""
    return b"%d " % value + b"." * size_bytes


def decoded(data: bytes | None) -> int:
    """The number that `encoded` put there. Raises ValueError."""
    number, blank, rest = (data or b"").partition(b" ")
    if not blank or rest.strip(b"."):
        raise ValueError(f"no producer of this world has written {data!r}")
    return int(number)
