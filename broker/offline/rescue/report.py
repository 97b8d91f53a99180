"""What a rebuild says on standard output: what was found where, who will lead, and what is lost. Pure."""

from collections.abc import Iterator, Sequence

from odradek.broker.offline.adopt.report import section
from odradek.broker.offline.rescue.plan import FoundTopic, RebuildPlan, Replica
from odradek.protocol.codec.schema import uuid_text


def report(plan: RebuildPlan, into: str, *, is_dry_run: bool) -> Iterator[str]:
    """The lines."""
    yield f"cluster {plan.cluster_id}"
    yield from section(
        "directories",
        (
            f"{each.path}: node {each.known.node_id}, {len(each.found.partitions)} partition(s), "
            f"{'stopped cleanly' if each.found.is_clean else 'not stopped cleanly'}"
            for each in plan.directories
        ),
    )
    yield from section("found", (line for topic in plan.topics for line in _of_topic(topic)))
    yield from section("not taken", (f"{name}: {reason}" for name, reason in sorted(plan.left.items())))
    own = [f"{each.path}/{name}" for each in plan.directories for name in each.found.kafkas_own]
    yield from section("kept where they are, and not served yet", own)
    yield from section("to know", plan.remarks)
    count = f"{len(plan.topics)} topic{'' if len(plan.topics) == 1 else 's'}"
    if is_dry_run:
        yield f"Nothing was changed. Without --dry-run, the metadata of {count} would be written to {into}."
    else:
        yield f"The metadata of {count} was written to {into}. Start the brokers."


def _of_topic(topic: FoundTopic) -> Iterator[str]:
    options = "".join(f"; {name}={value}" for name, value in sorted(topic.configs.items()))
    yield f"{topic.name} ({uuid_text(topic.topic_id)}): {len(topic.partitions)} partition(s){options}"
    for index, (state, replicas) in enumerate(zip(topic.partitions, topic.replicas, strict=True)):
        told = ", ".join(_of_replicas(replicas, state.isr))
        yield f"  {topic.name}-{index}: {told}; leader epoch {state.leader_epoch}"


def _of_replicas(replicas: Sequence[Replica], isr: Sequence[int]) -> Iterator[str]:
    for number, each in enumerate(replicas):
        place = "leads" if number == 0 else "in sync" if each.node_id in isr else "follows"
        epoch, end = each.rank
        yield f"node {each.node_id} {place} with offset {end}" + (f" of epoch {epoch}" if epoch >= 0 else "")
