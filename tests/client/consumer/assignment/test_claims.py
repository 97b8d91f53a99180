"""Whose claim to a partition counts."""

from odradek.client.consumer.assignment.claims import Claim, weigh
from tests.client.consumer.assignment.groups import layouts, member, parts

A0, A1 = parts("a0 a1")
MEMBERS = [member("m0", "a"), member("m1", "a"), member("m2", "a")]
NOTHING = Claim((), -1)


def owner_of_a0(*generations: int | None) -> str | None:
    """Members claim `a0` in these generations; None: not at all."""
    claims = {
        each.member_id: NOTHING if generation is None else Claim((A0,), generation)
        for each, generation in zip(MEMBERS, generations, strict=True)
    }
    return weigh(MEMBERS, claims, layouts(a=2)).owners.get(A0)


def test_a_single_claim_counts_however_old() -> None:
    assert owner_of_a0(None, -1, None) == "m1"


def test_the_newest_generation_wins() -> None:
    assert owner_of_a0(3, 5, 4) == "m1"
    assert owner_of_a0(5, 3, 4) == "m0"


def test_two_claims_of_the_newest_generation_cancel_each_other() -> None:
    assert owner_of_a0(5, 5, None) is None
    assert owner_of_a0(5, 5, 5) is None
    assert owner_of_a0(5, 5, 4) is None
    assert owner_of_a0(5, 4, 5) is None
    assert owner_of_a0(4, 4, 5) == "m2"


def test_all_claimants_are_told_even_those_that_cannot_keep_it() -> None:
    members = [member("m0", "a"), member("m1", "b")]
    claims = weigh(members, {"m0": Claim((A0,), 1), "m1": Claim((A0,), 2)}, layouts(a=2, b=1))
    assert claims.owners == {A0: "m0"}
    assert claims.claimants == {A0: {"m0", "m1"}}


def test_a_partition_that_is_gone_has_no_owner() -> None:
    assert weigh(MEMBERS[:1], {"m0": Claim((A1,), 1)}, layouts(a=1)).owners == {}
    assert weigh(MEMBERS[:1], {"m0": Claim((A1,), 1)}, {}).owners == {}


def test_a_partition_that_a_member_names_twice_is_one_claim() -> None:
    assert weigh(MEMBERS[:1], {"m0": Claim((A0, A0), 1)}, layouts(a=1)).owners == {A0: "m0"}
