"""`python -m rafka` is `rafka`."""

import sys

from .cli import main

sys.exit(main())
