"""A connection over TLS as its protocol sees it: a transport like that of a socket, behind which is a `TlsLayer`."""

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol

from odradek.protocol.primitives import Buffer


class Layer(Protocol):
    """What the transport hands everything to."""

    @property
    def socket_transport(self) -> asyncio.Transport: ...

    @property
    def unsent_bytes(self) -> int:
        """What the socket has not taken, encrypted or not."""
        ...

    @property
    def is_closing(self) -> bool: ...

    def extra_info(self, name: str, default: object) -> object: ...

    def send(self, parts: Iterable[Buffer]) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class TlsTransport(asyncio.Transport):
    """See the module."""

    def __init__(self, layer: Layer, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self._layer = layer
        self._protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._layer.send((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._layer.send(list_of_data)

    def get_write_buffer_size(self) -> int:
        return self._layer.unsent_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._layer.socket_transport.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._layer.socket_transport.get_write_buffer_limits()

    def pause_reading(self) -> None:
        self._layer.pause()

    def resume_reading(self) -> None:
        self._layer.resume()

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._layer.is_closing

    def close(self) -> None:
        self._layer.close()

    def abort(self) -> None:
        self._layer.socket_transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._layer.extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol
