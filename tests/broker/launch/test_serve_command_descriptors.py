"""With 64 descriptors for 300 partitions and 60 connections a broker gets slower or refuses, and never ends."""

import asyncio
from contextlib import suppress
from pathlib import Path

from processes.odradek_broker import OdradekBroker
from tests.broker.wire import RawClient, batch, create_topic, produced

DESCRIPTORS = 64
PARTITIONS = 300
CONNECTIONS = 60
LAUNCHER = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))
from odradek.cli import main
main()
"""


class Narrow(OdradekBroker):
    """A broker whose hard limit of open files is low, so that it cannot raise the soft one."""

    def command(self) -> list[str]:
        python, _, _, *arguments = super().command()
        return [python, "-c", LAUNCHER, *arguments]


async def connect(broker: OdradekBroker) -> RawClient:
    return RawClient(*await asyncio.open_connection(broker.host, broker.port))


async def is_served(client: RawClient) -> bool:
    """Whether it has an answer soon; one who is not accepted waits, or is closed."""
    try:
        async with asyncio.timeout(1.0):
            return (await produced(client, "orders", batch(b"from one of many"))).error_code == 0
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        return False


async def filled(client: RawClient, base_offset: int) -> None:
    answers = [await produced(client, "orders", batch(b"x"), index=index) for index in range(1, PARTITIONS)]
    assert {(answer.error_code, answer.base_offset) for answer in answers} == {(0, base_offset)}


async def use(broker: OdradekBroker) -> None:
    first = await connect(broker)
    await create_topic(first, "orders", PARTITIONS)
    await filled(first, 0)
    others = [await connect(broker) for _ in range(CONNECTIONS)]
    served = sum(await asyncio.gather(*map(is_served, others)))
    assert 0 < served < CONNECTIONS
    await filled(first, 1)  # whoever was there is served on, with files that are opened again for each use
    for other in (first, *others):
        other.writer.transport.abort()
        with suppress(OSError):
            await other.writer.wait_closed()
    async with asyncio.timeout(20):  # and with room again, newcomers
        while not await is_served(late := await connect(broker)):
            late.close()
    late.close()


def test_too_many_files_and_connections_are_served_more_slowly_or_refused(tmp_path: Path) -> None:
    with Narrow(tmp_path / "data") as broker:
        asyncio.run(use(broker))
        assert broker.is_running
        broker.kill()
        broker.start()  # all 300 logs are recovered one by one
        asyncio.run(again(broker))
    assert "Traceback" not in broker.output
    assert "connections already (raise the limit of open files, ulimit -n)" in broker.output


async def again(broker: OdradekBroker) -> None:
    client = await connect(broker)
    await filled(client, 2)
    client.close()
