"""docs/configuration.md, made from the rows of options: `python -m odradek.broker.pages.configuration_page`."""

import sys
from typing import Any

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.consumer_group_options import CONSUMER_GROUP_OPTIONS
from odradek.broker.config.option import Option
from odradek.broker.config.topic_options import TOPIC_OPTIONS


def _table(rows: dict[str, Option[Any]], *, of_topics: bool) -> list[str]:
    lines = [
        f"| option | {'broker option' if of_topics else 'at run time'} | default | allowed | applied | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows.values():
        default = row.default_text
        shown = "–" if default is None else f"`{default}`" if default else "empty"
        second = (f"`{row.synonym}`" if row.synonym else "–") if of_topics else row.dynamic.value
        doc = " ".join(filter(None, (row.doc, _narrower(row), f"*{row.deviation}*" if row.deviation else "")))
        allowed = row.allowed.replace("|", "\\|")
        applied = row.effect.value if row.refuse is None else "the default is the only value so far"
        lines.append(f"| `{row.name}` | {second} | {shown} | {allowed} | {applied} | {doc} |")
    return lines


def _narrower(row: Option[Any]) -> str:
    """For what it may be set beside the whole broker, in a sentence."""
    if row.mechanism_alone:
        return "Set as `listener.name.NAME.MECHANISM.…`, and no other way."
    if row.per_mechanism:
        return "Also `listener.name.NAME.…` and `listener.name.NAME.MECHANISM.…`."
    return "Also `listener.name.NAME.…`." if row.per_listener else ""


def documentation() -> str:
    """The text of docs/configuration.md."""
    return "\n".join(
        [
            "# Configuration",
            "",
            "<!-- Made by `python -m odradek.broker.pages.configuration_page > docs/configuration.md`. -->",
            "",
            "Names, defaults and meanings are those of Apache Kafka 4.3.1; what differs stands in italics. Options",
            "are given by `--config FILE` (Kafka's properties syntax) and by `--set name=value`, which wins; those",
            "that may change at run time also by AlterConfigs and IncrementalAlterConfigs, for one broker or for all.",
            "What a topic or a consumer group sets for itself counts before what its broker has.",
            "",
            "An unknown name, or a value out of bounds, is refused: at start with exit code 1 and a line for each",
            "mistake, in a request with INVALID_CONFIG. So is a value whose effect is not built yet where storing it",
            "would promise something. Of Apache Kafka's own options that have no effect here, a start says for each",
            "why, and that the line is to be removed.",
            "",
            "For a broker, AlterConfigs and IncrementalAlterConfigs store an option of a name that the broker does not",
            "know, as Kafka does. It has no effect; the broker logs one warning, with the nearest name that it knows,",
            "and describes the option as sensitive and without its value.",
            "",
            "Some options may be set for one listener, `listener.name.NAME.OPTION`, and some of these for one",
            "mechanism of SASL in it, `listener.name.NAME.MECHANISM.OPTION`, both names in lower case; the rows say",
            "which. What is set so counts there before what the broker has. A listener that the broker does not have",
            "refuses the start.",
            "",
            "A value may be looked up elsewhere, `${provider:path:key}` (`config.providers`), in a file and in",
            "`--set`. What came so is described as a password is: sensitive, and without the value.",
            "",
            "## Topics",
            "",
            *_table(TOPIC_OPTIONS, of_topics=True),
            "",
            "## Consumer groups",
            "",
            "Set with resource GROUP, for groups of KIP-848, whether there is such a group or not. A value lies within",
            "the broker's `group.consumer.min.…` and `group.consumer.max.…`.",
            "",
            *_table(CONSUMER_GROUP_OPTIONS, of_topics=True),
            "",
            "## Brokers",
            "",
            *_table(BROKER_OPTIONS, of_topics=False),
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(documentation())
