"""Where the brokers of a test's cluster run, as its options say. What a mode needs is imported when it is chosen."""

from odradek.testing import importing
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.running_cluster import RunningCluster, RunningContents


def started(options: ClusterOptions) -> tuple[RunningCluster, RunningContents]:
    """Returns when all brokers accept connections. Raises what brokers raise that cannot start, OSError; nothing is
    left of them then."""
    if options.is_elsewhere:
        with importing():
            from odradek.testing.remote.remote_cluster import HOSTED, SUPERVISED, RemoteCluster, RemoteContents

        remote = RemoteCluster(SUPERVISED if options.has_processes else HOSTED, options)
        return remote, RemoteContents(remote.remote_calls)
    with importing():
        from odradek.testing.contents_thread import ContentsThread
        from odradek.testing.hosting.hosted_cluster import HostedCluster

    hosted = HostedCluster(options.settings(), options.directory, options.session_ms)
    hosted.start()
    return hosted, ContentsThread(lambda: hosted.running_servers)
