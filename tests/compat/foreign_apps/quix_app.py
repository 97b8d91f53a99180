"""A Quix Streams application in a consumer group. `quix_app.py BOOTSTRAP GROUP TOPIC DIRECTORY` prints each
value."""

import importlib
import sys
from pathlib import Path
from typing import Any

quixstreams: Any = importlib.import_module("quixstreams")  # which the checkers of types do not find

bootstrap, group, topic, directory = sys.argv[1:5]
app = quixstreams.Application(
    broker_address=bootstrap,
    consumer_group=group,
    auto_offset_reset="earliest",
    commit_interval=0.2,
    state_dir=Path(directory),
    loglevel="WARNING",
)


def show(value: bytes) -> None:
    print(value.decode(), flush=True)  # noqa: T201


frame = app.dataframe(app.topic(topic, value_deserializer="bytes", key_deserializer="bytes"))
frame.update(show)
if __name__ == "__main__":
    app.run()
