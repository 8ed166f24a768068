"""Transactions in the words of each library: what a producer and a reader of committed records are asked.

vocabulary.py says what all of them can be asked, the other files are one library each, and
worker.py is a process that consumes, transforms and produces until it is killed.
"""
