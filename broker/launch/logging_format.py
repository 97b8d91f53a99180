"""How log lines look: text for people, JSON for machines (`--log-format`)."""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from odradek.broker.observability.log_levels import set_level

TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the trace where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def configure_logging(levels: Mapping[str, str], log_format: str) -> None:
    """Sends all log lines to standard error; standard output holds the ready line alone. `levels`: by logger, the one
    of `root` included, of `LOG_LEVELS`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler], force=True)
    for name, level in levels.items():
        set_level(name, "WARN" if level == "warning" else level.upper())
