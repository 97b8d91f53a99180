"""How long an awaited send takes: from the moment it was due, at fixed rates, with nothing to wait for but the broker.

At one a second the contenders send in turn, a fraction of a second apart, on all brokers in the same seconds: they wait
most of the time, and so meet the same machine. At higher rates each has the machine to itself, one after the other.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil

from benchmarks.clients.process import contending
from benchmarks.clients.runs import Disturbances, Topics, Watch
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import OURS, Job, Loop
from benchmarks.figures.figures import Bar, Figure, Summary
from benchmarks.harness.servers import Server

LATENCY_CLIENTS = (OURS, "aiokafka")
"""Ours, and the one that it is measured by."""
VALUE_BYTES = 100
WARM_SENDS = 200
LEAD_S = 0.2
"""From the word to the first send."""
MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many sends a second, for so long in each run."""

    per_s: int
    seconds: float

    @property
    def is_shared(self) -> bool:
        """Whether contenders send in turn rather than one after the other: only if they hardly ever meet."""
        return self.per_s == 1


RATES = (Rate(1, 6.0), Rate(100, 2.0), Rate(1000, 1.5))


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that `share` of all values do not exceed (nearest rank): of few values, the largest one."""
    assert 0 < share <= 1
    return sorted(values)[ceil(share * len(values)) - 1]


Seconds = dict[tuple[Server, str, Rate], list[list[float]]]
"""By server, client and rate: of each run, what its sends took."""


@dataclass(slots=True)
class Waiting:
    """Latency runs."""

    topics: Topics
    disturbances: Disturbances
    say: Callable[[str], None]
    loop: Loop
    rates: Sequence[Rate] = RATES
    identities: dict[str, str] = field(default_factory=dict[str, str])
    done: Seconds = field(default_factory=dict[tuple[Server, str, Rate], list[list[float]]])

    def measure(self, servers: Sequence[Server], clients: Sequence[str], runs: int) -> Seconds:
        """Raises what `run` raises."""
        pairs = [(server, client) for server in servers for client in clients]
        for number in range(1, runs + 1):
            for rate in self.rates:
                for group in [pairs] if rate.is_shared else [[pair] for pair in pairs]:
                    self._note(f"latency {number}/{runs}", rate, group, *self.run(rate, group))
        return self.done

    def _note(
        self, name: str, rate: Rate, group: list[tuple[Server, str]], seconds: list[list[float]], company: str
    ) -> None:
        for (server, client), took in zip(group, seconds, strict=True):
            self.done.setdefault((server, client, rate), []).append(took)
            half, most = (percentile(took, share) * MILLISECONDS for share in (0.5, 0.99))
            self.say(f"{name} {server}, {rate.per_s}/s, {client}: p50 {half:.2f} ms, p99 {most:.2f} ms, {company}")

    def run(self, rate: Rate, group: Sequence[tuple[Server, str]]) -> tuple[list[list[float]], str]:
        """What the sends of each took, and what else the machine did. Raises ContenderFailed, LogDiffers."""
        count = round(rate.per_s * rate.seconds)
        load = ClientLoad("", count, WARM_SENDS, VALUE_BYTES, VALUE_BYTES)
        with ExitStack() as topics:
            loads = [topics.enter_context(self.topics.checked(server, load, in_order=False)) for server, _ in group]
            watch = Watch(list(dict.fromkeys(server for server, _client in group)))
            jobs = [self._job(rate, group, index, loads[index]) for index in range(len(group))]
            with ExitStack() as processes:
                conversations = [processes.enter_context(contending(job)) for job in jobs]
                self.identities |= {job.client: talk.identity for job, talk in zip(jobs, conversations, strict=True)}
                begin = time.monotonic() + LEAD_S
                for conversation in conversations:
                    conversation.say(repr(begin))
                seconds: list[list[float]] = [conversation.hear() for conversation in conversations]
            company = self.disturbances.add("latency", watch.other_cores())
        return seconds, company

    def _job(self, rate: Rate, group: Sequence[tuple[Server, str]], index: int, load: ClientLoad) -> Job:
        server, client = group[index]
        phase_s = index / len(group) / rate.per_s
        host, port = server.process.host, server.process.port
        return Job("latency", client, "", host, port, load, self.loop, float(rate.per_s), phase_s)


def latency_figures(done: Seconds, server: Server, rates: Sequence[Rate] = RATES) -> list[Figure]:
    """p50 and p99 at each rate, as far as both clients were measured there."""
    figures: list[Figure] = []
    ours, theirs = LATENCY_CLIENTS
    for rate in rates:
        mine, other = done.get((server, ours, rate)), done.get((server, theirs, rate))
        if mine and other:
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                name = f"latency {name} beside {theirs}, {rate.per_s}/s"
                figures.append(Figure(name, "ms", _summary(mine, share), _summary(other, share), Bar("≤", 1.0), 2))
    return figures


def _summary(runs: Sequence[Sequence[float]], share: float) -> Summary:
    return Summary(tuple(percentile(run, share) * MILLISECONDS for run in runs))
