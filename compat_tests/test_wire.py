"""Bytes in, bytes out: the same bytes get the same answer from ours and from the real server, to the last byte.

Each case is sent as it stands and followed by a PING whose echo ends the answer, or is read to the end where Redis
closes the connection.
"""

from __future__ import annotations

import pytest

from compat_tests.servers import SocketServer
from compat_tests.wire import bulk, request

END = b"end of the case"

ANSWERED = {
    "unknown command": b"NOPE a b\r\n",
    "unknown command without arguments": b"nope\r\n",
    "unknown command with long arguments": request(b"nope", b"a" * 100, b"b" * 100, b"c"),
    "unknown command with a long name": request(b"n" * 200, b"a"),
    "unknown command with newlines": request(b"no\r\npe", b"\r\n"),
    "unknown command with a NUL": request(b"no\0pe", b"a\0b"),
    "empty command": request(b""),
    "unknown subcommand": b"CLIENT NOPE\r\nPUBSUB nope a b\r\nCONFIG nope\r\nCOMMAND nope\r\nACL x\r\nLATENCY x\r\n",
    "unknown subcommand with a NUL": request(b"CLIENT", b"no\0pe"),
    "subcommand with too few words": b"CLIENT SETNAME\r\nCLIENT LIST ID\r\nCLIENT REPLY\r\nPUBSUB\r\nCLIENT\r\n",
    "subcommand with too many words": b"CLIENT ID x\r\nPUBSUB NUMPAT x\r\nPUBSUB CHANNELS a b\r\nCLIENT GETNAME x\r\n",
    "too few words": b"PUBLISH a\r\nSUBSCRIBE\r\nECHO\r\nSELECT\r\nAUTH\r\nWATCH\r\nSPUBLISH\r\nSSUBSCRIBE\r\n",
    "too many words": b"PING a b\r\nMULTI a\r\nEXEC a\r\nPUBLISH a b c\r\nECHO a b\r\nRESET a\r\nAUTH a b c\r\n",
    "letters do not matter": b"pInG\r\neChO x\r\ncLiEnT gEtNaMe\r\npUbSuB nUmPaT\r\n",
    "blank lines": b"\r\n\r\n\nPING\r\n  \r\nPING\n",
    "no arguments": b"*0\r\n*-1\r\n*-5\r\nPING\r\n",
    "inline with quotes": b"ECHO \"a b\\x00\\n\"\r\nECHO 'it\\'s'\r\nECHO \"\"\r\n",
    "inline with blanks": b"   ECHO\t x  \r\n",
    "empty argument": request(b"ECHO", b""),
    "terminator of an argument is not looked at": b"*2\r\n$4\r\nECHOxx$1\r\nayy",
    "AUTH without a password": b"AUTH x\r\nAUTH default x\r\nAUTH nobody x\r\nAUTH default\r\n",
    "HELLO refused": b"HELLO 4\r\nHELLO 1\r\nHELLO x\r\nHELLO 2 SETNAME\r\nHELLO 2 NOPE\r\nHELLO 3 AUTH a b\r\n",
    "HELLO with a bad name": request(b"HELLO", b"3", b"SETNAME", b"a b"),
    "SELECT": b"SELECT 0\r\nSELECT 15\r\nSELECT 16\r\nSELECT -1\r\nSELECT x\r\nSELECT 99999999999\r\n",
    "bad names": request(b"CLIENT", b"SETNAME", b"a b") + request(b"CLIENT", b"SETNAME", b"\n"),
    "CLIENT NO-EVICT": b"CLIENT NO-EVICT on\r\nCLIENT NO-EVICT off\r\nCLIENT NO-EVICT x\r\nCLIENT NO-EVICT\r\n",
    "CLIENT KILL": b"CLIENT KILL 1.1.1.1:1\r\nCLIENT KILL ID 0\r\nCLIENT KILL ID x\r\nCLIENT KILL ID 99999\r\n"
    b"CLIENT KILL TYPE x\r\nCLIENT KILL USER nobody\r\nCLIENT KILL ADDR\r\nCLIENT KILL SKIPME x\r\n"
    b"CLIENT KILL ID 1 x\r\n",
    "CLIENT PAUSE": b"CLIENT PAUSE x\r\nCLIENT PAUSE -1\r\nCLIENT PAUSE 1 x\r\nCLIENT PAUSE\r\nCLIENT UNPAUSE\r\n",
    "CLIENT REPLY": b"CLIENT REPLY ON\r\nCLIENT REPLY x\r\nCLIENT REPLY SKIP\r\nPING\r\n",
    "CLIENT UNBLOCK": b"CLIENT UNBLOCK 0\r\nCLIENT UNBLOCK x\r\nCLIENT UNBLOCK 1 x\r\n",
    "CLIENT TRACKING": b"CLIENT TRACKING on\r\nCLIENT TRACKING off\r\nCLIENT TRACKING x\r\n"
    b"CLIENT TRACKING on PREFIX a\r\nCLIENT GETREDIR\r\nCLIENT TRACKINGINFO\r\n",
    "HELP": b"PUBSUB HELP\r\nPUBSUB HELP x\r\nSLOWLOG HELP\r\nMODULE HELP\r\n",
    "transactions": b"EXEC\r\nDISCARD\r\nMULTI\r\nMULTI\r\nWATCH a\r\nPING\r\nEXEC\r\n"
    b"MULTI\r\nPING\r\nDISCARD\r\nUNWATCH\r\n",
    "empty transaction": b"MULTI\r\nEXEC\r\n",
    "transaction spoilt by an unknown command": b"MULTI\r\nNOPE\r\nPING\r\nEXEC\r\nEXEC\r\n",
    "transaction spoilt by too few words": b"MULTI\r\nPUBLISH\r\nEXEC\r\n",
    "transaction spoilt by a command that may not be in it": b"MULTI\r\nSYNC\r\nEXEC\r\n",
    "transaction that is not spoilt": b"MULTI\r\nSELECT 99\r\nPING\r\nCLIENT SETNAME a\r\nEXEC\r\n",
    "EXEC with too many words spoils": b"MULTI\r\nPING\r\nEXEC a\r\nEXEC\r\n",
    "subscribing in a transaction": b"MULTI\r\nSUBSCRIBE a\r\nPUBLISH a x\r\nUNSUBSCRIBE\r\nEXEC\r\nUNSUBSCRIBE\r\n",
    "MONITOR in a transaction": b"MULTI\r\nMONITOR\r\nSSUBSCRIBE a\r\nEXEC\r\n",
    "unsubscribing from nothing": b"UNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nSUNSUBSCRIBE\r\n"
    b"UNSUBSCRIBE a b\r\nSUNSUBSCRIBE a\r\n",
    "PUBSUB": b"PUBSUB CHANNELS\r\nPUBSUB NUMSUB\r\nPUBSUB NUMSUB a b\r\nPUBSUB NUMPAT\r\nPUBSUB SHARDCHANNELS *\r\n",
    "standalone": b"CLUSTER INFO\r\nCLUSTER MYID\r\nREADONLY\r\nASKING\r\nROLE\r\nMODULE LIST\r\nREPLICAOF NO ONE\r\n",
    "keyspace": b"DBSIZE\r\nFLUSHALL\r\nFLUSHDB SYNC\r\nFLUSHALL x\r\nSWAPDB 0 1\r\nSWAPDB 0 99\r\nSWAPDB x 1\r\n",
    "scripts": b"SCRIPT FLUSH\r\nSCRIPT EXISTS a\r\nFUNCTION FLUSH\r\nFUNCTION LIST\r\nSCRIPT FLUSH x\r\n",
    "SLOWLOG and LATENCY": b"SLOWLOG RESET\r\nSLOWLOG GET\r\nSLOWLOG GET x\r\nSLOWLOG GET -2\r\nLATENCY RESET\r\n",
    "CONFIG": b"CONFIG GET nope\r\nCONFIG SET nope 1\r\nCONFIG SET port x\r\nCONFIG SET\r\nCONFIG GET databases\r\n",
    "DEBUG": b"DEBUG SLEEP 0\r\nDEBUG SET-ACTIVE-EXPIRE 1\r\nDEBUG NOPE\r\nDEBUG JMAP\r\n",
    "RESET": b"SELECT 3\r\nCLIENT SETNAME a\r\nMULTI\r\nRESET\r\nCLIENT GETNAME\r\n",
}  # fmt: skip
"""Cases after which the connection goes on. In RESP2 and RESP3."""

SUBSCRIBED = {
    "PING": b"PING\r\nPING x\r\n",
    "refused": b"PUBLISH a b\r\nECHO x\r\nMULTI\r\nHELLO 3\r\nSELECT 1\r\nCLIENT ID x\r\nPUBSUB NUMPAT\r\n",
    "order of checks": b"NOPE\r\nECHO\r\nCLIENT NOPE\r\nEXEC\r\nSYNC x\r\nPUBLISH\r\n",
    "twice the same": b"SUBSCRIBE c c d\r\nPSUBSCRIBE c\r\nSSUBSCRIBE c\r\nUNSUBSCRIBE c c\r\n",
    "unsubscribed": b"UNSUBSCRIBE\r\nECHO x\r\nPING\r\n",
    "reset": b"RESET\r\nECHO x\r\nPING\r\n",
}
"""Cases of a connection that holds one channel."""

CLOSED = {
    "bad count": b"*x\r\n",
    "count too large": b"*2147483648\r\n",
    "count out of range": b"*99999999999999999999\r\n",
    "count with a plus": b"*+1\r\n$4\r\nPING\r\n",
    "count with a leading zero": b"*01\r\n$4\r\nPING\r\n",
    "no dollar": b"*1\r\n:1\r\n",
    "nested array": b"*1\r\n*1\r\n$4\r\nPING\r\n",
    "inline within an array": b"*2\r\n$4\r\nECHO\r\nx\r\n",
    "bad length": b"*1\r\n$x\r\n",
    "negative length": b"*1\r\n$-1\r\n",
    "length too large": b"*1\r\n$600000000000\r\n",
    "unbalanced quotes": b'ECHO "x\r\n',
    "quote in a word": b'ECHO "x"y\r\n',
    "inline request too long": b"x" * 70000,
    "count too long": b"*" + b"1" * 70000,
    "length too long": b"*1\r\n$" + b"1" * 70000,
    "after what was well-formed": request(b"PING") + b"*x\r\n" + request(b"PING"),
    "in a transaction": b"MULTI\r\nPING\r\n*x\r\n",
    "QUIT": b"QUIT\r\nPING\r\n",
    "QUIT with words": b"QUIT now\r\nPING\r\n",
    "QUIT in a transaction": b"MULTI\r\nQUIT\r\nPING\r\n",
    "QUIT while subscribed": b"SUBSCRIBE a\r\nQUIT\r\nPING\r\n",
    "POST": b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
    "Host:": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
"""Cases after which Redis closes the connection."""


def _answer(server: SocketServer, data: bytes, protocol: int, before: bytes = b"") -> bytes:
    """All that comes back up to the answer to a last PING."""
    with server.wire(protocol) as wire:
        wire.send(before + data + request(b"PING", END))
        told = b""
        while not told.endswith(END + b"\r\n"):
            told += wire.read_line()
        return told


@pytest.mark.parametrize("case", ANSWERED)
def test_request_gets_the_answer_of_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int, case: str
) -> None:
    data = ANSWERED[case]
    assert _answer(ours, data, protocol) == _answer(theirs, data, protocol)


@pytest.mark.parametrize("case", SUBSCRIBED)
def test_request_of_a_subscriber_gets_the_answer_of_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int, case: str
) -> None:
    if protocol == 3 and case == "refused":
        pytest.skip("nothing is refused in RESP3, and HELLO's reply tells an id")
    data = SUBSCRIBED[case]
    before = b"SUBSCRIBE channel\r\n"
    assert _answer(ours, data, protocol, before) == _answer(theirs, data, protocol, before)


@pytest.mark.parametrize("case", CLOSED)
def test_request_ends_the_connection_as_with_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int, case: str
) -> None:
    data = CLOSED[case]

    def to_the_end(server: SocketServer) -> bytes:
        with server.wire(protocol) as wire:
            wire.send(data)
            return wire.read_to_end()

    assert to_the_end(ours) == to_the_end(theirs)


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_request_cut_anywhere_is_one_request(server: SocketServer, cut: int) -> None:
    data = request(b"PUBLISH", b"channel", b"payload") + b"ECHO inline\r\n" + request(b"PING")
    with server.wire() as wire:
        wire.send(data[:cut])
        with server.wire() as other:
            other.ask(b"PING")  # by now the server has read the first part
        wire.send(data[cut:])
        assert wire.read(3) == b":0\r\n" + bulk(b"inline") + b"+PONG\r\n"


AUTHENTICATION = {
    "PING": b"PING\r\n",
    "unknown command comes first": b"NOPE\r\nPING\r\n",
    "arity comes first": b"ECHO\r\nPING a b\r\n",
    "HELLO": b"HELLO 3\r\nHELLO\r\nHELLO 2 SETNAME x\r\n",
    "AUTH": b"AUTH wrong\r\nAUTH default wrong\r\nAUTH nobody secret\r\nAUTH secret\r\nPING\r\nAUTH wrong\r\nPING\r\n",
    "MULTI": b"MULTI\r\nEXEC\r\n",
    "SUBSCRIBE": b"SUBSCRIBE a\r\n",
    "RESET": b"RESET\r\nAUTH secret\r\nPING\r\nRESET\r\nPING\r\n",
}
UNAUTHENTICATED_CLOSED = {
    "many arguments": b"*11\r\n",
    "long argument": b"*1\r\n$16385\r\n",
    "QUIT": b"QUIT\r\n",
}


@pytest.mark.parametrize("case", [*AUTHENTICATION, *UNAUTHENTICATED_CLOSED])
def test_stranger_gets_the_answer_of_redis(ours: SocketServer, theirs: SocketServer, case: str) -> None:
    def told(server: SocketServer) -> bytes:
        with server.client() as control:
            control.config_set("requirepass", "secret")
            try:
                with server.wire() as wire:
                    wire.send(AUTHENTICATION.get(case) or UNAUTHENTICATED_CLOSED[case])
                    if case in AUTHENTICATION:
                        wire.send(b"QUIT\r\n")
                    return wire.read_to_end()
            finally:
                control.execute_command("AUTH", "secret")
                control.config_set("requirepass", "")

    assert told(ours) == told(theirs)
