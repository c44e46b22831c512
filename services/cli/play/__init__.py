"""`shengji play`: a person at a terminal, through the lobby's and the table's protos and nothing else.

``model`` folds what a watch tells, ``offers`` says what may be shown, ``words`` reads what is typed,
``texts``, ``cards``, ``chronicle`` and ``screen`` say it: all of them pure, but
that lines are made for the width of the screen. ``profile`` and ``account`` sign
in, ``streams`` keep the connections, ``terminal`` reads and prints; ``rooms``, ``seat`` and ``command`` are
the loop.
"""
