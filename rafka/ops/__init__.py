"""The vocabulary between gateway and broker. See `base` for what an op is."""

from __future__ import annotations
