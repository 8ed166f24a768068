"""What is written is read back, in every message and every version."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .samples import EVERY_VERSION, Message, message_id


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION, ids=message_id)
@settings(
    max_examples=6, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(random=st.randoms(use_true_random=False))
def test_a_message_comes_back_as_it_was(message: Message, version: int, random: Random) -> None:
    value = message.sample(random, version)
    body = message.encode(value, version)

    for data in (body, memoryview(body)):
        assert message.decoder(version)(data, 0) == (value, len(body))


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION, ids=message_id)
def test_a_message_may_stand_anywhere_and_what_follows_is_left_alone(message: Message, version: int) -> None:
    value = message.sample(Random(version), version)
    body = message.encode(value, version)

    found, end = message.decoder(version)(memoryview(b"header" + body + b"\xff\xff\xff"), 6)

    assert (found, end) == (value, 6 + len(body))
