"""Transactions as state without I/O: who may write, what takes part, and how it ends."""
