"""`odradek brokers`: the brokers of a cluster, and what their disks hold."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from odradek.client.commands.failures import EXIT_CODES_HELP
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_table

if TYPE_CHECKING:
    from odradek.client.admin.cluster import LogDirDescription


@click.command(epilog=EXIT_CODES_HELP)
@click.option("--log-dirs", is_flag=True, help="With their log directories, and what these hold, in bytes.")
@json_option
@on_target
async def brokers(target: Target, log_dirs: bool, as_json: bool) -> None:
    """List the brokers of a cluster."""
    async with target.admin() as admin:
        cluster = await admin.describe_cluster()
        directories = await admin.describe_log_dirs(broker.node_id for broker in cluster.brokers) if log_dirs else {}
    if as_json:
        found = [asdict(broker) for broker in cluster.brokers]
        for broker in found:
            if broker["node_id"] in directories:
                broker["log_dirs"] = [_log_dir(each) for each in directories[broker["node_id"]]]
        print_json({"cluster_id": cluster.cluster_id, "controller_id": cluster.controller_id, "brokers": found})
        return
    if log_dirs:
        print_table(
            ("BROKER", "LOG DIRECTORY", "REPLICAS", "BYTES", "USABLE", "TOTAL", "ERROR"),
            [
                (
                    node_id, each.path, len(each.replicas), each.size_bytes,
                    each.usable_bytes if each.usable_bytes >= 0 else None,
                    each.total_bytes if each.total_bytes >= 0 else None,
                    None if each.error is None else each.error.message,
                )
                for node_id, its_directories in directories.items()
                for each in its_directories
            ],
        )  # fmt: skip
        return
    print_table(
        ("BROKER", "HOST", "PORT", "RACK", "CONTROLLER"),
        [
            (each.node_id, each.host, each.port, each.rack, each.node_id == cluster.controller_id)
            for each in cluster.brokers
        ],
    )


def _log_dir(directory: "LogDirDescription") -> dict[str, object]:
    return {
        "path": directory.path,
        "replicas": len(directory.replicas),
        "size_bytes": directory.size_bytes,
        "usable_bytes": directory.usable_bytes,
        "total_bytes": directory.total_bytes,
        "error": None if directory.error is None else directory.error.message,
    }
