"""docs/protocol-support.md, made from the rows of served.py: `python -m broker.protocol_page` prints it.

What an API does and what its versions brought stands in the docstring of its handler's module; it is taken from there.
"""

import inspect
import sys

from broker.context import Api
from broker.served import SERVED

DEVIATIONS = (
    "Auto-creation is synchronous: Metadata answers a topic that it has just created with its partitions, where Kafka "
    "answers UNKNOWN_TOPIC_OR_PARTITION once.",
    "CreateTopics and other changes with a timeout of 0 or less are begun and answered REQUEST_TIMED_OUT; Kafka drops "
    "them.",
    "A topic, partition or resource named twice in one request is answered twice; Kafka answers once.",
    "ListOffsets for the largest timestamp (-3) ignores deleted records.",
    "By default (`record.validation=header`) records inside a batch are not looked at; see "
    "[the decision](decisions/005-record-validation.md).",
    "Batches that Kafka accepts and this broker refuses: bytes behind the last record, a producer id without an epoch, "
    "records later than the batch's max timestamp and gaps between uncompressed records (the last two with "
    "`record.validation=full`), and the LogAppendTime bit set by a client, which Kafka clears (INVALID_TIMESTAMP).",
    "Undecodable payloads and unknown codecs answer CORRUPT_MESSAGE and UNSUPPORTED_COMPRESSION_TYPE, where Kafka "
    "answers UNKNOWN_SERVER_ERROR. With `full`, records that unpack to more than 100 MiB answer MESSAGE_TOO_LARGE, and "
    "a record has at most 65,536 headers; Kafka has no such bounds.",
    "Bytes behind a request's body are ignored, as Kafka does: librdkafka sends some.",
)


def _versions(api: Api) -> str:
    lowest, highest = api.served
    served = str(lowest) if lowest == highest else f"{lowest}–{highest}"
    return served if api.advertised == api.served else f"{served} (advertised from {api.advertised[0]})"


def _flexible(api: Api) -> str:
    """The first flexible version, where it is one of those served."""
    since = api.request.flexible_since
    return "–" if since is None or since > api.served[1] else str(since)


def _docstring(api: Api) -> list[str]:
    """The paragraphs of the handler's module, each as one line."""
    text = inspect.getdoc(inspect.getmodule(api.handle)) or ""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def summary(api: Api) -> str:
    """What the API does: the first sentence of the docstring, without name and key."""
    title, _, rest = _docstring(api)[0].partition(": ")
    assert title == f"{api.name} (key {api.key})", f"the docstring of {api.name} opens with {title!r}"
    return rest.removesuffix(".")


def history(api: Api) -> str:
    """What the versions brought: the docstring's last paragraph, without its first word."""
    word, _, rest = _docstring(api)[-1].partition(": ")
    assert word == "Versions", f"the docstring of {api.name} ends with {word!r}"
    return rest


def documentation() -> str:
    """The text of docs/protocol-support.md."""
    apis = sorted(SERVED, key=lambda api: api.key)
    return "\n".join(
        [
            "# Protocol support",
            "",
            "<!-- Made from broker/served.py by `python -m broker.protocol_page > docs/protocol-support.md`. -->",
            "",
            f"{len(apis)} APIs are served. The ranges are coherent with Apache Kafka 3.9, which is what clients read",
            "from them. A request of another API or version closes the connection, with a line in the broker's log;",
            "only an unknown version of ApiVersions is answered, in version 0, with UNSUPPORTED_VERSION (KIP-511).",
            "",
            "| key | API | versions | flexible from | what it does |",
            "|---:|---|---|---:|---|",
            *(
                f"| {api.key} | {api.name} | {_versions(api)} | {_flexible(api)} | {_cell(summary(api))} |"
                for api in apis
            ),
            "",
            "Record batches are of format 2 (magic 2), which every version of Produce and Fetch here carries; older",
            "formats are refused. Codecs: none, gzip, snappy (raw and with Java's framing), lz4 and zstd.",
            "",
            "## What the versions brought",
            "",
            *(f"- **{api.name}**: {history(api)}" for api in apis),
            "",
            "## Where it differs from Apache Kafka 4.3.1",
            "",
            *(f"- {deviation}" for deviation in DEVIATIONS),
            "",
        ]
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(documentation())
