"""Whose requests faults leave alone, and nobody records: brokers' among themselves, and those of the test kit."""

from odradek.broker.membership.peers import CLIENT_ID_PREFIX, is_peer

__all__ = ["is_between_brokers"]


def is_between_brokers(client_id: str | None) -> bool:
    """Whether a broker asks another one. Asked of each request, so most are told apart by how they begin."""
    return client_id is not None and client_id.startswith(CLIENT_ID_PREFIX) and is_peer(client_id)
