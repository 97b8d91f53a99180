"""Carries out `odradek secure init`: makes authority, certificate, passwords, files, users and ACLs of a `Plan`.

Users and ACLs go into the store of the metadata before the directory is at its place: whatever fails, no directory is
there whose passwords count nowhere. A store on etcd is refused without TLS and credentials, since whoever writes to it
is super user.
"""

import os.path
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Final

from odradek.broker.disk.file_disk import FileDisk
from odradek.client.admin.scram_users import ITERATIONS_MIN
from odradek.runtime.environment import Environment
from odradek.secure.etcd_options import etcd_problem
from odradek.secure.first_contents import write_contents
from odradek.secure.new_directory import NewDirectory, new_directory
from odradek.secure.plan import ADMIN, AUTHORITY_DAYS, BROKER, MECHANISM, Plan, PlanRefused, rights_of
from odradek.secure.texts import broker_properties, client_properties, client_python

__all__ = ["initialise"]

PASSWORD_BYTES: Final = 24
MISSING: Final = (
    "odradek secure init makes certificates, for which it needs the extra odradek[security]: "
    "pip install 'odradek[security]'"
)


async def initialise(plan: Plan, environment: Environment) -> list[str]:
    """Makes all of it, and returns lines that say what there is now, and what comes next.

    Raises PlanRefused, DirectoryExists, StoreRefused, DirectoryRefused, OSError; nothing is left then.
    """
    options = dict(plan.store_options)
    if (problem := etcd_problem(options)) is not None:
        raise PlanRefused(problem)
    try:
        from odradek.secure.certificates import issue, make_authority
    except ImportError as error:
        raise PlanRefused(f"{MISSING} ({error})") from error
    now_ms = environment.now_ms()
    authority = make_authority(f"odradek {plan.hosts[0]}", now_ms, max(AUTHORITY_DAYS, plan.days))
    issued = issue(authority, plan.hosts, now_ms, plan.days)
    passwords = {user: _password(environment) for user in plan.users}
    acls = [acl for client in plan.clients for acl in rights_of(client)]
    with new_directory(plan.directory) as made:
        made.write("ca.pem", authority.certificate_pem)
        made.write("ca.key", authority.key_pem)
        made.write("broker.pem", issued.key_pem + issued.certificate_pem)
        made.write("secure.properties", broker_properties(plan, passwords[BROKER]))
        _write_clients(made, plan, passwords, authority.certificate_pem)
        address = options.pop("metadata.store", None) or f"embedded:{_data_dir(made, plan)}"
        await write_contents(FileDisk(), address, options, passwords, MECHANISM, ITERATIONS_MIN, acls)
    ends = datetime.fromtimestamp(now_ms // 1000, UTC) + timedelta(days=plan.days)
    return _next_steps(plan, len(acls), f"{ends:%Y-%m-%d}")


def _write_clients(made: NewDirectory, plan: Plan, passwords: dict[str, str], authority_pem: str) -> None:
    made.make_dir("clients")
    for user in plan.users:
        if user != BROKER:
            made.make_dir(f"clients/{user}")
            properties = client_properties(plan, user, passwords[user], authority_pem)
            made.write(f"clients/{user}/client.properties", properties)
            made.write(f"clients/{user}/client.py", client_python(plan, user, passwords[user], authority_pem))


def _data_dir(made: NewDirectory, plan: Plan) -> str:
    """Where the data directory is now: that within the new directory moves with it."""
    inside = os.path.relpath(plan.data_dir, plan.directory)
    if inside.split(os.sep)[0] == os.pardir:
        return plan.data_dir
    return made.make_dir(inside)


def _password(environment: Environment) -> str:
    """192 bits of chance, in characters that no file and no shell takes for anything else."""
    return urlsafe_b64encode(environment.random_bytes(PASSWORD_BYTES)).decode()


def _next_steps(plan: Plan, acl_count: int, ends: str) -> list[str]:
    directory = plan.directory
    lines = [
        f"{directory}: an authority, a certificate for {', '.join(plan.hosts)} until {ends}, "
        f"{len(plan.users)} users and {acl_count} ACLs",
        "",
        f"start the broker:    odradek serve --config {directory}/secure.properties",
        f"look at it:          odradek topics list --config {directory}/clients/{ADMIN}/client.properties",
        f"check it:            odradek secure check {plan.bootstrap.partition(',')[0]} --ca {directory}/ca.pem",
    ]
    if plan.clients:
        lines += [
            f"give each client its directory of {directory}/clients: {', '.join(plan.clients)}",
            "each may read and write topics, and use groups and transactional ids, that bear its name or begin with "
            "its name and a dot; `odradek acls add` gives more",
        ]
    lines += [
        f"keep {directory}/ca.key elsewhere: who has it can play a broker. It is needed for the next certificate, in "
        f"{plan.days} days at the latest"
    ]
    return lines
