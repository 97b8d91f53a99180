"""Shows which callables are coroutine functions, whatever they are wrapped in, and what is said of them."""

from collections.abc import AsyncGenerator
from functools import partial

import pytest

from odradek.client.arguments import is_coroutine_function, is_plain_callable, require_callback


async def awaited(*_: object) -> None: ...


async def generated() -> AsyncGenerator[int]:
    yield 1


def plain(*_: object) -> None: ...


class Callables:
    def method(self) -> None: ...

    async def awaited_method(self) -> None: ...

    @staticmethod
    async def awaited_static() -> None: ...

    @classmethod
    async def awaited_of_class(cls) -> None: ...

    def __call__(self) -> None: ...


class Awaited:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize(
    "value",
    [
        awaited,
        generated,
        partial(awaited, 1),
        partial(partial(awaited), 1),
        Callables().awaited_method,
        partial(Callables().awaited_method),
        Callables.awaited_static,
        Callables.awaited_of_class,
        Awaited(),
        Awaited().__call__,
        partial(Awaited()),
    ],
)
def test_a_coroutine_function_is_known(value: object) -> None:
    assert is_coroutine_function(value)
    assert not is_plain_callable(value)
    with pytest.raises(TypeError, match=r"on_delivery must be a callable \(delivery\) and no coroutine function, as "):
        require_callback("on_delivery", value, "delivery")


@pytest.mark.parametrize(
    "value", [plain, partial(plain), Callables().method, Callables(), Callables, Awaited, print, "text".join, str.join]
)
def test_anything_else_that_can_be_called_is_plain(value: object) -> None:
    assert is_plain_callable(value)
    require_callback("on_delivery", value, "delivery")


@pytest.mark.parametrize("value", [5, "print", None, ()])
def test_what_cannot_be_called_is_refused_by_name(value: object) -> None:
    assert not is_plain_callable(value)
    with pytest.raises(TypeError, match=r"on_delivery must be a callable \(delivery\), not "):
        require_callback("on_delivery", value, "delivery")
