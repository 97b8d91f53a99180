"""From a broker's name to a TCP connection, with TLS on it where the settings ask for it.

A name may have several addresses, of both families; they are tried in the order of the resolver until one works. With
`client_dns_lookup` = resolve_canonical_bootstrap_servers_only, a bootstrap name stands for its addresses, each of which
is called, and checked by TLS, by the name that reverse look-up gives it (KIP-235, KIP-602). Names are looked up anew
each time, so a broker that has moved is found.

What fails is a ConnectionFailed, which may be tried again. Only TLS that was refused, or cannot be set up with these
settings, is an AuthenticationFailed.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ConnectionFailed
from odradek.client.network.tls import TlsContexts, refusal, server_name
from odradek.runtime.environment import Environment

__all__ = ["Target", "broker_name", "dial", "find_targets"]


class Target(NamedTuple):
    """Where to connect to, and who should answer there."""

    address: str
    name: str


def broker_name(node_id: int, host: str, port: int) -> str:
    """How texts call a broker: `broker 3 (kafka.test:9092)`; a bootstrap server has no number yet."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"broker {node_id} ({place})" if node_id >= 0 else f"bootstrap server {place}"


async def find_targets(
    environment: Environment, config: ClientConfig, node_id: int, host: str, port: int, timeout_ms: float
) -> list[Target]:
    """The addresses of a broker, at least one. Raises ConnectionFailed."""
    broker = broker_name(node_id, host, port)
    try:
        async with asyncio.timeout(timeout_ms / 1000.0):
            addresses = await environment.resolve(host, port)
            if node_id >= 0 or config.client_dns_lookup == "use_all_dns_ips":
                found = [Target(address, host) for address in addresses]
            else:
                found = [Target(address, await _canonical_name(environment, address)) for address in addresses]
    except TimeoutError as error:
        raise ConnectionFailed(broker, f"its name was not resolved within {timeout_ms:.0f} ms") from error
    except (OSError, UnicodeError) as error:
        raise ConnectionFailed(broker, f"its name cannot be resolved: {_text(error)}") from error
    if not found:
        raise ConnectionFailed(broker, "its name has no address")
    return found


async def _canonical_name(environment: Environment, address: str) -> str:
    try:
        return await environment.canonical_name(address)
    except OSError:
        return address  # as Java's getCanonicalHostName


async def dial(
    environment: Environment,
    config: ClientConfig,
    contexts: TlsContexts,
    factory: Callable[[], asyncio.BaseProtocol],
    target: Target,
    port: int,
    broker: str,
    timeout_ms: float,
) -> None:
    """Connects the protocol that `factory` makes. Raises ConnectionFailed, AuthenticationFailed."""
    has_tcp = False

    def reached() -> asyncio.BaseProtocol:
        nonlocal has_tcp
        has_tcp = True
        return factory()

    try:
        async with asyncio.timeout(timeout_ms / 1000.0):
            context = await environment.run_blocking(contexts.make, broker) if config.uses_tls else None
            await environment.connect(
                reached,
                target.address,
                port,
                ssl=context,
                server_hostname=None if context is None else server_name(target.name),
                send_buffer_bytes=config.send_buffer_bytes,
                receive_buffer_bytes=config.receive_buffer_bytes,
            )
    except ssl.SSLEOFError as error:
        raise ConnectionFailed(broker, _CLOSED_IN_TLS) from error
    except ssl.SSLError as error:
        raise refusal(error, broker) from error
    except OSError as error:  # TimeoutError is one, too
        raise ConnectionFailed(broker, _why(error, target.address, timeout_ms, config.uses_tls and has_tcp)) from error


_CLOSED_IN_TLS = (
    "it closed the connection while TLS was to begin; a listener without TLS does that: check the port, and "
    "security_protocol"
)


def _why(error: OSError, address: str, timeout_ms: float, is_in_tls: bool) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        step = "TLS was not set up" if is_in_tls else "it was not reached"
        return f"{step} within {timeout_ms:.0f} ms at {address}"
    if is_in_tls and isinstance(error, ConnectionError):
        return _CLOSED_IN_TLS
    return f"{address}: {_text(error)}"


def _text(error: Exception) -> str:
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or str(error) or type(error).__name__
