"""`--log-level`, for all loggers or for one: `info`, `kafka.request.logger=debug`; it may be given several times."""

import click

LOG_LEVELS = ("trace", "debug", "info", "warning", "error")
ALL_LOGGERS = "root"


class LogLevel(click.ParamType[tuple[str, str]]):
    """A logger and its level; `root` is the logger of all that have no level of their own."""

    name = "[LOGGER=]LEVEL"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        logger, equals, level = value.rpartition("=")
        if level.lower() not in LOG_LEVELS or (equals and not logger):
            self.fail(f"{value!r} is not LEVEL or LOGGER=LEVEL; levels are {', '.join(LOG_LEVELS)}", param, ctx)
        return logger or ALL_LOGGERS, level.lower()


LOG_LEVEL = LogLevel()
