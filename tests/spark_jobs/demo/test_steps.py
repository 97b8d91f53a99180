"""The demo's steps, drawn on a console in memory."""

import io

import pytest
from rich.console import Console

from odradek.spark_jobs.demo.steps import DemoFailed, Steps


def test_finished_steps_have_times_and_a_failed_one_does_not() -> None:
    """A step that raises stays as far as it got, and the failure goes on."""
    text = io.StringIO()
    with pytest.raises(DemoFailed, match="lost"), Steps(Console(file=text, width=80)) as steps:
        with steps.step("one", 4) as completed:
            completed(2)
        with steps.step("two", 8) as completed:
            completed(3)
            raise DemoFailed("one record was lost")
    assert [description for description, _ in steps.times] == ["one"]
    assert all(seconds >= 0 for _, seconds in steps.times)
    assert "4/4" in text.getvalue()
    assert "3/8" in text.getvalue()


def test_a_step_is_never_more_than_complete() -> None:
    """More units than announced, as a resumed job may report, fill the bar and no more."""
    text = io.StringIO()
    with (
        pytest.raises(DemoFailed),
        Steps(Console(file=text, width=80)) as steps,
        steps.step("one", 4) as completed,
    ):
        completed(9)
        raise DemoFailed("a finished step is complete in any case")
    assert "4/4" in text.getvalue()
