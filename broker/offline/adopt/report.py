"""What an adoption says on standard output: what is taken, what is not, and why. Pure."""

from collections.abc import Iterable, Iterator

from odradek.broker.offline.adopt.adoption import Adoption
from odradek.broker.offline.adopt.plan import TakenTopic


def report(adoption: Adoption, *, is_dry_run: bool) -> Iterator[str]:
    """The lines."""
    plan, known = adoption.plan, adoption.known
    end = "stopped cleanly" if adoption.is_clean else "not stopped cleanly, so the start recovers its logs"
    yield f"{adoption.data_dir}: node {known.node_id} of cluster {known.cluster_id}, {end}"
    yield from section("taken", map(_of_topic, plan.taken))
    yield from section("kept where they are, and not served yet", adoption.kafkas_own)
    yield from section("not taken", (f"{name}: {reason}" for name, reason in sorted(plan.left.items())))
    yield from section("to know", plan.remarks)
    count = f"{len(plan.taken)} topic{'' if len(plan.taken) == 1 else 's'}"
    if is_dry_run:
        yield f"Nothing was changed. Without --dry-run, {count} would be adopted."
        return
    yield f"Adopted {count}; no file of Kafka's was changed. The first start does that: do not go back to Kafka then."
    yield f"Start with: odradek serve --data-dir {adoption.data_dir} --node-id {known.node_id}"


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield f"{title}:"
        yield f"  {line}"


def _of_topic(topic: TakenTopic) -> str:
    counts = [
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in (
            (len(topic.partitions), "partition"),
            (topic.segment_count, "segment"),
            (topic.size_bytes, "byte"),
        )
    ]
    options = "".join(f"; {name}={value}" for name, value in topic.configs.items())
    return f"{topic.name}: {', '.join(counts)}{options}"
