"""Buffers that are used again: the right size, few of them kept."""

from __future__ import annotations

from rafka.gateway.buffers import KEPT_OF_EACH, SIZES, Buffers


def test_a_buffer_holds_what_it_was_asked_for_and_is_used_again() -> None:
    buffers = Buffers()

    first = buffers.take(200_000)
    assert first is not None
    buffers.give_back(first)

    assert len(first) >= 200_000
    assert buffers.take(300_000) is first


def test_what_is_too_large_is_not_kept() -> None:
    assert Buffers().take(SIZES[-1] + 1) is None


def test_no_more_than_a_few_are_kept() -> None:
    buffers = Buffers()
    made = [buffers.take(SIZES[0]) for _ in range(KEPT_OF_EACH + 2)]

    for buffer in made:
        assert buffer is not None
        buffers.give_back(buffer)

    again = {id(buffers.take(SIZES[0])) for _ in made}
    assert len(again & {id(buffer) for buffer in made[:KEPT_OF_EACH]}) == KEPT_OF_EACH


def test_a_buffer_of_another_kind_is_not_taken_in() -> None:
    buffers = Buffers()

    buffers.give_back(bytearray(1000))

    assert len(buffers.take(1000) or b"") == SIZES[0]
