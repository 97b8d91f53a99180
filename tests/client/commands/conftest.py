"""Commands run in the process of the tests here: what they set for a process of their own is put back."""

import logging
from collections.abc import Iterator

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.config import AdminConfig
from odradek.client.commands.failures import CommandFailed

SET_BY_COMMANDS = ("", "odradek.client", "odradek.client.fetching")


@pytest.fixture(autouse=True)
def levels_restored() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in SET_BY_COMMANDS]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture
def admins(monkeypatch: pytest.MonkeyPatch) -> list[AdminConfig]:
    """The configurations of the admin clients that commands would have connected with: none gets so far."""
    found: list[AdminConfig] = []

    async def start(self: Admin) -> Admin:
        found.append(self.config)
        raise CommandFailed("It is not to connect here.")

    monkeypatch.setattr(Admin, "start", start)
    return found
