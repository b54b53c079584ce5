"""On PYTHONPATH, this sets a process's wall clock wrong by as many seconds as the file RLITE_TEST_CLOCK says."""

from __future__ import annotations

import mmap
import os
import struct
import time

with open(os.environ["RLITE_TEST_CLOCK"], "r+b") as _file:
    _wrong_by = mmap.mmap(_file.fileno(), 8)
_right, _right_ns = time.time, time.time_ns
time.time = lambda: _right() + struct.unpack("<d", _wrong_by)[0]
time.time_ns = lambda: _right_ns() + int(struct.unpack("<d", _wrong_by)[0] * 1e9)
