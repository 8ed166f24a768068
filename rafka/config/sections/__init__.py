"""The settings, by concern: one file and one or more attrs classes for each.

To add one, add a field. Its key, its environment names, its checks, its line in
`--print-config`, what admin clients see of it and its row in the documentation follow.
"""

from .broker import Broker, Fetch, Producers, Topics
from .groups import Groups
from .link import Link
from .log import Cleaner, LogDefaults
from .network import Network
from .storage import Logging, Storage
from .transactions import Transactions

__all__ = [
    "Broker",
    "Cleaner",
    "Fetch",
    "Groups",
    "Link",
    "LogDefaults",
    "Logging",
    "Network",
    "Producers",
    "Storage",
    "Topics",
    "Transactions",
]
