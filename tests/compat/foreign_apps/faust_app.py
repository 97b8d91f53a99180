"""A Faust application: an agent in a consumer group. `faust_app.py BOOTSTRAP GROUP TOPIC DIRECTORY` prints each
value."""

import importlib
import sys
from typing import Any

faust: Any = importlib.import_module("faust")  # which the checkers of types do not find

bootstrap, group, topic, directory = sys.argv[1:5]
app = faust.App(
    group,
    broker=f"kafka://{bootstrap}",
    consumer_auto_offset_reset="earliest",
    broker_commit_interval=0.2,
    topic_disable_leader=True,
    topic_replication_factor=1,
    topic_partitions=2,
    web_enabled=False,
    datadir=directory,
    value_serializer="raw",
)
source: Any = app.topic(topic, value_type=bytes, value_serializer="raw")


async def show(values: Any) -> None:
    async for value in values:
        print(value.decode(), file=sys.__stdout__, flush=True)  # sys.stdout is its log


app.agent(source)(show)

if __name__ == "__main__":
    sys.argv[1:] = ["worker", "--without-web", "--loglevel", "warn"]
    app.main()
