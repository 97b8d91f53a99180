"""Levels of the process's loggers, in Kafka's names, for `--log-level` and resources of type BROKER_LOGGER (KIP-412;
`LoggingController`). They belong to the process: brokers that share one share them.
"""

import logging
from typing import Final

from odradek.broker.observability.request_log import TRACE

ROOT: Final = "root"
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}

logging.addLevelName(TRACE, "TRACE")


def levels() -> dict[str, str]:
    """The level that counts for each logger there is, by its name; the root's is `root`."""
    names = [name for name, found in logging.root.manager.loggerDict.items() if isinstance(found, logging.Logger)]
    return {ROOT: _name(logging.root)} | {name: _name(logging.getLogger(name)) for name in sorted(names)}


def exists(name: str) -> bool:
    """Whether there is a logger of this name; asking does not make one."""
    return name == ROOT or isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)


def set_level(name: str, level: str | None) -> None:
    """From now on the logger writes from this level on; None: as the one above it."""
    logging.getLogger(None if name == ROOT else name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _name(logger: logging.Logger) -> str:
    effective = logger.getEffectiveLevel()
    return next((name for name, level in LEVELS.items() if level <= effective), "TRACE")
