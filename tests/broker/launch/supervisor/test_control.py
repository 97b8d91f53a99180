"""What supervisor and processes tell each other: whole messages out of any pieces, and an end that is noticed."""

import asyncio
import socket

import pytest

from odradek.broker.launch.supervisor.control import Control, Lines, Message, control_of, encode, receive_first

MESSAGES: list[Message] = [{"begin": {"static": {"a": "ö\n"}}}, {"do": "quiesce"}, {"do": "stop"}]
STREAM = b"".join(map(encode, MESSAGES))


@pytest.mark.parametrize("size", [1, 7, len(STREAM)])
def test_messages_are_cut_out_of_pieces_of_any_size(size: int) -> None:
    lines = Lines()
    assert [each for at in range(0, len(STREAM), size) for each in lines.feed(STREAM[at : at + size])] == MESSAGES


def test_a_process_learns_first_what_it_is_to_be() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(STREAM)
        assert receive_first(theirs) == (MESSAGES[0], MESSAGES[1:])
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(EOFError, match="the supervisor is gone"):
            receive_first(theirs)


async def test_both_ends_tell_and_learn_that_the_other_is_gone() -> None:
    ours, theirs = socket.socketpair()
    heard: list[Message] = []
    has_heard, is_over, other_is_over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def hear(message: Message) -> None:
        heard.append(message)
        if len(heard) == len(MESSAGES):
            has_heard.set()

    for sock in (ours, theirs):
        sock.setblocking(False)
    one: Control = await control_of(ours, hear, is_over.set)
    other = await control_of(theirs, hear, other_is_over.set)
    for message in MESSAGES:
        other.tell(message)
    async with asyncio.timeout(5):
        await has_heard.wait()
        assert heard == MESSAGES
        other.close()
        await is_over.wait()
        await other_is_over.wait()
    one.tell({"do": "stop"})  # nobody hears it
    assert heard == MESSAGES
