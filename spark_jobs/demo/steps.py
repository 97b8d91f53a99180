"""The demo's steps on the terminal: a progress bar and a time for each, and the failure that ends it."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Completed = Callable[[int], None]


class DemoFailed(Exception):
    """Something differed or did not work; the text names what."""


class Steps:
    """Progress bars, one a step; a context manager. `times`: description and seconds of each finished step."""

    def __init__(self, console: Console) -> None:
        self.times: list[tuple[str, float]] = []
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, description: str, total: int = 1) -> Generator[Completed]:
        """A step of `total` units; yields a function that takes the number of units done so far."""
        task = self._progress.add_task(description, total=total)
        started = time.monotonic()
        yield lambda completed: self._progress.update(task, completed=min(completed, total))
        # Only a step that did not raise is complete.
        self._progress.update(task, completed=total)
        self._progress.stop_task(task)
        self.times.append((description, time.monotonic() - started))
