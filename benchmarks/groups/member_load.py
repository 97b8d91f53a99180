"""Many members at once: 500 in one group by either protocol, 5,000 groups, and a storm of joins after a broker's death.

How long each takes until all groups are stable, and the longest turn of the broker's event loop meanwhile, in
processor time (watched_broker.py). The broker of the storm is killed and started again on its directory, so that it has
all groups to load while their members join again.
"""

from collections.abc import Callable
from pathlib import Path

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.groups.group_servers import AT_ONCE, commit_when_led
from benchmarks.groups.rebalance_load import RebalanceLoad, run_rebalance
from benchmarks.groups.storm_load import StormLoad, running_storms
from benchmarks.groups.watched_broker import WatchedBroker
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.load.wire import Wire, create_topic
from processes.odradek_broker import settings_words

PARTITIONS = 1000
STORM_PARTITIONS = 10
STALL_BAR = Bar("≤", 50.0)
SETTINGS = {"group.initial.rebalance.delay.ms": AT_ONCE["group.initial.rebalance.delay.ms"]}
"""The assignment interval of KIP-848 is as it is by default: it is what keeps 500 joins from as many assignments."""

Say = Callable[[str], None]


def measure_member_load(bench: Bench) -> Outcome:
    """Raises LoadFailed, KafkaError, OSError."""
    bench.close()
    return member_load(bench.directory / "member-load", bench.plan.group_members, bench.plan.storm_groups, bench.say)


def member_load(directory: Path, members: int, groups: int, say: Say) -> Outcome:
    """Raises LoadFailed, KafkaError, OSError."""
    outcome = Outcome()
    with WatchedBroker(directory, *settings_words(SETTINGS)) as broker:

        def told(what: str, seconds: float) -> None:
            turn = broker.longest_turn()
            say(f"{what}: {seconds:.2f} s, longest turn {turn.ms:.1f} ms of processor ({turn.what})")
            outcome.add(
                Statement(f"{what}, until stable", "s", Summary((seconds,)), None, None, 2),
                Statement(f"{what}, longest turn of the loop", "ms", Summary((turn.ms,)), None, STALL_BAR, 1),
            )

        with Wire(broker.host, broker.port) as wire:
            create_topic(wire, "one-group", PARTITIONS)
            create_topic(wire, "many-groups", STORM_PARTITIONS)
            commit_when_led(wire, "first", "one-group", {0: 0})
        broker.longest_turn()
        for protocol, title in (("classic", "classic"), ("consumer", "KIP-848")):
            load = RebalanceLoad(protocol, f"group-{protocol}", "one-group", members, PARTITIONS)
            told(f"{members:,} members in one group, {title}", run_rebalance(broker.bootstrap, load))
        storm = StormLoad("storm", "many-groups", groups, 1, STORM_PARTITIONS)
        with running_storms(broker.bootstrap, storm) as storms:
            told(f"{groups:,} groups join", storms.seconds())
            broker.kill()
            broker.start()
            broker.longest_turn()  # of the start, before anybody was answered
            told(f"{groups:,} groups join again after the broker's death", storms.again())
    return outcome
