"""The rules of Shengji around the engine: options, presets, declaring, burying, scoring, levels, the judge.

Pure: no I/O, no clock, no randomness; imports the standard library and ``engine_ext`` only. README.md in this
folder names the sources, the decisions (D-marks) and the file of every rule.
"""
