"""The options say what is measured and how large it is; nothing is measured here."""

from pathlib import Path

import pytest

from benchmarks.command import main, parse, plan_of, stamp_of
from benchmarks.harness.plan import Plan
from benchmarks.host.machine import Machine

MACHINE = Machine("2026-11-21", "abc1234", "two cores", "CPython", busy_cores=0.0)


def test_the_issues_conditions_are_the_defaults() -> None:
    plan = plan_of(parse([]))
    assert plan == Plan()
    assert (plan.runs, plan.run_bytes, plan.dirty_bytes) == (5, 1 << 30, 4 << 30)
    assert (plan.warm_s, plan.rewarm_s, plan.discarded_s, plan.measured_s) == (40, 5, 10, 60)


def test_options_change_the_plan_and_the_small_one_too() -> None:
    options = ["--runs=3", "--run-mib=16", "--warm-s=1.5", "--measured-s=2"]
    plan = plan_of(parse(options))
    assert (plan.runs, plan.run_bytes, plan.warm_s, plan.measured_s) == (3, 16 << 20, 1.5, 2)
    assert plan.dirty_bytes == Plan().dirty_bytes
    assert plan_of(parse(["--rewarm-s=0"])).rewarm_s == 0
    small = plan_of(parse(["--small", "--runs=3"]))
    assert (small.runs, small.run_bytes) == (3, Plan.small().run_bytes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nonsense"], "there is no part nonsense"), (["--only", "nonsense"], "there is no measurement nonsense")],
)
def test_what_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit):
        parse(arguments)
    assert said in capsys.readouterr().err


def test_a_stamp_tells_apart_what_was_measured_otherwise() -> None:
    def stamp(*arguments: str) -> object:
        options = parse(arguments)
        return stamp_of(MACHINE, plan_of(options), options)

    assert stamp() == stamp("--only", "fetch", "--again")
    assert stamp() != stamp("--runs=6")
    assert stamp() != stamp("--set", "record.validation=full")
    assert stamp() != stamp("--clients=aiokafka")


def test_the_list_names_every_measurement_with_its_part(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--list", f"--directory={tmp_path}"]) == 0
    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["start", "full-partitions"] in lines
    assert ["log", "produce-16k-dirty"] in lines
    assert lines[-1] == ["clients", "clients"]
