"""What the client runs came to, in Markdown: what every contender did, and how Odradek stands beside the others."""

from collections.abc import Sequence

from benchmarks.clients.speed import Runs
from benchmarks.figures.figures import Figure, Summary
from benchmarks.figures.table import figure_table, markdown
from benchmarks.harness.servers import Server


def server_tables(
    runs: Runs, figures: Sequence[Figure], server: Server, ours: str, *, is_preliminary: bool = False
) -> list[str]:
    """Both tables of one server, each under a line that says what it is; none for what was not measured."""
    parts: list[str] = []
    if any(setting.server is server for setting, _contender in runs):
        parts += [f"Every client, with {server}:", contender_table(runs, server)]
    if figures:
        table = figure_table(figures, ours, "the other", is_preliminary=is_preliminary)
        parts += [f"{ours} beside the others, with {server}:", table]
    return parts


def contender_table(runs: Runs, server: Server) -> str:
    """A row for each contender in each setting: medians, with the lowest and the highest run."""
    head = ["client", "records a run", "records/s", "CPU a record, µs"]
    rows = [
        [
            f"{contender}, {setting}",
            f"{done[0].records:,}",
            _spread([run.records_per_s for run in done], 0),
            _spread([run.cpu_us_per_record for run in done], 2),
        ]
        for (setting, contender), done in runs.items()
        if setting.server is server
    ]
    return markdown(head, rows)


def _spread(values: Sequence[float], digits: int) -> str:
    summary = Summary(tuple(values))
    lowest, highest = summary.spread
    return f"{summary.median:,.{digits}f} [{lowest:,.{digits}f}–{highest:,.{digits}f}]"
