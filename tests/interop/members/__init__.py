"""Members of groups: each in a thread or a process of its own, in the words of its library, with a diary.

diary.py says what a member tells of itself and what must hold of a diary; group.py lets members come
and go; load.py writes records meanwhile. The other files are one library each.
"""
