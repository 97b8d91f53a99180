"""TLS over a TCP connection as one transport, which counts the bytes of both and tells when the last one is gone.

The loops' own transports of TLS take bytes for written once they are encrypted and given to the socket's transport,
which may hold megabytes of them still (asyncio's sslproto, and uvloop's). Whoever closes the connection then loses
these.

    the protocol
      TlsTransport      hands everything to the two transports, and adds up their buffers
        TLS             encrypts
          _Underneath   hears from the socket's transport that its buffer is empty
            the socket's transport
"""

import asyncio
from collections.abc import Callable, Iterable
from ssl import SSLContext
from typing import Any, cast

__all__ = ["start_tls"]


async def start_tls(
    loop: asyncio.AbstractEventLoop,
    socket_transport: asyncio.Transport,
    protocol: asyncio.BaseProtocol,
    context: SSLContext,
    server_hostname: str,
) -> asyncio.Transport:
    """Begins TLS on a connection that nobody reads from yet, and tells `protocol` of it. Raises OSError.

    Where TLS fails, `connection_lost` may be called without `connection_made` before it.
    """
    try:
        tls = await loop.start_tls(socket_transport, protocol, context, server_hostname=server_hostname)
    except BaseException:
        socket_transport.abort()
        raise
    assert tls is not None
    transport = TlsTransport(tls, socket_transport, protocol)
    protocol.connection_made(transport)
    return transport


class TlsTransport(asyncio.Transport):
    """See the module. With write buffer limits of 0, `resume_writing` is called when nothing is held any more."""

    def __init__(
        self, tls: asyncio.Transport, socket_transport: asyncio.Transport, protocol: asyncio.BaseProtocol
    ) -> None:
        super().__init__()
        self._tls = tls
        self._socket = socket_transport
        self._protocol = protocol
        # Here, where no read is under way: uvloop reads for its own TLS in another way.
        beneath = cast(asyncio.BufferedProtocol, socket_transport.get_protocol())
        socket_transport.set_protocol(_Underneath(beneath, self._emptied))

    def get_write_buffer_size(self) -> int:
        return self._tls.get_write_buffer_size() + self._socket.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high, low)
        self._tls.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._tls.get_write_buffer_limits()

    def _emptied(self) -> None:
        if not self.get_write_buffer_size():
            self._protocol.resume_writing()

    # -- handed on -------------------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._tls.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._tls.writelines(list_of_data)

    def can_write_eof(self) -> bool:
        return self._tls.can_write_eof()

    def write_eof(self) -> None:
        self._tls.write_eof()

    def abort(self) -> None:
        self._tls.abort()

    def close(self) -> None:
        self._tls.close()

    def is_closing(self) -> bool:
        return self._tls.is_closing()

    def is_reading(self) -> bool:
        return self._tls.is_reading()

    def pause_reading(self) -> None:
        self._tls.pause_reading()

    def resume_reading(self) -> None:
        self._tls.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls.get_extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._tls.set_protocol(protocol)


class _Underneath(asyncio.BufferedProtocol):
    """Hands everything to `tls`, and says when the socket's buffer is empty after it was not."""

    def __init__(self, tls: asyncio.BufferedProtocol, on_empty: Callable[[], None]) -> None:
        self.tls = tls
        self._on_empty = on_empty

    def get_buffer(self, sizehint: int) -> Any:
        return self.tls.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.tls.buffer_updated(nbytes)

    def eof_received(self) -> bool | None:
        return self.tls.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.tls.connection_lost(exc)

    def pause_writing(self) -> None:
        self.tls.pause_writing()

    def resume_writing(self) -> None:
        self.tls.resume_writing()  # which may fill the buffer again
        self._on_empty()
