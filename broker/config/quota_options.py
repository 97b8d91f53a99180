"""What is set for a broker's quotas, and for how many connections it takes, one row each (broker_options.py, where the
rules of these rows stand). Limits of users, client ids and addresses are none of these: AlterClientQuotas sets them.
"""

import ipaddress

from odradek.broker.config.option import CLUSTER_WIDE, INT, INT_MAX, STRING, Option


def canonical(address: str) -> str:
    """One text for each address, however it is written; IPv4 within IPv6 is IPv4. Raises ValueError."""
    parsed = ipaddress.ip_address(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def parse_overrides(text: str) -> dict[str, int]:
    """`ADDRESS:COUNT,…` by address, each in its `canonical` text. An IPv6 address may stand in brackets. Raises
    ValueError."""
    overrides: dict[str, int] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        host, _, count = item.rpartition(":")
        number = int(count)
        if not 0 <= number <= INT_MAX:
            raise ValueError(f"{number} is out of range")
        overrides[canonical(host.strip().removeprefix("[").removesuffix("]"))] = number
    return overrides


def _check_overrides(text: str) -> str | None:
    try:
        parse_overrides(text)
    except ValueError:
        return "it must be a list of ADDRESS:COUNT, as in 127.0.0.1:200,::1:200, with IP addresses"
    return None


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class QuotaOptions:
    """In order of the names."""

    controller_quota_window_num = Option(
        "controller.quota.window.num", INT, 11, "How many windows of changes of topics and partitions count for "
        "`controller_mutation_rate`: so much of it is saved up.", minimum=1,
    )
    controller_quota_window_size_seconds = Option(
        "controller.quota.window.size.seconds", INT, 1, "How long one of them is.", minimum=1, unit="seconds",
    )
    max_connection_creation_rate = Option(
        "max.connection.creation.rate", INT, INT_MAX, "How many connections may come in a second; those beyond wait. "
        "Also for one listener. Where there are several, the one of brokers is left out of the broker's limit.",
        minimum=0, dynamic=CLUSTER_WIDE,
        per_listener=True,
    )
    max_connections_per_ip = Option(
        "max.connections.per.ip", INT, INT_MAX, "How many connections may be open from one address; those beyond are "
        "closed.", minimum=0, dynamic=CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides = Option(
        "max.connections.per.ip.overrides", STRING, "", "The same for single addresses, `ADDRESS:COUNT`.",
        check=_check_overrides, dynamic=CLUSTER_WIDE,
        deviation="Names of hosts are refused: which addresses they stand for may change.",
    )
    quota_window_num = Option(
        "quota.window.num", INT, 11, "Over how many windows a client's rates are measured.", minimum=1,
    )
    quota_window_size_seconds = Option(
        "quota.window.size.seconds", INT, 1, "How long one of them is.", minimum=1, unit="seconds",
    )
# fmt: on
