"""A Faust application that copies a topic with `processing_guarantee="exactly_once"`, and reads what it has copied:
`faust_copier_app.py BOOTSTRAP GROUP SOURCE TARGET DIRECTORY` prints each value that it read from the target.

Faust has a transaction for each partition number of the topics that it reads, and sends to those within it. What goes
to a topic that it does not read, or to a partition of another number than its input's, would be in none, or in another.
"""

import importlib
import sys
from typing import Any

faust: Any = importlib.import_module("faust")  # which the checkers of types do not find

bootstrap, group, source_name, target_name, directory = sys.argv[1:6]
app = faust.App(
    group,
    broker=f"kafka://{bootstrap}",
    processing_guarantee="exactly_once",
    consumer_auto_offset_reset="earliest",
    broker_commit_interval=0.3,
    broker_session_timeout=6,
    broker_heartbeat_interval=1,
    topic_disable_leader=True,
    topic_replication_factor=1,
    topic_partitions=2,
    web_enabled=False,
    datadir=directory,
    value_serializer="raw",
)
source: Any = app.topic(source_name, value_type=bytes, value_serializer="raw")
target: Any = app.topic(target_name, value_type=bytes, value_serializer="raw")


async def copy(stream: Any) -> None:
    async for event in stream.events():
        await target.send(value=event.value, partition=event.message.partition)


async def show(values: Any) -> None:
    async for value in values:
        print(value.decode(), file=sys.__stdout__, flush=True)  # sys.stdout is its log


app.agent(source)(copy)
app.agent(target)(show)

if __name__ == "__main__":
    sys.argv[1:] = ["worker", "--without-web", "--loglevel", "warn"]
    app.main()
