"""What a group is called beside its group.id: a stable id and a locator.

The stable id is `cgp_` and a ULID in lower case: made when the group is made, and its own until it
is deleted. A group that comes after it under the same group.id has another.

The locator, `<organisation>/consumer-groups/<slug>`, is for people. It follows from the group.id alone,
so it is the same after any restart; two groups never share one, though their ids differ only in
what the slug leaves out.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from ...types import OrgId

GROUP_PREFIX: Final = "cgp_"

_CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # base 32 without i, l, o and u
_TIME_BITS: Final = 48
_RANDOM_BYTES: Final = 10
_LETTERS: Final = 26
_UNSAFE: Final = re.compile(r"[^a-z0-9._]+")
_HASHED: Final = re.compile(r"-[0-9a-f]{8}")


def ulid(wall_ms: int, entropy: bytes) -> str:
    """Sorts by time, to the millisecond. `entropy` is ten random bytes."""
    if len(entropy) != _RANDOM_BYTES:
        raise ValueError(f"a ULID takes {_RANDOM_BYTES} random bytes, and not {len(entropy)}")
    time = wall_ms & ((1 << _TIME_BITS) - 1)
    number = time << (8 * _RANDOM_BYTES) | int.from_bytes(entropy, "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(5 * (_LETTERS - 1), -1, -5))


def stable_id(wall_ms: int, entropy: bytes) -> str:
    return GROUP_PREFIX + ulid(wall_ms, entropy)


def slug(group_id: str) -> str:
    """The group.id made safe: lower case, and one `-` for whatever is no letter, digit, `.` or `_`."""
    return _UNSAFE.sub("-", group_id.lower()) or "-"


def locator(org: OrgId, group_id: str) -> str:
    """A group whose id is not its slug has a short hash of the id behind it.

    So has one whose id looks as if it had: nobody can take another's locator by naming a group so.
    """
    safe = slug(group_id)
    if safe != group_id or _HASHED.fullmatch(safe[-9:]):
        safe += "-" + hashlib.sha256(group_id.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{org}/consumer-groups/{safe}"
