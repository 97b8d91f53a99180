"""The program of `cluster(subprocess=True)`: all brokers of a test's cluster, each in a thread of this process."""

import os
import sys
import threading
from typing import Final

from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
from odradek.testing.hosting.hosted_cluster import HostedCluster
from odradek.testing.remote.lifeline import Lifeline
from odradek.testing.remote.log_lines import keep_log_lines
from odradek.testing.remote.serving import Serving

LAST_S: Final = 10.0
"""How long brokers that keep their logs may take to end, when nobody is there any more who waits for it."""


def main() -> None:
    """`sys.argv`: the numbers of the pipes of the lifeline."""
    lifeline = Lifeline()
    options = lifeline.options()
    raise_descriptor_limit()
    log_lines = keep_log_lines()
    try:
        cluster = HostedCluster(options.settings(), options.directory, options.session_ms)
        cluster.start()
    except Exception as error:  # noqa: BLE001 - raised in the test
        lifeline.tell_failed(error)
        sys.exit(1)
    lifeline.tell_ready({node_id: broker.address for node_id, broker in cluster.brokers.items()})
    serving = Serving(lifeline, cluster, lambda: cluster.running_servers, log_lines)
    serving.serve()
    if not serving.is_stopped and options.directory is not None:
        _leave_files_whole(cluster)
    # What else runs here has nothing to lose, and threads that wait for something are not waited for.
    sys.stderr.flush()
    os._exit(0)


def _leave_files_whole(cluster: HostedCluster) -> None:
    late = threading.Timer(LAST_S, os._exit, (1,))
    late.daemon = True
    late.start()
    cluster.stop()
