"""The table service: a shell around ``services.game`` that records, tells and keeps the time.

README.md in this folder shows the way of a command on one screen.
"""
