"""Who is not known yet: counted in all and by address, and told apart by how long they have been there."""

from odradek.broker.network.strangers import Strangers


def test_they_are_counted_by_address() -> None:
    strangers = Strangers[str]()
    for name, host in (("a", "h1"), ("b", "h2"), ("c", "h1")):
        strangers.add(name, host, 0)
    assert (len(strangers), strangers.of("h1"), strangers.of("h2"), strangers.of("h3")) == (3, 2, 1, 0)
    assert strangers.oldest() == "a"
    strangers.remove("a")
    strangers.remove("a")
    strangers.remove("nobody")
    assert (len(strangers), strangers.of("h1"), strangers.oldest()) == (2, 1, "b")
    assert "a" not in strangers
    assert "c" in strangers


def test_addresses_that_are_gone_are_forgotten() -> None:
    strangers = Strangers[int]()
    for number in range(1000):
        strangers.add(number, f"h{number}", 0)
        strangers.remove(number)
    assert len(strangers) == 0
    assert vars(strangers) == vars(Strangers[int]())


def test_who_is_late() -> None:
    strangers = Strangers[str]()
    for name, at_ms in (("a", 0.0), ("b", 10.0), ("c", 20.0)):
        strangers.add(name, "h", at_ms)
    assert strangers.late(29.9, 30.0) == []
    assert strangers.late(30.0, 30.0) == ["a"]
    assert strangers.late(45.0, 30.0) == ["a", "b"]
    assert strangers.late(1e9, 30.0) == ["a", "b", "c"]
