"""A broker that is given secrets in every way there is: none of them stands in anything that it writes or answers."""

import asyncio
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from odradek.broker.disk.open_files import mode_of
from odradek.broker.offline.rescue.command import backup
from odradek.protocol.configs import Operation, ResourceType
from odradek.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from processes.free_ports import free_ports
from processes.odradek_broker import OdradekBroker
from tests.broker.wire import RawClient
from tests.planted_secrets import PlantedSecrets

CLASSES = "org.apache.kafka.common.config.provider."
STORED = "listener.name.plaintext.ssl.key.password"


@asynccontextmanager
async def client_of(broker: OdradekBroker) -> AsyncGenerator[RawClient]:
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()


def alteration(name: str, value: str, *, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=name, config_operation=Operation.SET, value=value)
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name="0", configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


async def asked(broker: OdradekBroker, planted: PlantedSecrets) -> str:
    """All that it answers about its options, with another secret stored, and some refused."""
    said: list[str] = []
    async with client_of(broker) as client:
        for alter, code in (
            (alteration(STORED, planted.plant("stored")), 0),
            (alteration("no.such.password", planted.plant("unknown")), 0),
            (alteration("metadata.etcd.password", planted.plant("refused")), 42),
            (alteration(STORED, f"${{file:/{planted.plant('reference')}:x}}"), 40),
        ):
            altered = await client.ask(alter, 1)
            assert altered.responses[0].error_code == code, altered
            said.append(repr(altered))
        replaced = ReplacedResource(
            resource_type=ResourceType.BROKER,
            resource_name="0",
            configs=[ReplacedConfig(name="metadata.etcd.password", value=planted.plant("replaced"))],
        )
        said.append(repr(await client.ask(AlterConfigsRequest(resources=[replaced], validate_only=True), 2)))
        for name in ("0", ""):
            resource = DescribeConfigsResource(
                resource_type=ResourceType.BROKER, resource_name=name, configuration_keys=None
            )
            describe = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
            described = await client.ask(describe, 4)
            assert described.results[0].error_code == 0
            said.append(repr(described))
    return "\n".join(said)


@pytest.fixture
def planted() -> PlantedSecrets:
    return PlantedSecrets()


def test_no_secret_stands_in_what_a_broker_writes_or_answers(
    tmp_path: Path, planted: PlantedSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, data_dir = tmp_path / "given", tmp_path / "written" / "data"
    given.mkdir()
    (given / "secrets").write_text(f"user={planted.plant('by reference')}\n")
    monkeypatch.setenv("ODRADEK_LOCATION", planted.plant("in the environment"))
    (given / "server.properties").write_text(
        "config.providers=file,env\n"
        f"config.providers.file.class={CLASSES}FileConfigProvider\n"
        f"config.providers.env.class={CLASSES}EnvVarConfigProvider\n"
        f"metadata.etcd.username=${{file:{given}/secrets:user}}\n"
        "metadata.etcd.key.location=${env:ODRADEK_LOCATION}\n"
    )
    (port,) = free_ports(1)
    options = ["--config", str(given / "server.properties"), "--metrics", f"127.0.0.1:{port}"]
    options += ["--set", f"metadata.etcd.password={planted.plant('on the command line')}"]
    options += ["--log-level", "debug", "--log-level", "kafka.request.logger=trace"]
    with OdradekBroker(data_dir, *options) as broker:
        planted.refuse_in(asyncio.run(asked(broker, planted)), "an answer")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
            planted.refuse_in(page.read(), "the page of metrics")
        assert broker.terminate() == 0
        planted.refuse_in(broker.output, "the log")
        planted.refuse_in(broker.ready_line, "standard output")
        assert "IncrementalAlterConfigs" in broker.output, "the request log was on"
        assert "--set metadata.etcd.password=… has a secret on the command line" in broker.output
    assert planted.refuse_in_files(tmp_path, but=[given, data_dir / "metadata.log"]) > 3
    assert mode_of(str(data_dir)) == 0o700
    assert planted.found_in((data_dir / "metadata.log").read_bytes()) == ["stored", "unknown"]
    for words, found in (([], []), (["--with-secrets"], ["stored", "unknown"])):
        done = CliRunner().invoke(backup, [str(tmp_path / "backup"), "--data-dir", str(data_dir), *words])
        assert (done.exit_code, planted.found_in(done.output)) == (0, [])
        assert planted.found_in((tmp_path / "backup").read_bytes()) == found
