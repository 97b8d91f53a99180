"""A handshake in memory between two contexts: would a broker with the one be served by a broker with the other?

Names of hosts are not compared (SslFactory.SslEngineValidator does not either), so that the client's context must not
ask for them.
"""

import ssl
from typing import Final

_ROUNDS_MAX: Final = 10
"""TLS 1.2 needs two."""


def handshake_problem(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """Why they do not come to terms, in OpenSSL's words; None: they do."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(_ROUNDS_MAX):
        for side in tuple(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message or "the certificate was not verified"
            except ssl.SSLError as error:
                return str(error.reason or error)
            sides.remove(side)
        if not sides:
            return None
    return "the handshake does not end"
