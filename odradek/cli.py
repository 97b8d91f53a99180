"""The `odradek` command line. Each command lives with what it runs; this is the door."""

import click

from broker.command import serve


@click.group()
@click.version_option(package_name="odradek")
def main() -> None:
    """Odradek: a Kafka-compatible broker and client in asyncio Python."""


main.add_command(serve)
