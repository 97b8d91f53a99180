"""What an adoption says, line by line."""

from odradek.broker.offline.adopt.adoption import Adoption, adopt
from odradek.broker.offline.adopt.report import report
from tests.broker.offline.adopt.kafka_files import DATA, KafkaDirectory, batch, config, topic_records


def adoption(*, is_clean: bool, is_dry_run: bool) -> Adoption:
    directory = KafkaDirectory(is_clean=is_clean)
    for name in ("orders-0", "orders-1", "payments-0"):
        directory.partition(name, batch(0))
    directory.partition("bad-1", batch(0))
    directory.partition("__share_group_state-0", batch(0))
    directory.disk.make_dir(f"{DATA}/notes")
    directory.metadata(
        *topic_records("orders", 2), *topic_records("payments"), *topic_records("bad", 2),
        config("orders", "retention.ms", "-1"), config("orders", "cleanup.policy", "compact"),
        config("payments", "unheard.of", "1"),
    )  # fmt: skip
    return adopt(directory.disk, DATA, is_dry_run=is_dry_run)


def test_everything_is_said_in_its_section() -> None:
    size = len(batch(0))
    lines = list(report(adoption(is_clean=True, is_dry_run=False), is_dry_run=False))
    remark = lines.pop(-3)
    assert remark.startswith("  the option unheard.of of topic payments is not taken: ")
    assert lines == [
        "data: node 1 of cluster b2RyYWRlay10ZXN0cy0wMQ, stopped cleanly",
        "taken:",
        f"  orders: 2 partitions, 2 segments, {2 * size} bytes; cleanup.policy=compact; retention.ms=-1",
        f"  payments: 1 partition, 1 segment, {size} bytes",
        "kept where they are, and not served yet:",
        "  __cluster_metadata-0",
        "  __share_group_state-0",
        "not taken:",
        "  bad: of its 2 partitions, 0 is not here; another broker or another directory of log.dirs may have them",
        "  notes: no partition; it is left alone",
        "to know:",
        "Adopted 2 topics; no file of Kafka's was changed. The first start does that: do not go back to Kafka then.",
        "Start with: odradek serve --data-dir data --node-id 1",
    ]


def test_a_dry_run_says_that_nothing_was_changed() -> None:
    lines = list(report(adoption(is_clean=False, is_dry_run=True), is_dry_run=True))
    assert lines[0].endswith("not stopped cleanly, so the start recovers its logs")
    assert lines[-1] == "Nothing was changed. Without --dry-run, 2 topics would be adopted."
    assert "Start with" not in "".join(lines)


def test_sections_without_lines_are_left_out() -> None:
    done = adopt(KafkaDirectory().disk, DATA)
    first, *rest = report(done, is_dry_run=False)
    assert first.startswith("data: node 1")
    assert rest[0].startswith("Adopted 0 topics;")
    assert len(rest) == 2
