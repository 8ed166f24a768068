"""A Kafka-compatible broker on Trio's structured concurrency."""

from __future__ import annotations

__version__ = "0.1.0"
