"""What the store of a supervisor takes for commits: the numbers behind docs/scale.md. A table, nothing is judged."""

from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.scale.constituents import store_table
from benchmarks.scale.store_costs import socket_store_costs


def measure_cores_store(bench: Bench) -> Outcome:
    """Raises ProcessFailed, OSError."""
    bench.close()
    costs = socket_store_costs(bench.directory / "cores-store", bench.plan.scale_commits)
    bench.say(f"cores-store: {', '.join(f'{cost.name} {cost.per_s:,.0f} commits/s' for cost in costs)}")
    return Outcome(tables=[store_table(costs, "the supervisor")])
