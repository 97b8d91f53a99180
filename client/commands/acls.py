"""`odradek acls`: list, add, remove, explain."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from odradek.client.commands.acl_options import (
    NonEmpty,
    OperationName,
    PrincipalName,
    host_option,
    operation_option,
    operations_of,
    principal_option,
    resources_of,
    with_resources,
)
from odradek.client.commands.failures import EXIT_CODES_HELP, CommandFailed
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from odradek.client.admin.acls import AclBinding, AclFilter
    from odradek.client.admin.admin import Admin
    from odradek.client.commands.acl_output import BrokerRules
    from odradek.client.commands.acl_plan import AclOptions

SUPER_USERS: Final = "super.users"
ALLOWS_WITHOUT_ACLS: Final = "allow.everyone.if.no.acl.found"

prefixed_option = click.option("--prefixed", "is_prefixed", is_flag=True, help="Names are prefixes of names.")
deny_option = click.option(
    "--deny", "denies", is_flag=True, help="ACLs that refuse; they count before those that allow."
)
producer_option = click.option(
    "--producer", "is_producer", is_flag=True, help="What a producer needs: on topics and transactional ids."
)
consumer_option = click.option(
    "--consumer", "is_consumer", is_flag=True, help="What a consumer needs: on topics and groups."
)
idempotent_option = click.option(
    "--idempotent",
    "is_idempotent",
    is_flag=True,
    help="With --producer: IdempotentWrite, for producers of before Kafka 3.",
)


@click.group(epilog=EXIT_CODES_HELP)
def acls() -> None:
    """List, add, remove and explain ACLs.

    An ACL says that a principal may, or with --deny may not, do something to what bears a name. `*` is every name.
    """


@acls.command("list", epilog=EXIT_CODES_HELP)
@with_resources(is_list=True)
@prefixed_option
@click.option("--match", "matches", is_flag=True, help="All that apply to these names: literally, by prefix, by *.")
@click.option(
    "--principal", "principals", multiple=True, type=PrincipalName(), metavar="TYPE:NAME",
    help="Only those that name this one; repeatable.",
)  # fmt: skip
@json_option
@on_target
async def list_acls(
    target: Target,
    /,
    is_prefixed: bool,
    matches: bool,
    principals: tuple[str, ...],
    as_json: bool,
    **resources: Any,
) -> None:
    """List ACLs, by what they are about. Default: all."""
    from odradek.client.commands.acl_output import COLUMNS, acl_json, row
    from odradek.client.commands.acl_plan import listed

    filters = listed(resources_of(**resources), principals, is_prefixed=is_prefixed, matches=matches)
    async with target.admin() as admin:
        found = await _matching(admin, filters)
    if as_json:
        print_json([acl_json(acl) for acl in found])
    else:
        print_table(COLUMNS, [row(acl) for acl in found])


@acls.command("add", epilog=EXIT_CODES_HELP)
@with_resources()
@prefixed_option
@principal_option
@operation_option
@host_option
@deny_option
@producer_option
@consumer_option
@idempotent_option
@json_option
@on_target
async def add(target: Target, /, as_json: bool, **options: Any) -> None:
    """Add ACLs, one for each principal, operation, host and name.

    They count when the command returns. One that exists already stays.
    """
    from odradek.client.commands.acl_plan import planned
    from odradek.client.commands.several import Failures

    wanted = planned(_options(**options))
    failures = Failures()
    async with target.admin() as admin:
        added = await failures.or_done(admin.create_acls(wanted), wanted)
    _tell("added", added, as_json=as_json)
    failures.tell()


@acls.command("remove", epilog=EXIT_CODES_HELP)
@with_resources()
@prefixed_option
@principal_option
@operation_option
@host_option
@deny_option
@producer_option
@consumer_option
@idempotent_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@on_target
async def remove(target: Target, /, yes: bool, as_json: bool, **options: Any) -> None:
    """Remove ACLs: what `add` with the same options has added.

    Without --operation, --host or --principal those of every operation, host or principal. What is found is shown, and
    removed after a yes; nothing else is, whatever is added meanwhile.
    """
    from odradek.client.admin.acls import AclFilter
    from odradek.client.commands.acl_plan import removed
    from odradek.client.commands.several import Failures

    chosen = _options(**options)
    filters = removed(chosen)
    failures = Failures()
    async with target.admin() as admin:
        found = await _matching(admin, filters)
        if not found:
            raise CommandFailed(
                f"Nothing was removed: there is no such ACL that {'refuses' if chosen.denies else 'allows'}. "
                "`odradek acls list` shows those that there are."
            )
        _ask(found, yes=yes)
        exact = [AclFilter.exactly(acl) for acl in found]
        gone = await failures.or_results(admin.delete_acls(exact))
    _tell("removed", [acl for deleted in gone.values() for acl in deleted], as_json=as_json)
    failures.tell()


@acls.command("explain", epilog=EXIT_CODES_HELP)
@with_resources()
@click.option(
    "--principal", required=True, type=PrincipalName(), metavar="TYPE:NAME", help="Who asks, such as User:billing."
)
@click.option("--operation", required=True, type=OperationName(), metavar="OPERATION", help="What for: Read, Write, …")
@click.option("--host", type=NonEmpty(), metavar="ADDRESS", help="From where. Default: a host that no ACL names.")
@click.option("--check", "checks", is_flag=True, help="End with 1 unless it is allowed.")
@json_option
@on_target
async def explain(
    target: Target, /, principal: str, operation: str, host: str | None, checks: bool, as_json: bool, **resources: Any
) -> None:
    """Show whether somebody may do something, which rule decides, and why not the others.

    As the brokers decide from the ACLs that there are, and from super.users, where the broker tells it.
    """
    from odradek.client.admin.acl_rules import AclQuestion, explained
    from odradek.client.admin.acls import AclFilter, AclOperation, AclPatternType
    from odradek.client.commands.acl_output import answer_json, answer_lines

    named = resources_of(**resources)
    if len(named) != 1:
        raise click.UsageError("explain is about one resource: give --topic, --group or another, once")
    ((kind, name),) = named
    (asked,) = operations_of((operation,))
    if asked is AclOperation.ALL:
        raise click.UsageError("brokers ask for one operation at a time, never for All: name one")
    question = AclQuestion(principal, asked, kind, name, host)
    async with target.admin() as admin:
        found = await admin.describe_acls(AclFilter(kind, name, pattern_type=AclPatternType.MATCH))
        rules = await _broker_rules(admin)
    answer = explained(
        found, question, super_users=rules.super_users or (), allows_without_acls=rules.allows_without_acls
    )
    if as_json:
        print_json(answer_json(question, answer, rules))
    else:
        for line in answer_lines(question, answer, rules):
            print_line(line)
    if checks and not answer.is_allowed:
        raise CommandFailed(f"{principal} is not allowed to do that, as far as is known here.")


def _options(
    is_prefixed: bool,
    principals: tuple[str, ...],
    operations: tuple[str, ...],
    hosts: tuple[str, ...],
    denies: bool,
    is_producer: bool,
    is_consumer: bool,
    is_idempotent: bool,
    **resources: Any,
) -> "AclOptions":
    from odradek.client.commands.acl_plan import AclOptions

    return AclOptions(
        resources_of(**resources),
        principals,
        operations_of(operations),
        hosts,
        denies=denies,
        is_prefixed=is_prefixed,
        is_producer=is_producer,
        is_consumer=is_consumer,
        is_idempotent=is_idempotent,
    )


async def _matching(admin: "Admin", filters: "Iterable[AclFilter]") -> "list[AclBinding]":
    """The ACLs that any of the filters matches, in order. Raises ClientError."""
    found: set[AclBinding] = set()
    for each in filters:
        found.update(await admin.describe_acls(each))
    return sorted(found)


async def _broker_rules(admin: "Admin") -> "BrokerRules":
    """What one of the brokers says of its options, which are the same on all of them where they are set up well.

    A principal without the right to see them, and a broker that does not tell, leave them unknown.
    """
    from odradek.client.admin.configs import ConfigResource
    from odradek.client.commands.acl_output import BrokerRules
    from odradek.client.errors.base import ClientError

    try:
        cluster = await admin.describe_cluster()
        resource = ConfigResource.broker(min(broker.node_id for broker in cluster.brokers))
        entries = (await admin.describe_configs([resource], [SUPER_USERS, ALLOWS_WITHOUT_ACLS]))[resource]
    except (ClientError, ValueError):
        return BrokerRules()
    told = {name: entry.value or "" for name, entry in entries.items() if not entry.is_sensitive}
    super_users = told.get(SUPER_USERS)
    allows = told.get(ALLOWS_WITHOUT_ACLS)
    return BrokerRules(
        None if super_users is None else [user.strip() for user in super_users.split(";") if user.strip()],
        None if allows is None else allows.lower() == "true",
    )


def _ask(found: "list[AclBinding]", *, yes: bool) -> None:
    """Shows what would be removed, and asks whether that is meant. Raises CommandFailed if not."""
    if yes:
        return
    for acl in found:
        click.echo(str(acl), err=True)
    if not sys.stdin.isatty():
        raise CommandFailed(f"Nothing was removed: nobody can be asked here. --yes removes these {len(found)}.")
    if not click.confirm(f"Remove {len(found)} ACL(s)?", err=True):
        raise CommandFailed("Nothing was removed.")


def _tell(done: str, changed: "list[AclBinding]", *, as_json: bool) -> None:
    from odradek.client.commands.acl_output import acl_json

    if as_json:
        print_json([acl_json(acl) for acl in changed])
        return
    for acl in changed:
        print_line(f"{done}: {acl}")
