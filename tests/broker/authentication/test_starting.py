"""A broker's SASL at its start: none without a listener that speaks it, refusals, and the first user of a cluster."""

import subprocess
import sys
from pathlib import Path

import pytest

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.keys import SCRAM_SECRET_KEY
from odradek.broker.cluster.scram_store import write_first_user
from odradek.broker.config.option import ConfigError
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.server import Broker
from odradek.runtime.environment import Environment
from tests.broker.network.sasl_clients import OPTIONS, authenticate_by_scram
from tests.broker.servers import started
from tests.broker.wire import connected, running_broker, settings


async def test_without_sasl_there_is_none_and_the_store_has_no_secret() -> None:
    async with running_broker() as broker:
        assert broker.context.authentication is None
        assert broker.context.metadata.image.scram is None


async def test_the_secret_is_made_once_and_kept() -> None:
    disk, secrets = MemoryDisk(), set[bytes | None]()
    for _ in range(2):
        async with started(Broker(settings("data", OPTIONS), Environment(), disk)) as broker:
            assert broker.context.metadata.image.scram is not None
            secrets.add(broker.context.metadata.image.scram.secret)
    assert len(secrets) == 1
    assert None not in secrets


async def test_where_no_scram_is_offered_no_secret_is_made() -> None:
    options = {**OPTIONS, "sasl.enabled.mechanisms": "PLAIN"}
    async with running_broker(options) as broker:
        assert broker.context.authentication is not None
        assert SCRAM_SECRET_KEY not in (await broker.context.metadata.store.read("/scram/")).entries


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_first_user_is_written_to_the_stopped_store_and_comes_in(is_new: bool) -> None:
    disk = MemoryDisk()
    disk.make_dir("data")
    if not is_new:
        async with started(Broker(settings("data", OPTIONS), Environment(), disk)):
            pass
    store = EmbeddedStore.open(disk, "data")
    await write_first_user(store, "SCRAM-SHA-512", "admin", "of admin")
    await store.close()
    for _ in range(2):
        async with (
            started(Broker(settings("data", OPTIONS), Environment(), disk)) as broker,
            connected(broker) as client,
        ):
            answer = await authenticate_by_scram(client, "SCRAM-SHA-512", "admin", "of admin")
            assert answer.error_code == 0


async def test_a_file_that_cannot_be_used_refuses_the_start(tmp_path: Path) -> None:
    options = {**OPTIONS, "sasl.plain.password.file": str(tmp_path / "users")}
    with pytest.raises(ConfigError, match=r"sasl\.plain\.password\.file=.*/users cannot be used"):
        async with running_broker(options):
            pass


def test_a_broker_without_sasl_imports_nothing_of_it() -> None:
    program = (
        "import asyncio, sys\n"
        "from odradek import serving\n"
        "async def main():\n"
        "    async with serving(memory=True):\n"
        "        found = [name for name in sys.modules if name.startswith('odradek.broker.authentication.')]\n"
        "        print(sorted(found), 'jwt' in sys.modules, 'cryptography' in sys.modules)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "['odradek.broker.authentication.starting'] False False"
