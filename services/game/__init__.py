"""The game at a table: state, decisions, events, views, and what makes its log trustworthy.

Pure: no I/O, no clock, no randomness but what is passed in. README.md in this folder is the map, and holds
the fairness algorithms in words with their test vectors.
"""
