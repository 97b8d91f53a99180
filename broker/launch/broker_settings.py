"""What options mean for one broker: from its configuration to what `Broker` is given. Pure."""

import posixpath
from collections.abc import Sequence
from typing import Final

from odradek.broker.config.broker_config import BrokerConfig, ConfigError
from odradek.broker.config.listeners import parse_listener
from odradek.broker.config.settings import Settings, told_broker_listener
from odradek.broker.config.store_address import parse_store_address
from odradek.broker.launch import protection
from odradek.broker.launch.listen_options import (
    check_inter_broker,
    check_listeners,
    check_sasl,
    parse_metrics_address,
)

SHARED: Final = ("etcd", "unix")
"""Kinds of metadata stores that other brokers may use, too."""


def settings_of(config: BrokerConfig, memory: bool, metrics: str | None) -> Settings:
    """What a configuration and the two options beside it mean. Raises ListenerError, ConfigError."""
    listeners, advertised = check_listeners(
        [parse_listener(text) for text in config.listeners],
        [parse_listener(text) for text in config.advertised_listeners or ()],
    )
    option, name = told_broker_listener(config)
    check_inter_broker(name, listeners, option)
    check_data_dirs(config.data_dirs)
    page = None if metrics is None else parse_metrics_address(metrics)
    protection.check(listeners, config, page)
    settings = Settings(
        listeners=listeners,
        advertised=advertised,
        data_dirs=None if memory else config.data_dirs,
        node_id=config.node_id,
        config=config,
        metrics=page,
    )
    is_shared = parse_store_address(config.metadata_store).kind in SHARED
    check_sasl(listeners, config, settings.broker_listener if is_shared else None)
    return settings


def check_data_dirs(paths: Sequence[str]) -> None:
    """Raises ConfigError for a directory that is named twice, or lies in another one: its name may be a partition's."""
    if not paths:
        raise ConfigError("log.dirs names no directory")
    normal = [posixpath.normpath(path) for path in paths]
    for number, path in enumerate(normal):
        for other in normal[:number]:
            if path == other:
                raise ConfigError(f"the data directory {path} is given twice")
            if f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/"):
                raise ConfigError(f"the data directories {other} and {path} lie in one another")
