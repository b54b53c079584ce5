"""The log, line for line in redis-server's form: `pid:M dd Mon yyyy hh:mm:ss.mmm # message`.

The mark before the message is the level: `.` debug, `-` verbose, `*` notice, `#` warning. A log file is opened for each
line, so that it may be moved away at any time.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from rlite_pubsub.engine.settings.settings import Settings

VERBOSE = 15
LEVELS = {b"debug": logging.DEBUG, b"verbose": VERBOSE, b"notice": logging.INFO, b"warning": logging.WARNING}
_MARKS = ((logging.WARNING, "#"), (logging.INFO, "*"), (VERBOSE, "-"))

log = logging.getLogger("rlite_pubsub")


class RedisFormat(logging.Formatter):
    """One line as redis-server writes it."""

    def format(self, record: logging.LogRecord) -> str:
        mark = next((mark for level, mark in _MARKS if record.levelno >= level), ".")
        moment = time.strftime("%d %b %Y %H:%M:%S", time.localtime(record.created))
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        return f"{os.getpid()}:M {moment}.{int(record.msecs):03d} {mark} {message}"


class File(logging.Handler):
    """Appends to a file; one that cannot be written loses the line, not the server."""

    def __init__(self, path: bytes) -> None:
        super().__init__()
        self.path = path

    def emit(self, record: logging.LogRecord) -> None:
        try:
            with open(self.path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(self.format(record) + "\n")
        except OSError:
            self.handleError(record)


class Syslog(logging.Handler):
    """Hands messages to syslog, which adds time and process itself."""

    def __init__(self, ident: str, facility: str) -> None:
        super().__init__()
        import syslog

        options = syslog.LOG_PID | syslog.LOG_NDELAY | syslog.LOG_NOWAIT
        syslog.openlog(ident, options, getattr(syslog, f"LOG_{facility.upper()}"))
        self._syslog = syslog

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelno
        priorities = (
            (logging.WARNING, self._syslog.LOG_WARNING),
            (logging.INFO, self._syslog.LOG_NOTICE),
            (VERBOSE, self._syslog.LOG_INFO),
        )
        priority = next((priority for least, priority in priorities if level >= least), self._syslog.LOG_DEBUG)
        self._syslog.syslog(priority, record.getMessage())


def start(settings: Settings) -> None:
    """Log as the settings say, and follow `loglevel`."""
    path = settings["logfile"]
    handlers: list[logging.Handler] = [File(path) if path else logging.StreamHandler(sys.stdout)]
    handlers[0].setFormatter(RedisFormat())
    if settings["syslog-enabled"]:
        handlers.append(Syslog(settings["syslog-ident"].decode(), settings["syslog-facility"].decode()))
    log.handlers[:] = handlers
    log.propagate = False
    log.setLevel(LEVELS[settings["loglevel"]])
    settings.on_change("loglevel", lambda level: log.setLevel(LEVELS[level]))
