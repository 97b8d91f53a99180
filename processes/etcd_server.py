"""etcd itself, for tests: one member or several, on free loopback ports, with data in a temporary directory.

    with EtcdServer() as etcd:                       EtcdServer(members=3), EtcdServer("--auth-token-ttl", "1")
        etcd.address("/here")                        "etcd://127.0.0.1:40001/here"
        etcd.ctl("compact", "7")                     its own command line tool
        etcd.members[0].kill()                       and all else that can be done to a member (etcd_process.py)
        etcd.save(file), etcd.set_back(file)         its only member goes back to what it was

It does not sync its files, so only a machine's crash could lose anything. Nothing is left of it when the `with` block
ends.
"""

import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from processes.child_process import start_together
from processes.etcd_process import Etcd, EtcdFailed, program
from processes.free_ports import free_ports

HOST: Final = "127.0.0.1"


class EtcdServer:
    """A cluster of etcd."""

    def __init__(self, *options: str, members: int = 1, certificates: tuple[Path, Path, Path] | None = None) -> None:
        """`options` are etcd's own. `certificates`: authority, certificate and key of the members, who then ask
        clients for one, too (all PEM)."""
        self._certificates = certificates
        self._directory = tempfile.TemporaryDirectory(prefix="etcd-")
        self._prefixes = itertools.count(1)
        ports = free_ports(2 * members)
        cluster = ",".join(f"m{index}=http://{HOST}:{ports[2 * index + 1]}" for index in range(members))
        tls: list[str] = []
        if certificates is not None:
            authority, certificate, key = map(str, certificates)
            tls = ["--trusted-ca-file", authority, "--cert-file", certificate, "--key-file", key, "--client-cert-auth"]
        self.members = [
            Etcd(
                f"{self._directory.name}/m{index}",
                "--unsafe-no-fsync",
                *("--initial-cluster", cluster, "--initial-cluster-token", os.path.basename(self._directory.name)),
                *tls,
                *options,
                name=f"m{index}",
                ports=(ports[2 * index], ports[2 * index + 1]),
                scheme="http" if certificates is None else "https",
            )
            for index in range(members)
        ]

    def __enter__(self) -> Self:
        try:
            start_together(*self.members)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for member in self.members:
            member.close()
        self._directory.cleanup()

    def address(self, prefix: str = "") -> str:
        """For `metadata.store`; by default with a prefix that nobody had before."""
        members = ",".join(f"{HOST}:{member.port}" for member in self.members)
        return f"etcd://{members}{prefix or f'/test-{next(self._prefixes)}'}"

    def ctl(self, *arguments: str, stdin: str = "") -> str:
        """What `etcdctl` prints. Raises EtcdFailed."""
        scheme, tls = "http", list[str]()
        if self._certificates is not None:
            scheme = "https"
            authority, certificate, key = map(str, self._certificates)
            tls = ["--cacert", authority, "--cert", certificate, "--key", key]
        endpoints = ",".join(f"{scheme}://{HOST}:{member.port}" for member in self.members)
        command = [program("etcdctl"), "--endpoints", endpoints, *tls, *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=30, env={**os.environ, "ETCDCTL_API": "3"}
        )
        if done.returncode != 0:
            raise EtcdFailed(done.stdout + done.stderr)
        return done.stdout

    def clear(self, address: str) -> None:
        """Deletes what stands under an address."""
        _, _, prefix = address.removeprefix("etcd://").partition("/")
        self.ctl("del", "--prefix", f"/{prefix}/")

    def save(self, file: Path) -> None:
        """Takes etcd's own snapshot of what it holds now."""
        self.ctl("snapshot", "save", str(file))

    def set_back(self, file: Path) -> None:
        """Kills the only member and starts it again on a snapshot, at the same address, as operators do it."""
        (member,) = self.members
        if member.was_started:
            member.kill()
        member.empty()
        command = [program("etcdutl"), "snapshot", "restore", str(file), "--data-dir", str(member.data_dir)]
        alone = ("--name", member.name, "--initial-cluster", f"{member.name}={member.peer_url}")
        done = subprocess.run(
            [*command, *alone, "--initial-advertise-peer-urls", member.peer_url],
            capture_output=True,
            text=True,
            timeout=30,
        )
        if done.returncode != 0:
            raise EtcdFailed(done.stdout + done.stderr)
        member.start()

    def revision(self) -> int:
        return int(self._status()[0]["header"]["revision"])

    def leader(self) -> Etcd:
        """Who leads now."""
        for member, status in zip(self.members, self._status(), strict=True):
            if status["leader"] == status["header"]["member_id"]:
                return member
        raise EtcdFailed("no member leads")

    def _status(self) -> list[dict[str, Any]]:
        return [each["Status"] for each in json.loads(self.ctl("endpoint", "status", "--write-out", "json"))]
