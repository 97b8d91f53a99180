"""What a command line and its `--config` file say of options: read, with values by reference looked up, and with a
warning for each file with secrets that others may read."""

import os
from collections.abc import Sequence
from pathlib import Path

from odradek.broker.config.broker_config import load_static
from odradek.broker.config.static_options import Sources, has_secret
from odradek.broker.disk.open_files import warn_of_open_file
from odradek.runtime.properties import parse_properties


def read_static(config_file: str | None, assignments: Sequence[str]) -> dict[str, str]:
    """The options, each from its last place. Raises ConfigError, OSError and UnicodeDecodeError for the file itself."""
    text = None if config_file is None else Path(config_file).read_text(encoding="utf-8")
    looked_at: dict[str, None] = {}

    def read(path: str) -> bytes:
        looked_at[path] = None
        return Path(path).read_bytes()

    static = load_static(text, assignments, sources=Sources(os.environ, read))
    if config_file is not None and any(has_secret(*pair) for pair in parse_properties(text or "").items()):
        warn_of_open_file(config_file)
    for path in looked_at:
        warn_of_open_file(path)
    return static
