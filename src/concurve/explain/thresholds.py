"""Thresholds that several judges share."""

from __future__ import annotations

#: A kind of waiting that takes this share of the time limits a cell whatever its base does.
WHOLE_SHARE = 0.5
#: Work conservation: with a lock that limits, somebody holds it and runs.
RUNNING_MIN = 0.9
#: A thread that runs this share of the time is used up.
SATURATED = 0.85
