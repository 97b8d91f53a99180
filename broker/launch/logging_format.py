"""How log lines look: text for people, JSON for machines (`--log-format`)."""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from odradek.broker.observability.log_levels import set_level

TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class PrefixFormatter(logging.Formatter):
    """Text, of which each line begins with the id of the broker that wrote it."""

    def __init__(self, broker: int) -> None:
        super().__init__(TEXT)
        self._prefix = f"[broker {broker}] "

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(self._prefix + line for line in super().format(record).split("\n"))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the trace where there is one. `broker`: its id,
    where several write to one place."""

    def __init__(self, broker: int | None = None) -> None:
        super().__init__()
        self._origin = {} if broker is None else {"broker": broker}

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._origin,
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def configure_logging(levels: Mapping[str, str], log_format: str, broker: int | None = None) -> None:
    """Sends all log lines to standard error; standard output holds the ready line alone. `levels`: by logger, the one
    of `root` included, of `LOG_LEVELS`. `broker`: whose lines these are, where several processes write to one place."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonFormatter(broker))
    else:
        handler.setFormatter(logging.Formatter(TEXT) if broker is None else PrefixFormatter(broker))
    logging.basicConfig(handlers=[handler], force=True)
    for name, level in levels.items():
        set_level(name, "WARN" if level == "warning" else level.upper())
