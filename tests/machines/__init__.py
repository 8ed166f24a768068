"""Machines, tested with names for waiters and numbers for time."""
