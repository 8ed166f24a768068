"""Deadlines by name, against the plain way of doing it."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from rafka.machines.groups.sessions import Sessions

steps = st.one_of(
    st.tuples(st.just("arm"), st.sampled_from("abcdefgh"), st.integers(0, 50)),
    st.tuples(st.just("disarm"), st.sampled_from("abcdefgh"), st.just(0)),
    st.tuples(st.just("wait"), st.just(""), st.integers(0, 20)),
)


@given(st.lists(steps, max_size=60))
def test_everybody_is_due_when_its_time_has_come_and_not_before(script: list[tuple[str, str, int]]) -> None:
    sessions, plain, now = Sessions(), dict[str, float](), 0.0
    for step, name, seconds in script:
        if step == "arm":
            plain[name] = now + seconds
            sessions.arm(name, now + seconds)
        elif step == "disarm":
            plain.pop(name, None)
            sessions.disarm(name)
        else:
            now += seconds
            late = {name for name, until in plain.items() if until <= now}
            assert set(sessions.due(now)) == late
            plain = {name: until for name, until in plain.items() if until > now}
            assert sessions.next > now
        assert sessions.next <= min(plain.values(), default=inf)


def test_those_due_come_in_the_order_of_their_times() -> None:
    sessions = Sessions()
    for name, until in (("late", 9.0), ("first", 1.0), ("second", 1.0), ("early", 0.5)):
        sessions.arm(name, until)

    assert sessions.due(10.0) == ["early", "first", "second", "late"]


def test_a_heartbeat_leaves_the_heap_alone() -> None:
    sessions = Sessions()
    for second in range(1_000):
        sessions.arm("ann", second + 10.0)

    assert len(sessions._heap) == 1
    assert sessions.next == 10.0


def test_names_long_gone_are_swept_out() -> None:
    sessions = Sessions()
    sessions.arm("stays", 1e9)
    for number in range(10_000):
        sessions.arm(f"goes/{number}", 1e6 + number)
        sessions.disarm(f"goes/{number}")

    assert len(sessions._heap) < 100
    assert sessions.due(2e9) == ["stays"]
