"""The options of `odradek acls`: which resources, principals and operations are meant.

    --topic orders --topic billing. --group billing --prefixed      names, the type of each by its option
    --principal User:billing --host 10.0.0.7 --operation Read       whose, from where, what

Names are taken as they are written, blanks included: brokers compare them exactly. An empty one is refused, for it is
most often a variable that was not set.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from odradek.client.admin.acls import AclOperation, AclResourceType

__all__ = ["NonEmpty", "host_option", "operation_option", "operations_of", "principal_option"]
__all__ += ["resources_of", "with_resources"]

F = TypeVar("F", bound=Callable[..., Any])

OPERATIONS: Final = (
    "all", "alter", "alterconfigs", "clusteraction", "create", "createtokens", "delete", "describe",
    "describeconfigs", "describetokens", "idempotentwrite", "read", "twophasecommit", "write",
)  # fmt: skip
OPERATION_HELP: Final = "Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs, …, All"


class NonEmpty(click.ParamType[str]):
    """A text that is not empty."""

    name = "TEXT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail("it is empty, which names nothing; is a variable not set?", param, ctx)
        return str(value)


class PrincipalName(click.ParamType[str]):
    """`User:billing`: a type and a name."""

    name = "TYPE:NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, colon, name = str(value).partition(":")
        if not kind or not colon or not name:
            self.fail(f"{value!r} is not of the form TYPE:NAME, such as User:billing", param, ctx)
        return str(value)


class OperationName(click.ParamType[str]):
    """An operation by Kafka's name, in whatever case: `DescribeConfigs`, `describe-configs`, `DESCRIBE_CONFIGS`."""

    name = "OPERATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        plain = str(value).replace("-", "").replace("_", "").lower()
        if plain not in OPERATIONS:
            self.fail(f"{value!r} is none of {', '.join(OPERATIONS)}", param, ctx)
        return plain


def with_resources(*, is_list: bool = False) -> Callable[[F], F]:
    """The options that name resources; `resources_of` reads them."""
    of = "Only those of" if is_list else "Of"

    def decorated(command: F) -> F:
        for option in reversed(
            (
                click.option("--topic", "topics", multiple=True, type=NonEmpty(), metavar="NAME", help=f"{of} topics."),
                click.option("--group", "groups", multiple=True, type=NonEmpty(), metavar="ID", help=f"{of} a group."),
                click.option(
                    "--transactional-id", "transactional_ids", multiple=True, type=NonEmpty(), metavar="ID",
                    help=f"{of} a transactional id.",
                ),
                click.option("--cluster", "of_cluster", is_flag=True, help=f"{of} the cluster itself."),
                click.option(
                    "--user-principal", "user_principals", multiple=True, type=NonEmpty(), metavar="NAME",
                    help=f"{of} a user, whose delegation tokens others may make.",
                ),
                click.option(
                    "--delegation-token", "delegation_tokens", multiple=True, type=NonEmpty(), metavar="ID",
                    help=f"{of} a delegation token.",
                ),
            )
        ):  # fmt: skip
            command = option(command)
        return command

    return decorated


operation_option = click.option(
    "--operation", "operations", multiple=True, type=OperationName(), metavar="OPERATION",
    help=f"{OPERATION_HELP}; repeatable.",
)  # fmt: skip
principal_option = click.option(
    "--principal", "--allow-principal", "principals", multiple=True, type=PrincipalName(), metavar="TYPE:NAME",
    help="Whose: User:billing, or User:* for everybody; repeatable.",
)  # fmt: skip
host_option = click.option(
    "--host", "--allow-host", "hosts", multiple=True, type=NonEmpty(), metavar="ADDRESS",
    help="From this IP address; repeatable.",
)  # fmt: skip


def resources_of(
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    transactional_ids: tuple[str, ...],
    of_cluster: bool,
    user_principals: tuple[str, ...],
    delegation_tokens: tuple[str, ...],
) -> "list[tuple[AclResourceType, str]]":
    """What the options name, each once, in the order of the types."""
    from odradek.client.admin.acls import CLUSTER_NAME, AclResourceType

    named = {
        AclResourceType.TOPIC: topics,
        AclResourceType.GROUP: groups,
        AclResourceType.TRANSACTIONAL_ID: transactional_ids,
        AclResourceType.CLUSTER: (CLUSTER_NAME,) if of_cluster else (),
        AclResourceType.USER: user_principals,
        AclResourceType.DELEGATION_TOKEN: delegation_tokens,
    }
    return [(kind, name) for kind, names in named.items() for name in dict.fromkeys(names)]


def operations_of(plain: tuple[str, ...]) -> "list[AclOperation]":
    """Those that `OperationName` has let through, each once."""
    from odradek.client.admin.acls import AclOperation

    by_plain = {each.name.replace("_", "").lower(): each for each in AclOperation}
    return [by_plain[each] for each in dict.fromkeys(plain)]
