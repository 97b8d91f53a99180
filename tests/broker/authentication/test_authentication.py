"""SASL of a broker, put together: what it loads, refuses, and keeps up to date."""

import pytest

from odradek.broker.authentication.authentication import Authentication
from odradek.broker.authentication.password_file import LOOK_MS
from odradek.broker.authentication.password_hash import Cost, hashed, written
from odradek.broker.authentication.sasl_connection import AuthenticationFailed
from odradek.broker.cluster.scram_credentials import ScramCredentials
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.runtime.tasks import Tasks
from tests.broker.authentication.listeners import ALL, CREDENTIALS, authenticated, by_scram, plain
from tests.broker.authentication.tokens import Key, jwks
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

FILES = {"sasl.plain.password.file": "/users", "sasl.oauthbearer.jwks.endpoint.url": "file:/keys"}
CAROL = written(hashed("hers", b"0123456789abcdef", Cost(14, 1, 1)))


class Scene:
    """SASL on the listener OUTSIDE, with files."""

    def __init__(self, options: dict[str, str]) -> None:
        self.environment = VirtualEnvironment()
        self.tasks = Tasks(self.environment.loop)
        self.disk = MemoryDisk()
        self.credentials: ScramCredentials | None = None
        self.authentication = Authentication(
            ["OUTSIDE"], BrokerConfig(options), self.environment, self.tasks, self.disk, lambda: self.credentials
        )


async def test_files_are_read_and_read_again() -> None:
    scene = Scene(ALL | FILES)
    scene.disk.write_whole("/users", b"")
    scene.disk.write_whole("/keys", jwks(Key("ES256", "one").described()))
    await scene.authentication.load()
    scene.authentication.start()
    connection = scene.authentication.connection("OUTSIDE")
    assert connection is not None
    with pytest.raises(AuthenticationFailed):
        await authenticated(connection, "PLAIN", plain("carol", "hers"))
    scene.disk.write_whole("/users", f"carol:{CAROL}".encode())
    await scene.environment.sleep(LOOK_MS + 10)
    connection = scene.authentication.connection("OUTSIDE")
    assert connection is not None
    await authenticated(connection, "PLAIN", plain("carol", "hers"))
    await scene.tasks.close()


@pytest.mark.parametrize(
    ("users", "keys", "said"),
    [
        (None, b"", "sasl.plain.password.file=/users cannot be used"),
        (b"geheim", b"", r"sasl.plain.password.file=/users cannot be used: line 1 is not NAME:HASH"),
        (b"", None, r"jwks.endpoint.url=file:/keys cannot be used"),
        (b"", b"{}", r"jwks.endpoint.url=file:/keys cannot be used"),
    ],
)
async def test_files_that_cannot_be_used_are_refused(users: bytes | None, keys: bytes | None, said: str) -> None:
    scene = Scene(ALL | FILES)
    for path, data in (("/users", users), ("/keys", keys)):
        if data is not None:
            scene.disk.write_whole(path, data)
    with pytest.raises(ConfigError, match=said) as caught:
        await scene.authentication.load()
    assert "geheim" not in str(caught.value)


async def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no file of this machine"):
        Scene(ALL | {"sasl.oauthbearer.jwks.endpoint.url": "file:keys"})


async def test_credentials_are_those_of_the_cluster_as_they_are_now() -> None:
    scene = Scene(ALL)
    assert scene.authentication.needs_scram
    for credentials in (None, CREDENTIALS):
        scene.credentials = credentials
        connection = scene.authentication.connection("OUTSIDE")
        assert connection is not None
        if credentials is None:
            with pytest.raises(AuthenticationFailed):
                await by_scram(connection)
        else:
            await by_scram(connection)


async def test_only_listeners_with_sasl_have_it() -> None:
    scene = Scene(ALL | {"sasl.server.max.receive.size": "1000", "sasl.enabled.mechanisms": "PLAIN"})
    assert scene.authentication.connection("INSIDE") is None
    assert scene.authentication.receive_bytes_max("OUTSIDE") == 1000
    assert not scene.authentication.needs_scram
