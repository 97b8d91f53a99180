"""TestTxnEtl of franz-go's client, kgo: a chain of groups, each of which copies a topic to the next in transactions,
while members come and go; each record is copied exactly once, with every balancer and both group protocols.

Go fetches the module, and checks it by `foreign_apps/franz_go/go.sum`.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.compat.clusters import Ours, broker_count

GO: Final = shutil.which("go")
WITH_GO = pytest.mark.skipif(GO is None, reason="go is not installed")
pytestmark = [pytest.mark.compat, pytest.mark.only_in_foreign, pytest.mark.timeout(1_200), WITH_GO]

KGO: Final = "github.com/twmb/franz-go/pkg/kgo"
MODULE: Final = Path(__file__).parent / "foreign_apps" / "franz_go"
RECORDS: Final = 100_000
LIMIT_S: Final = 1_000
CHAINS: Final = {
    *("range", "range/848", "sticky/848", "sticky/848/static"),
    *("cooperative-sticky", "cooperative-sticky/static"),
}


def test_franz_gos_chain_of_transactions_is_exact(broker: Ours) -> None:
    environment = os.environ | {
        "KGO_SEEDS": broker.bootstrap,
        "KGO_TEST_RF": str(broker_count(broker)),
        "KGO_TEST_RECORDS": str(RECORDS),
        "KGO_TEST_UNSAFE": "1",  # it begins the next transaction before it knows that the last has ended
    }
    done = subprocess.run(
        [GO or "", "test", KGO, "-run", "^TestTxnEtl$", "-count=1", "-v", f"-timeout={LIMIT_S}s"],
        cwd=MODULE, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S + 60,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout[-6_000:], done.stderr[-3_000:])
    assert set(re.findall(r"--- PASS: TestTxnEtl/(\S+)", done.stdout)) == CHAINS
