"""`shengji bench`: what this machine does against the figures that the design promises.

README.md in this folder says how each figure is measured.
"""
