"""Who leads a partition, for a client that asked somebody else: it spares it a Metadata request (KIP-951)."""

from typing import NamedTuple

from odradek.broker.handling.context import Call, Context, Endpoint


class CurrentLeader(NamedTuple):
    """The leader as this broker knows it. `endpoint`: on the listener that was asked, None where it has none there."""

    leader_id: int
    leader_epoch: int
    endpoint: Endpoint | None
    rack: str | None


def current_leader(context: Context, call: Call, topic: str, index: int) -> CurrentLeader | None:
    """None for an unknown partition."""
    image = context.metadata.image
    state = image.partition(topic, index)
    if state is None:
        return None
    broker = image.brokers.get(state.leader)
    endpoint = image.endpoint(state.leader, call.caller.listener)
    return CurrentLeader(
        state.leader,
        state.leader_epoch,
        None if endpoint is None else Endpoint(*endpoint),
        None if broker is None else broker.rack,
    )
