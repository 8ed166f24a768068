"""What every test shares: how hard hypothesis looks.

HYPOTHESIS_PROFILE=fuzz looks a hundred times harder (that is `tox -e fuzz`). Deadlines are off:
the machines that run this are shared, and a slow example is no wrong answer.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", deadline=None, suppress_health_check=QUIET)
settings.register_profile("fuzz", deadline=None, max_examples=10_000, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
