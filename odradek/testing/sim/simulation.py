"""One history from one seed: a world of brokers and clients, faults, repair, and what must hold at the end.

    result = simulate(seed=7)
    result.violations, result.digest

Safety phase: producers send, readers follow, members of a consumer group process, faults come. Healing: all is
repaired, and what nobody may lead any more an operator gives to somebody. Liveness: producers stop, and each record
that they handed over must end, one more must get through to each partition, the group must have committed everything,
and then all is read from beginning to end, each in bounded virtual time. What the seed decides is in `Scenario`; the
checker judges (checker.py), and who lays the logs side by side (replica_watch.py).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odradek.testing.sim.checking.check_transactions import excuse_of_transactions
from odradek.testing.sim.checking.checker import check
from odradek.testing.sim.checking.cluster_history import NO_LEADER
from odradek.testing.sim.checking.expectations import Expectations, minimums_of
from odradek.testing.sim.checking.finding import Verdict
from odradek.testing.sim.checking.history import FaultKind, Happened, History, Phase, PhaseName
from odradek.testing.sim.checking.loss_model import is_survivable
from odradek.testing.sim.checking.topics import name_of
from odradek.testing.sim.cluster.brokers import Brokers
from odradek.testing.sim.cluster.evidence import Evidence
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.cluster.group_members import OFFSETS_TOPIC, GroupMembers, offsets_watcher
from odradek.testing.sim.cluster.looking import Looker
from odradek.testing.sim.cluster.operator_plan import OperatorPlan
from odradek.testing.sim.cluster.operators import Operators
from odradek.testing.sim.cluster.reading import FINAL, follower, last_reader
from odradek.testing.sim.cluster.replica_watch import ReplicaWatch
from odradek.testing.sim.cluster.transactors import COPIES, STEPS, TRANSACTIONS_TOPIC, Transactors
from odradek.testing.sim.cluster.workload import RETRY_MS, Workload
from odradek.testing.sim.directed.alone import STORIES_ALONE
from odradek.testing.sim.directed.clusters import STORIES
from odradek.testing.sim.directed.groups import GROUP_STORIES
from odradek.testing.sim.directed.operators import OPERATOR_STORIES
from odradek.testing.sim.directed.stage import Director, Stage
from odradek.testing.sim.directed.transactions import TRANSACTION_STORIES
from odradek.testing.sim.scenario import TOPIC, Scenario
from odradek.testing.sim.world.machine import Machine, Main, Running
from odradek.testing.sim.world.worker import WorkerFaults
from odradek.testing.sim.world.world import World

SETUP_S: Final = 20.0
"""How long the creation of the topic may take at most, without any fault."""
OPERATOR_MS: Final = 8_000.0
"""So long after the repair somebody looks for partitions that nobody leads."""
ENDING_S: Final = 40.0
"""How long, with all repaired, what has begun may take to end: delivery_timeout_ms, close_timeout_ms, and some."""
FINISH_S: Final = 20.0
PROMPT_MS: Final = 1_000.0
"""How long one record may take then."""
PROCESSING_S: Final = 20.0
"""Until the group has processed and committed all that is there."""
COPYING_S: Final = 40.0
"""Until all that transactions have written is copied, those that nobody ends included."""
READING_S: Final = 20.0
SETTLING_S: Final = 5.0
"""Until all followers have what their leaders have, when nobody writes any more."""
STORIES_FROM_S: Final = 1.0
GROUP_STORIES_FROM_S: Final = 3.0
"""When there is a group."""
COMPACTION_S: Final = 3.0
"""Within it a segment is rolled and compacted, where a scenario's topic is."""
WORKERS_DIE: Final = 0.1
WORKERS_LATE: Final = 0.1
"""Of the questions that brokers ask their workers, the shares after which the worker dies, and answers late."""
ALL_STORIES: Final = STORIES | STORIES_ALONE | OPERATOR_STORIES | GROUP_STORIES | TRANSACTION_STORIES

Script = Callable[[Faults], list[Action]]


@dataclass(slots=True)
class Result:
    """What came of a seed."""

    seed: int
    digest: str
    violations: list[str]
    virtual_s: float
    cpu_s: float
    """What it took of one core."""
    steps: int
    lines: int
    history: History
    evidence: Evidence
    scenario: Scenario
    excused: dict[str, int]
    """What was lost and promised to nobody, by kind and excuse."""


def simulate(
    seed: int,
    scenario: Scenario | None = None,
    script: Script | None = None,
    log: Callable[[str], object] | None = None,
) -> Result:
    """Runs one history. Raises nothing but for mistakes of the world itself.

    `script` gives the faults, by the second after the clients have begun, instead of those by chance.
    """
    scenario = Scenario.of(seed) if scenario is None else scenario
    began_s = time.process_time()
    with World(seed, has_store=scenario.has_store, log=log) as world:
        run = _Run(world, scenario, script)
        violations = run.run()
        violations += [f"nobody has handled: {error}" for error in world.errors]
        return Result(
            seed=seed,
            digest=world.trace.digest,
            violations=violations,
            virtual_s=world.now_ms / 1000.0,
            cpu_s=time.process_time() - began_s,
            steps=world.scheduler.steps,
            lines=world.trace.lines,
            history=run.history,
            evidence=run.evidence,
            scenario=scenario,
            excused=run.excused,
        )


class _Run:
    """The phases of one history."""

    def __init__(self, world: World, scenario: Scenario, script: Script | None) -> None:
        self.world = world
        self.script = script
        self.scenario = scenario
        self.history = world.history
        options = {
            "log.roll.ms": str(world.rng("run").choice((1_000, 5_000, 3_600_000))),
            **scenario.broker_options,
        }
        assert len(scenario.directories) in (1, scenario.brokers), "for each broker, or the same for all"
        directories = scenario.directories * (scenario.brokers // len(scenario.directories))
        self.brokers = Brokers(world, directories, options)
        for machine in self.brokers.machines:
            machine.worker_faults = WorkerFaults(death_share=WORKERS_DIE, late_share=WORKERS_LATE)
        self.rules = scenario.rules(self.brokers.ids)
        self.workload = Workload(
            world, self.brokers.bootstrap, TOPIC, scenario.partitions, has_keys=scenario.is_compacted
        )
        self.evidence = Evidence(world, self.brokers)
        self.watch = ReplicaWatch(world, self.brokers, self.evidence, self.workload, scenario.min_insync_replicas)
        self.clients: list[Machine] = []
        self.members = GroupMembers(world, self.workload, scenario.seats)
        self.transactors = Transactors(world, self.workload, max(2, scenario.partitions), scenario.desks)
        self.operators = Operators(world, self.brokers.bootstrap)
        self.faults = Faults(
            world,
            self.brokers,
            self.clients,
            self.workload,
            self.operators,
            self.evidence.states,
            self._may_lose,
            self.transactors,
        )
        self.plan = OperatorPlan(self.faults, self.evidence, TOPIC, scenario.topic_configs)
        self.workload.identity = lambda topic_id: self.evidence.topics.identity(TOPIC, topic_id)
        self.workload.current = lambda: self.evidence.current(TOPIC, 0)[0]
        self.evidence.topic_changed = self._topic_changed
        self.excused: dict[str, int] = {}

    def _topic_changed(self, topic: str, partition_count: int) -> None:
        if topic == TOPIC and partition_count:
            self.workload.partitions = partition_count

    def run(self) -> list[str]:
        """What went wrong."""
        unfinished = self._live()
        self.watch.look_at_all()
        self.evidence.look()
        self.history = History(self.evidence.topics.resolved(self.world.history))
        verdict = check(self.history, self.evidence.records, self.rules)
        self.excused = Verdict(verdict.excused).counts()
        return unfinished + [str(finding) for finding in (*verdict.findings, *self.watch.findings)]

    def _live(self) -> list[str]:
        """The phases; what did not end in time."""
        world, scenario = self.world, self.scenario
        self._phase("safety")
        self.brokers.start_all()
        Looker(world, self.evidence, self._look).start()
        creator = world.machine("creator")
        creator.start(self.workload.creator(scenario.replication_factor, scenario.topic_configs))
        if not self._wait_for([creator], SETUP_S):
            return [f"the topic could not be created within {SETUP_S:g} s"]
        if scenario.has_transactions:
            creator.start(self.transactors.creator(scenario.replication_factor, scenario.topic_configs))
            if not self._wait_for([creator], SETUP_S):
                return [f"the topics of transactions could not be created within {SETUP_S:g} s"]
        self._start_clients()
        begin_s = world.now_ms / 1000.0
        if self.script is not None:
            self.faults.carry_out((begin_s + at_s, action) for at_s, action in self.script(self.faults))
        else:
            end_s = begin_s + scenario.safety_s
            self.faults.carry_out(self.faults.by_chance(world.rng("faults"), begin_s + 0.5, end_s, scenario.faults))
            world.at(begin_s + STORIES_FROM_S, self._tell, 0)
            moves = self.members.by_chance(
                world.rng("members"), begin_s + 0.5, end_s, scenario.member_moves if scenario.seats else 0
            )
            self.faults.carry_out(moves)
            cuts = self.members.cut_off(
                world.rng("member cuts"), begin_s + 0.5, end_s, scenario.member_cuts, self.brokers.machines
            )
            self.faults.carry_out(cuts)
            if scenario.has_transactions:
                self._disturb_transactors(begin_s + 0.5, end_s)
            operations = self.plan.by_chance(world.rng("operators"), begin_s + 0.5, end_s, scenario.operations)
            self.faults.carry_out(operations)
            if scenario.operator_stories:
                world.at(begin_s + STORIES_FROM_S, self._tell, 0, "operator story")
            if scenario.group_stories:
                world.at(begin_s + GROUP_STORIES_FROM_S, self._tell, 0, "group story")
        world.run(begin_s + scenario.safety_s)
        self._phase("healing")
        self.faults.heal()
        self.members.come_all()
        self.transactors.come_all()
        self._phase("liveness")
        operator = world.machine("operator")
        operator.start(self._operator())
        return self._end(operator)

    def _look(self) -> None:
        self.evidence.look()
        self.watch.look()

    def _start_clients(self) -> None:
        for number, acks in enumerate(self.scenario.producers, 1):
            machine = self.world.machine(f"p{number}")
            machine.start(self.workload.producer(self.world.rng(machine.name), acks, self.scenario.interval_ms))
            self.clients.append(machine)
        for number in range(1, self.scenario.readers + 1):
            machine = self.world.machine(f"r{number}")
            machine.start(follower(self.workload))
            self.clients.append(machine)
        if self.scenario.seats:
            self.members.start()
            watcher = self.world.machine("g1")
            watcher.start(offsets_watcher(self.workload, until_all=False))
            self.clients += [*self.members.machines, watcher]
        if self.scenario.has_transactions:
            self.transactors.start()
            reader = self.world.machine("x1")
            reader.start(follower(self.transactors.steps, "read_committed"))
            self.clients += [*self.transactors.machines, reader]

    def _disturb_transactors(self, from_s: float, to_s: float) -> None:
        world, scenario, transactors = self.world, self.scenario, self.transactors
        self.faults.carry_out(transactors.by_chance(world.rng("desks"), from_s, to_s, scenario.desk_moves))
        if scenario.transaction_stories:
            world.at(from_s + GROUP_STORIES_FROM_S, self._tell, 0, "transaction story")
        machines, count = self.brokers.machines, scenario.desk_cuts
        self.faults.carry_out(transactors.cut_off(world.rng("desk cuts"), from_s, to_s, count, machines))

    # -- what goes wrong -------------------------------------------------------------------------------------------

    def _tell(self, number: int, kind: str = "story") -> None:
        """The stories, one after the other, on partitions by chance; those of operators and groups beside them."""
        stories = {
            "story": self.scenario.stories,
            "operator story": self.scenario.operator_stories,
            "group story": self.scenario.group_stories,
            "transaction story": self.scenario.transaction_stories,
        }[kind]
        if number == len(stories) or self.faults.is_over:
            return
        rng = self.world.rng(f"{kind} {number}")
        place = TOPIC, rng.randrange(self.scenario.partitions)
        if (OFFSETS_TOPIC, 0) in self.evidence.states and (kind == "group story" or rng.random() < 0.5):
            place = OFFSETS_TOPIC, 0
        if (TRANSACTIONS_TOPIC, 0) in self.evidence.states and kind == "story" and rng.random() < 0.5:
            place = rng.choice(((TRANSACTIONS_TOPIC, 0), (STEPS, place[1]), (COPIES, place[1])))
        if kind == "transaction story":
            place = TRANSACTIONS_TOPIC, 0
        stage = Stage(self.faults, self.plan, self.evidence, rng, *place)
        if self.scenario.lag_ms is not None:
            stage.lag_s = self.scenario.lag_ms / 1000.0
        if self.scenario.is_compacted:
            stage.compaction_s = COMPACTION_S
        name = stories[number]
        self.world.trace.note("#", "story", name, *place)
        Director(self.faults).tell(ALL_STORIES[name], stage, lambda: self._tell(number + 1, kind))

    def _may_lose(self, machine: Machine, kind: FaultKind) -> bool:
        """Whether the loss model says that this is survived."""
        if not self.scenario.keeps_to_loss_model:
            return True
        now = Happened(self.world.now_ms, kind, machine.name)
        happened = self.world.history.of(Happened)
        return all(
            is_survivable(
                happened,
                now,
                self.evidence.stored(*key),
                self.scenario.min_insync_replicas,
                self.brokers.ids,
                is_synced=self.scenario.is_synced,
                changes=minimums_of(self.evidence.options.get(key[0], ()), self.scenario.min_insync_replicas),
            )
            for key in self.evidence.states
        )

    def _operator(self) -> Main:
        """Gives what nobody may lead to somebody, for whatever it may lack; and makes the topic, should it be gone."""

        async def main(running: Running) -> None:
            await running.environment.sleep(OPERATOR_MS)
            if self.world.store is not None and self.evidence.topics.current(TOPIC) is None:
                count, configs = self.workload.partitions, self.scenario.topic_configs
                await self.operators.ensure_topic(running, TOPIC, count, self.scenario.replication_factor, configs)
            while left := [
                (name_of(topic), index)
                for (topic, index), state in self.evidence.states.items()
                if state.leader == NO_LEADER
            ]:
                await self.operators.elect_uncleanly(running, left)
                await running.environment.sleep(RETRY_MS)

        return main

    # -- the end ---------------------------------------------------------------------------------------------------

    def _end(self, operator: Machine) -> list[str]:
        late = {*self.members.machines, *self.transactors.copiers}
        self.transactors.dismiss(machine for machine in self.transactors.machines if machine not in late)
        if left := self._not_ended([machine for machine in self.clients if machine not in late]):
            return left
        if self.scenario.has_operators and not self._wait_for([operator], ENDING_S):
            return [f"with all repaired, the operator had not ended after {ENDING_S:g} s"]
        finisher = self.world.machine("finisher")
        finisher.start(self.workload.finisher())
        if not self._wait_for([finisher], FINISH_S):
            return [f"with all repaired, records did not get through within {FINISH_S:g} s"]
        took_ms: dict[int, float] = {}
        prompt = self.world.machine("prompt")
        prompt.start(self.workload.prompt(took_ms))
        if not self._wait_for([prompt], FINISH_S) or max(took_ms.values(), default=0.0) > PROMPT_MS:
            return [f"with all repaired, a record took more than {PROMPT_MS:g} ms: {took_ms}"]
        if self.scenario.seats:
            watcher = self.world.machine("committed")
            watcher.start(offsets_watcher(self.workload, until_all=True))
            if not self._wait_for([watcher], PROCESSING_S):
                return [f"with all repaired, the group had not committed everything after {PROCESSING_S:g} s"]
            self.members.is_over = True
            if left := self._not_ended(self.members.machines):
                return left
        if self.scenario.has_transactions and (left := self._end_transactions()):
            return left
        if not self._read(FINAL, last_reader(self.workload)):
            return [f"with all repaired, the logs could not be read within {READING_S:g} s"]
        if self.scenario.has_store:
            self.world.run(self.world.now_ms / 1000.0 + SETTLING_S)
            if left := self.watch.not_in_sync():
                return [f"with all repaired, not all replicas were in sync: {left}"]
        self._phase("end")
        return []

    def _are_copies_promised(self) -> bool:
        """Copies may be gone for good, too, and are not made again then."""
        expectations = Expectations(self.history, self.evidence.records, self.rules)
        return excuse_of_transactions(expectations) is None

    def _end_transactions(self) -> list[str]:
        """Copiers go on until all is copied; open transactions end by themselves meanwhile."""
        transactors = self.transactors
        if transactors.copiers:
            reader = self.world.machine("copied")
            reader.start(transactors.until_copied())
            if not self._wait_for([reader], COPYING_S) and self._are_copies_promised():
                values = sorted(transactors.not_copied())
                return [f"with all repaired, not everything was copied within {COPYING_S:g} s: {values}"]
            reader.kill()
            transactors.is_over = True
            if left := self._not_ended(transactors.copiers):
                return left
        for workload in (transactors.steps, transactors.copies):
            if not self._read(f"{FINAL}-{workload.topic}", last_reader(workload, "read_committed")):
                return [f"with all repaired, {workload.topic} could not be read within {READING_S:g} s"]
        return []

    def _read(self, name: str, reader: Main) -> bool:
        machine = self.world.machine(name)
        machine.start(reader)
        return self._wait_for([machine], READING_S)

    def _not_ended(self, machines: list[Machine]) -> list[str]:
        """Stops their processes, and says which do not end."""
        for machine in machines:
            machine.stop()
        if self._wait_for(machines, ENDING_S):
            return []
        alive = [machine.name for machine in machines if machine.running is not None]
        return [f"with all repaired, {alive} had not ended after {ENDING_S:g} s"]

    def _wait_for(self, machines: list[Machine], limit_s: float) -> bool:
        """Whether their processes end within so many seconds."""
        left = [machine for machine in machines if machine.running is not None]

        def exited(running: object, why: str) -> None:
            if why:
                self.world.errors.append(why)
            if all(machine.running is None for machine in left):
                self.world.stop()

        for machine in left:
            machine.on_exit = exited
        if left:
            self.world.run(self.world.now_ms / 1000.0 + limit_s)
        return all(machine.running is None for machine in left)

    def _phase(self, name: PhaseName) -> None:
        self.world.trace.note("#", "phase", name)
        self.world.history.add(Phase(self.world.now_ms, name))
