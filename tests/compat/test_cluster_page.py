"""docs/cluster.md shows what really happens: its commands run against three brokers on etcd, one of which dies.

How an example runs, and what is compared, stands in `console.py`. The page starts brokers and kills one by lines of the
shell; here that is done to the test's brokers, which have the options that the page gives its own.
"""

import re
import shlex
from pathlib import Path

import pytest

from processes.odradek_broker import OdradekBroker
from tests.compat.brokers_on_etcd import NODE_IDS, brokers_on_etcd
from tests.compat.clusters import eventually
from tests.compat.commands import Commands
from tests.compat.console import Example, examples_of, pattern, run

pytestmark = [pytest.mark.compat, pytest.mark.three_brokers, pytest.mark.telling, pytest.mark.timeout(240)]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text()
KILL, START = re.compile(r"kill -9 \$\(cat broker-(\d)\.pid\)"), re.compile(r"start (\d)")
SERVE = re.compile(r"odradek serve (.*?) &\n", re.DOTALL)


def options() -> dict[str, str]:
    """Those of the page's `odradek serve`, but the rack, which the test gives as the page does."""
    [line] = SERVE.findall(PAGE)
    words = shlex.split(line.replace("\\\n", " "))
    given = [words[index + 1] for index, word in enumerate(words) if word == "--set"]
    assert given.pop(0) == "broker.rack=rack-$1"
    return {name: value for name, _, value in (each.partition("=") for each in given)}


def done_to_brokers(example: Example, brokers: dict[int, OdradekBroker]) -> bool:
    """Whether the line is about a broker's process: then that has happened, and the cluster has heard of it."""
    odradek = Commands(brokers[1])

    def well() -> bool:
        return not odradek.json("cluster", "status")["unwell"]

    if (killed := KILL.fullmatch(example.command)) is not None:
        brokers[int(killed[1])].kill()
        eventually(well, False)
        return True
    if (started := START.fullmatch(example.command)) is not None:
        brokers[int(started[1])].start()
        eventually(well, True)
        return True
    return False


@pytest.mark.only_in_compat
def test_every_command_of_the_page_does_what_stands_there(tmp_path: Path) -> None:
    examples = examples_of(PAGE)
    assert len(examples) >= 12
    with brokers_on_etcd(tmp_path, **options()) as brokers:
        for example in examples:
            if done_to_brokers(example, brokers):
                continue
            printed = run(example.command, ",".join(broker.bootstrap for broker in brokers.values()))
            for node_id in NODE_IDS:
                printed = printed.replace(str(brokers[node_id].port), str(9091 + node_id))
            assert pattern(example.shown).fullmatch(printed), f"$ {example.command}\n{printed}\nnot\n{example.shown}"


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGE)
    assert targets
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []
