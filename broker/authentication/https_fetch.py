"""One answer by HTTPS, for a helper thread: keys and tokens of an identity provider.

The certificate is checked with the authorities of the system (OpenSSL's `SSL_CERT_FILE` adds others). Redirects are not
followed: where keys come from is for the operator to say. What is read has an end in bytes and in time.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

SIZE_BYTES_MAX: Final = 1 << 20
STEP_S: Final = 5.0
"""How long connecting, and each read, may take."""
TOTAL_S: Final = 15.0
OK: Final = 200
NO_HEADERS: Final[Mapping[str, str]] = {}


class FetchFailed(OSError):
    """No usable answer came. The text names the host, and holds nothing of what was sent."""


def fetch(
    url: str, clock_s: Callable[[], float], *, body: bytes | None = None, headers: Mapping[str, str] = NO_HEADERS
) -> bytes:
    """The body of the answer to a GET, or to a POST of `body`. Raises FetchFailed."""
    import ssl
    from http.client import HTTPException, HTTPSConnection

    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise FetchFailed("the URL is none of https://HOST/…")
    host, ends_s = parts.hostname, clock_s() + TOTAL_S
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = HTTPSConnection(host, parts.port or 443, timeout=STEP_S, context=ssl.create_default_context())
    try:
        connection.request("GET" if body is None else "POST", target, body, dict(headers))
        response = connection.getresponse()
        if response.status != OK:
            raise FetchFailed(f"{host} answered {response.status}, and not {OK} (redirects are not followed)")
        data = b""
        while chunk := response.read1(SIZE_BYTES_MAX):
            data += chunk
            if len(data) > SIZE_BYTES_MAX:
                raise FetchFailed(f"{host} answered more than {SIZE_BYTES_MAX} bytes")
            if clock_s() > ends_s:
                raise FetchFailed(f"{host} took more than {TOTAL_S:.0f} s for its answer")
        return data
    except FetchFailed:
        raise
    except (OSError, HTTPException, ValueError) as error:
        raise FetchFailed(f"{host} could not be asked: {type(error).__name__}: {error}") from error
    finally:
        connection.close()
