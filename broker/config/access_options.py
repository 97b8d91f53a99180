"""What is set for the authorizer, one row each (broker_options.py, where the rules of these rows stand)."""

from typing import Final

from odradek.broker.config.option import BOOLEAN, STRING, Option

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_OF_AUTHORIZER: Final = "Kafka takes it, too, as an option of its authorizer, and does not describe it."


def _refuse_class(name: str) -> str | None:
    if name in ("", STANDARD_AUTHORIZER):
        return None
    return f"classes of Java are not loaded, and the one authorizer that is built in is {STANDARD_AUTHORIZER}"


def _check_super_users(text: str) -> str | None:
    parts = [part.strip() for part in text.split(";")]
    if all(":" in part for part in parts if part):
        return None
    return "it must be principals separated by semicolons, each of the form principalType:principalName (User:alice)"


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class AccessOptions:
    """In order of the names."""

    allow_everyone_if_no_acl_found = Option(
        "allow.everyone.if.no.acl.found", BOOLEAN, False, "Whether everybody may do with a resource what they like "
        "as long as no ACL is for it; for the time in which ACLs are introduced.", deviation=_OF_AUTHORIZER,
    )
    authorizer_class_name = Option(
        "authorizer.class.name", STRING, "", f"`{STANDARD_AUTHORIZER}`: ACLs say who may do what, and who is allowed "
        "nothing may do nothing; empty: everybody may do everything.", refuse=_refuse_class,
        deviation="There is no other authorizer. Rules count once every registered broker can keep them.",
    )
    super_users = Option(
        "super.users", STRING, "", "Who may do everything, whatever ACLs say: principals separated by semicolons "
        "(`User:admin;User:CN=broker-1,O=example`).", check=_check_super_users, deviation=_OF_AUTHORIZER,
    )
# fmt: on
