"""Broker processes whose data directory goes away under them: how they end, and what they say.

A file takes the directory's place, so that nothing below it can be opened any more, not even by root. What is open
stays usable, as after a lazy unmount; the next thing that is made there fails.
"""

import asyncio
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from processes.odradek_broker import OdradekBroker
from tests.broker.wire import RawClient, batch, create_topic, produced

END_S = 10.0


def take_away(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}-gone"))
    path.write_bytes(b"")


async def create(broker: OdradekBroker, name: str) -> None:
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    try:
        client = RawClient(reader, writer)
        await create_topic(client, name, 2)
        assert (await produced(client, name, batch(b"x"), index=0)).error_code == ErrorCode.NONE
    finally:
        writer.transport.abort()


def test_without_its_last_directory_the_process_ends_with_one_sentence(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with OdradekBroker(data) as broker:
        take_away(data)
        with pytest.raises((AssertionError, OSError, asyncio.IncompleteReadError)):
            asyncio.run(create(broker, "orders"))
        assert broker.ended(END_S) == 1
        (line,) = (line for line in broker.output.splitlines() if line.startswith("Error: "))
    # Nothing is there between the two steps of taking it away, and the broker may look just then.
    reasons = ("[Errno 20] Not a directory", "[Errno 2] No such file or directory")
    said = f"Error: the last data directory has failed: {data}: "
    assert line in [f"{said}{each}: '{data}/.probe.tmp'" for each in reasons]


def test_with_another_one_it_goes_on_and_is_stopped_as_always(tmp_path: Path) -> None:
    other = tmp_path / "other"
    with OdradekBroker(tmp_path / "data", "--data-dir", str(other)) as broker:
        assert f"data in {tmp_path}/data, {other})" in broker.ready_line
        take_away(other)
        asyncio.run(create(broker, "orders"))  # one in each, unless the broker has noticed before
        asyncio.run(create(broker, "later"))
        assert broker.terminate() == 0
    assert broker.output.count(f"the data directory {other} has failed") == 1
    names = {path.name for path in (tmp_path / "data").iterdir() if path.is_dir()}
    assert {"later-0", "later-1", "orders-0"} <= names
