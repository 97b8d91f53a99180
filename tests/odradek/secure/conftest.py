"""Commands run in the process of the tests here: what they set for a process of their own is put back."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def levels_restored() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("", "odradek.client", "odradek.client.fetching")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
