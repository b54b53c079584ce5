"""On a server's PYTHONPATH: what only Linux has is taken away, as far as Python code can tell. What macOS has instead
(kqueue, its own LMDB) is not there either: this proves that nothing of Linux is needed, and nothing about macOS.
"""

import asyncio  # noqa: F401  the standard library keeps what it has of Linux
import ctypes
import multiprocessing.connection  # noqa: F401
import os
import select
import selectors  # noqa: F401
import socket
import subprocess  # noqa: F401
import sys
import sysconfig
import urllib.request  # noqa: F401

sysconfig.get_config_vars()

for module, names in (
    (os, ("eventfd", "fdatasync", "posix_fallocate", "O_DSYNC")),
    (select, ("epoll",)),
    (socket, ("AF_NETLINK",)),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

LINUX = ("fallocate", "pthread_mutexattr_setrobust", "pthread_mutex_consistent", "pthread_mutex_clocklock")


def _without(library):
    class Library(library):
        def __getattr__(self, name):
            if name in LINUX:
                raise AttributeError(name)
            return super().__getattr__(name)

    return Library


ctypes.CDLL, ctypes.PyDLL = _without(ctypes.CDLL), _without(ctypes.PyDLL)


def _hide(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(("/proc/", "/dev/shm/")):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


sys.addaudithook(_hide)
sys.platform = "darwin"
