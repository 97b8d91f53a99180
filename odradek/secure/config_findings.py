"""What is weak in a broker's configuration and in its files, without the broker: `odradek secure check --config FILE`.

What a broker with `secure=true` would not start with is said by the broker's own rules
(`odradek/broker/launch/protection.py`). Beside these: files and directories that others than their owner may read.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from odradek.broker.config.broker_config import BrokerConfig, load_static
from odradek.broker.config.listeners import parse_listener
from odradek.broker.launch.protection import protection_of, refusals
from odradek.secure.etcd_options import etcd_problem
from odradek.secure.findings import Finding, Level

__all__ = ["config_findings"]

SECRET_FILES: Final = ("ssl.keystore.location", "sasl.plain.password.file", "metadata.etcd.key.location")
"""Options that name files with keys or passwords; those of one listener end like this."""
SECRETS: Final = ("password", "jaas.config", "ssl.keystore.key")
"""So end the names of options whose values are secrets."""
OTHERS: Final = 0o077


def config_findings(path: str) -> list[Finding]:
    """Raises ConfigError, ValueError, OSError, UnicodeDecodeError for a file that no broker would take."""
    with open(path, encoding="utf-8") as file:
        options = load_static(file.read(), ())
    config = BrokerConfig(options)
    found = [*_of_files(path, options, config), *(Finding(Level.WEAK, each) for each in _refusals(config))]
    problem = etcd_problem(options)
    if problem is not None and not any("etcd" in finding.what for finding in found):
        found.append(Finding(Level.WEAK, problem))
    return found


def _refusals(config: BrokerConfig) -> list[str]:
    """Why a broker with `secure=true` would not start."""
    listeners = [parse_listener(text) for text in config.listeners]
    said = refusals(protection_of(listeners, config, None))
    return [sentence.removeprefix("--secure: ") for sentence in said]


def _of_files(path: str, options: Mapping[str, str], config: BrokerConfig) -> Iterator[Finding]:
    if any(name.endswith(SECRETS) and value for name, value in options.items()):
        yield from _of_mode(path, "600")
    for name, value in options.items():
        if name.endswith(SECRET_FILES) and value:
            yield from _of_mode(value, "600")
    for directory in config.data_dirs:
        yield from _of_mode(directory, "700")


def _of_mode(path: str, wanted: str) -> Iterator[Finding]:
    """Nothing of what is not there: a broker says so when it starts."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return
    if mode & OTHERS:
        yield Finding(Level.WEAK, f"{path} has mode {mode:04o}, so others may use what is in it: chmod {wanted} {path}")
