"""Defaults that are others where a broker keeps everything in memory. Pure."""

from collections.abc import Mapping

from odradek.broker.config.group_options import GroupOptions


def with_defaults(static: Mapping[str, str], *, memory: bool) -> Mapping[str, str]:
    """With the defaults of a broker that keeps everything in memory: tests do not wait for more members of a group."""
    return {GroupOptions.group_initial_rebalance_delay_ms.name: "0", **static} if memory else static
