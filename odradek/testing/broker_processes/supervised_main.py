"""The program of `cluster(processes=True)` and `cluster(etcd=…)`: starts a process for each broker, and ends them all.

The brokers' processes are begun first, and read their programs while this one reads its own.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from odradek.broker.launch.supervisor.child_process import BrokersAhead
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.remote.lifeline import Lifeline
from odradek.testing.remote.log_lines import LOGGER

if TYPE_CHECKING:
    from odradek.broker.launch.supervisor.plan import Options
    from odradek.runtime.environment import Environment
    from odradek.testing.broker_processes.supervised_cluster import SupervisedCluster

SESSION_MS_MIN: Final = 1500.0
"""Of brokers whose leases end by a clock: on a busy machine, one that only waits for its turn is not to be missed."""
HELPER_THREADS: Final = 4
STANDARD_ERROR: Final = 2
LEVELS: Final = {"root": "warning", LOGGER: "debug"}
LOG_FORMAT: Final = "json"


def main() -> None:
    """`sys.argv`: the numbers of the pipes of the lifeline."""
    lifeline = Lifeline()
    options = lifeline.options()
    ahead = BrokersAhead(range(1, options.brokers + 1))
    directory = options.directory or tempfile.mkdtemp(prefix="odradek-test-")
    try:
        code = asyncio.run(_run(lifeline, options, ahead, directory))
    finally:
        ahead.close()
        if options.directory is None:
            shutil.rmtree(directory, ignore_errors=True)
    sys.stderr.flush()
    os._exit(code)  # threads that wait for something are not waited for


async def _run(lifeline: Lifeline, options: ClusterOptions, ahead: BrokersAhead, directory: str) -> int:
    """The exit code."""
    from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
    from odradek.broker.launch.logging_format import configure_logging
    from odradek.runtime.environment import Environment
    from odradek.testing.remote.serving import Serving

    configure_logging(LEVELS, LOG_FORMAT)
    raise_descriptor_limit()
    environment = Environment()
    environment.allow_helper_threads(HELPER_THREADS)
    is_ready = False
    try:
        async with _running(options, ahead, directory, environment) as cluster:
            lifeline.tell_ready({node_id: broker.address for node_id, broker in cluster.brokers.items()})
            is_ready = True
            serving = Serving(lifeline, cluster, lambda: cluster.running_servers, None)
            await environment.run_blocking(serving.serve)
    except Exception as error:
        if is_ready:
            raise
        lifeline.tell_failed(error)
        return 1
    return 0


@asynccontextmanager
async def _running(
    options: ClusterOptions, ahead: BrokersAhead, directory: str, environment: "Environment"
) -> "AsyncGenerator[SupervisedCluster]":
    """Returns when all accept connections; and when all have ended. Raises StartRefused, ConfigError, OSError."""
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.launch.supervisor.plan import plan, topic_defaults
    from odradek.broker.launch.supervisor.supervisor import Supervisor
    from odradek.testing.broker_processes.brokers_store import opened_store
    from odradek.testing.broker_processes.log_file import LogFile
    from odradek.testing.broker_processes.supervised_cluster import SupervisedCluster

    wanted = _options_of(options, directory)
    async with opened_store(options, wanted.static, directory, environment) as (store, ids):
        defaults = topic_defaults(None, len(ids), is_new=False)
        stop = asyncio.Event()
        supervisor = Supervisor(plan(wanted, ids), wanted, defaults, store, environment, FileDisk(), stop, ahead)
        environment.loop.add_signal_handler(signal.SIGCHLD, supervisor.look_again)
        try:
            await supervisor.start()
        except BaseException:
            await supervisor.stop()
            raise
        cluster = SupervisedCluster(supervisor, LogFile(STANDARD_ERROR))
        try:
            yield cluster
        finally:
            await cluster.stop_all()


def _options_of(options: ClusterOptions, directory: str) -> "Options":
    from odradek.broker.config.listeners import Listener
    from odradek.broker.launch.supervisor.plan import Options

    session = {"broker.session.timeout.ms": f"{max(options.session_ms, SESSION_MS_MIN):.0f}"}
    return Options(
        [Listener("PLAINTEXT", options.host, options.port)],
        [],
        directory,
        {**options.static, **session, **options.config},
        log_levels=LEVELS,
        log_format=LOG_FORMAT,
    )
