"""Run by a reader's Python: executes the programs that are named on its input, one after the other, as a notebook does.

Each has names of its own, but a session of Spark, which takes seconds to start, stays. For each line of input (the path
of a program) it answers a line of JSON: what the program has printed, and what it has raised.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[0] = os.getcwd()
    for line in sys.stdin:
        printed, raised = io.StringIO(), None
        file = Path(line.strip())
        with contextlib.redirect_stdout(printed):
            try:
                names = {"__name__": "__main__", "__file__": str(file)}
                exec(compile(file.read_text(), file, "exec"), names)  # noqa: S102
            except BaseException:
                raised = traceback.format_exc()
        print(json.dumps([printed.getvalue(), raised]), file=answers, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
