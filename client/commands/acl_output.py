"""What `odradek acls` prints: ACLs as rows and as JSON, and why a question is answered as it is."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.client.admin.acl_rules import AclAnswer, AclDecider, AclQuestion
from odradek.client.admin.acls import AclBinding, words
from odradek.client.commands.output import Cell

__all__ = ["COLUMNS", "BrokerRules", "acl_json", "answer_json", "answer_lines", "row"]

COLUMNS: Final = ("TYPE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")


class BrokerRules(NamedTuple):
    """What a broker has in its options; None: it did not tell."""

    super_users: Sequence[str] | None = None
    allows_without_acls: bool | None = None


def row(acl: AclBinding) -> tuple[Cell, ...]:
    return (
        words(acl.resource_type),
        acl.resource_name,
        words(acl.pattern_type),
        acl.principal,
        acl.host,
        words(acl.operation),
        words(acl.permission),
    )


def acl_json(acl: AclBinding) -> dict[str, str]:
    return {
        "resource_type": acl.resource_type.name,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


def answer_json(question: AclQuestion, answer: AclAnswer, rules: BrokerRules) -> dict[str, object]:
    return {
        "principal": question.principal,
        "operation": question.operation.name,
        "resource_type": question.resource_type.name,
        "resource_name": question.resource_name,
        "host": question.host,
        "allowed": answer.is_allowed,
        "decided_by": answer.decider.name,
        "rule": None if answer.rule is None else acl_json(answer.rule),
        "others": [{**acl_json(acl), "why_not": why} for acl, why in answer.others],
        "super_users": None if rules.super_users is None else list(rules.super_users),
        "allow_everyone_if_no_acl_found": rules.allows_without_acls,
    }


def answer_lines(question: AclQuestion, answer: AclAnswer, rules: BrokerRules) -> list[str]:
    """The answer, what decides it, and the other ACLs about the resource with why they do not."""
    host = "a host that no ACL names" if question.host is None else question.host
    what = f"{words(question.operation)} on {words(question.resource_type)} {question.resource_name}"
    verdict = {True: "is allowed", False: "is denied", None: "may be allowed or denied"}[answer.is_allowed]
    lines = [f"{question.principal} {verdict}: {what} from {host}", f"because {_reason(answer, rules)}"]
    if answer.others:
        lines.append("other ACLs about it:")
        lines += [f"  {acl}: {why}" for acl, why in answer.others]
    if rules.super_users is None and answer.decider is not AclDecider.SUPER_USER:
        lines.append("super.users of the brokers is not known here: who stands there may do everything")
    return lines


def _reason(answer: AclAnswer, rules: BrokerRules) -> str:
    match answer.decider:
        case AclDecider.SUPER_USER:
            return "super.users of the broker names the principal, which is asked of no ACL"
        case AclDecider.DENY:
            return f"of: {answer.rule}; a refusal counts before any grant"
        case AclDecider.ALLOW:
            return f"of: {answer.rule}"
        case AclDecider.NO_MATCH:
            return "there are ACLs about it, and none of them grants this"
        case AclDecider.NO_ACLS:
            option = "allow.everyone.if.no.acl.found"
            if rules.allows_without_acls is None:
                return f"no ACL is about it: {option} of the brokers decides, which is false unless set"
            return f"no ACL is about it, and {option} of the broker is {str(rules.allows_without_acls).lower()}"
