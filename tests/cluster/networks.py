"""What can disturb a network here: the relay, namespaces, or both. Cluster tests say which of them ran."""

import socket

from tests.cluster.namespaces import Namespaces, NamespacesFailed, why_not
from tests.cluster.relay import Relay, RelayFailed

TIMEOUT_S = 10.0


def instruments() -> dict[str, str | None]:
    """Each instrument, tried out; None if it works, else why it does not."""
    return {
        "relay": why_no_relay(),
        "namespaces": why_not(),
        "netem": why_no_netem(),
    }


def why_no_relay() -> str | None:
    """A word through a connection, and none through a cut one."""
    try:
        with Relay() as relay, socket.create_server(("127.0.0.1", 0)) as target:
            target.settimeout(TIMEOUT_S)
            port = relay.route("target", *target.getsockname())
            with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as near:
                far, _ = target.accept()
                with far:
                    far.settimeout(TIMEOUT_S)
                    relay.cut(way="out")
                    near.sendall(b"word")
                    far.sendall(b"answer")
                    assert near.recv(6) == b"answer"
                    assert relay.flows()[0].out_bytes == 0, "the cut does not hold"
                    relay.heal()
                    assert far.recv(4) == b"word"
    except (OSError, RelayFailed, AssertionError) as error:
        return repr(error)
    return None


def why_no_netem() -> str | None:
    if (reason := why_not()) is not None:
        return reason
    try:
        with Namespaces(1) as network:
            return None if network.has_netem else "this kernel has no netem"
    except NamespacesFailed as error:
        return str(error)
