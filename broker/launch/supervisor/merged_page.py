"""Several metrics pages in Prometheus' text form as one, each sample with the broker that it is from. Pure.

Prometheus wants all samples of a family together, so the pages are taken apart by family. Names, help and type are
those of the first page that has them. A page that is missing is told by `odradek_up`, and takes no other samples away.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

UP: Final = "odradek_up"
_COMMENT: Final = re.compile(r"# (HELP|TYPE) (\S+)(.*)")
_SAMPLE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(\{)?(.*)")


@dataclass(slots=True)
class _Family:
    comments: dict[str, str] = field(default_factory=dict[str, str])
    samples: list[str] = field(default_factory=list[str])


def merged(pages: Mapping[str, str | None]) -> str:
    """The page of all brokers. `pages`: by broker id; None for one that does not answer."""
    families: dict[str, _Family] = {}
    for broker, page in pages.items():
        for name, kind, line in _lines(page or ""):
            family = families.setdefault(name, _Family())
            if kind:
                family.comments.setdefault(kind, line)
            else:
                family.samples.append(_labelled(line, broker))
    parts = [f"# HELP {UP} Whether the broker answers: 1, or 0.", f"# TYPE {UP} gauge"]
    parts += [f'{UP}{{broker="{broker}"}} {int(page is not None)}' for broker, page in pages.items()]
    for family in families.values():
        parts += family.comments.values()
        parts += family.samples
    return "\n".join(parts) + "\n"


def _lines(page: str) -> Iterator[tuple[str, str, str]]:
    """Family, HELP or TYPE (empty for a sample), and the line. A family's samples stand behind its comments."""
    name = ""
    for line in page.split("\n"):
        if (comment := _COMMENT.fullmatch(line)) is not None:
            name = comment[2]
            yield name, comment[1], line
        elif line and not line.startswith("#"):
            yield name, "", line


def _labelled(line: str, broker: str) -> str:
    sample = _SAMPLE.fullmatch(line)
    if sample is None:
        return line
    name, has_labels, rest = sample.groups()
    return f'{name}{{broker="{broker}",{rest}' if has_labels else f'{name}{{broker="{broker}"}}{rest}'
