"""On a server's PYTHONPATH: the kernel does not tell it what lies in its peers' sockets, as if they were elsewhere."""

import socket

del socket.AF_NETLINK
