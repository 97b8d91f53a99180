"""How many records of TLS have arrived, by their headers, which are not encrypted. Pure.

    type (1 byte), version (2), length (2), content

OpenSSL does not say what was in a record that brought no data: an update of keys, in TLS 1.3, costs the peer 27 bytes
and this broker as much work as a kilobyte of data, and there may be any number of them. So records are handed on in
portions, and those that brought no data are what is left when the others are taken off.
"""

from typing import Final

_HEADER_BYTES: Final = 5


class RecordCounter:
    """Counts what is fed in any portions."""

    __slots__ = ("_header", "_left", "count")

    def __init__(self) -> None:
        self.count = 0
        """Of records that have come in full."""
        self._left = 0  # of the content of the record under way
        self._header = b""  # of the next one, while it is not whole

    def feed(self, data: memoryview, records_max: int) -> int:
        """Counts the records that end in `data`, and returns how many bytes it has looked at: all of them, or up to the
        end of the last record that `records_max` allows."""
        position, end, count = 0, len(data), 0
        while position < end and count < records_max:
            if self._left == 0:
                header = self._header + bytes(data[position : position + _HEADER_BYTES - len(self._header)])
                position += len(header) - len(self._header)
                if len(header) < _HEADER_BYTES:
                    self._header = header
                    break
                self._header = b""
                self._left = header[3] << 8 | header[4]
            taken = min(self._left, end - position)
            self._left -= taken
            position += taken
            if self._left == 0:
                count += 1
        self.count += count
        return position
