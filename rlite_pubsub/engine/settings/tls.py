"""TLS contexts, made from the directives of TLS: a listener takes connections with them, and a replica follows its
master.

A context is made whole or not at all: if one cannot be made, the one in use stays, so CONFIG SET renews a certificate
for all later connections, and refuses a broken one. The log says why, as with Redis.
"""

from __future__ import annotations

import ctypes
import logging
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings

log = logging.getLogger("rlite_pubsub")

_VERIFY = {b"no": ssl.CERT_NONE, b"optional": ssl.CERT_OPTIONAL, b"yes": ssl.CERT_REQUIRED}
_VERSIONS = {
    b"tlsv1": ssl.OP_NO_TLSv1,
    b"tlsv1.1": ssl.OP_NO_TLSv1_1,
    b"tlsv1.2": ssl.OP_NO_TLSv1_2,
    b"tlsv1.3": ssl.OP_NO_TLSv1_3,
}
_DEFAULT_VERSIONS = frozenset((b"tlsv1.2", b"tlsv1.3"))


class TlsError(Exception):
    """These settings give no valid context. The log says what is wrong."""


def make_context(settings: Settings, clients: bytes) -> ssl.SSLContext:
    """Return a context. `clients`: whether clients must show a certificate: yes, no or optional. Raises TlsError."""
    try:
        return _made(settings, clients)
    except TlsError as failure:
        log.warning("%s", failure)
        raise
    except (OSError, ValueError) as failure:  # ssl.SSLError is an OSError
        log.warning("Failed to configure TLS: %s", failure)
        raise TlsError(str(failure)) from failure


def client_context(settings: Settings) -> ssl.SSLContext:
    """For the link to a master. As with Redis its certificate must be one of the authorities', whatever name it has.
    Raises TlsError."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        own = "tls-client-" if settings["tls-client-cert-file"] else "tls-"
        _have_own(context, settings, own)
        _have_authorities(context, settings, is_needed=True)
        _choose_versions(context, settings["tls-protocols"])
        _choose_ciphers(context, settings["tls-ciphers"].decode(), settings["tls-ciphersuites"].decode())
    except (OSError, ValueError) as failure:
        raise TlsError(str(failure)) from failure
    return context


def _have_own(context: ssl.SSLContext, settings: Settings, prefix: str) -> None:
    """The certificate that the other side is shown, if there is one."""
    certificate, key = _path(settings, prefix + "cert-file"), _path(settings, prefix + "key-file")
    if certificate is None or key is None:
        return
    passphrase = settings[prefix + "key-file-pass"]
    try:
        context.load_cert_chain(certificate, key, passphrase or b"-")  # never asks at the terminal
    except (OSError, ValueError) as failure:
        raise TlsError(f"Failed to load certificate {certificate} and key {key}: {failure}") from failure


def _have_authorities(context: ssl.SSLContext, settings: Settings, *, is_needed: bool) -> None:
    """Those that the other side's certificate is verified with."""
    authorities, folder = _path(settings, "tls-ca-cert-file"), _path(settings, "tls-ca-cert-dir")
    if authorities is None and folder is None:
        if is_needed:
            raise TlsError(
                "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, tls-replication or "
                "tls-auth-clients are enabled!"
            )
        return
    try:
        context.load_verify_locations(authorities, folder)
    except OSError as failure:
        raise TlsError(
            f"Failed to configure CA certificate(s) file/directory {authorities or folder}: {failure}"
        ) from failure


def _made(settings: Settings, clients: bytes) -> ssl.SSLContext:
    certificate, key = _path(settings, "tls-cert-file"), _path(settings, "tls-key-file")
    authorities, folder = _path(settings, "tls-ca-cert-file"), _path(settings, "tls-ca-cert-dir")
    if certificate is None:
        raise TlsError("No tls-cert-file configured!")
    if key is None:
        raise TlsError("No tls-key-file configured!")
    if clients != b"no" and authorities is None and folder is None:
        raise TlsError("Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is enabled!")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _choose_versions(context, settings["tls-protocols"])
    if not settings["tls-prefer-server-ciphers"]:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    if not settings["tls-session-caching"]:
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    _have_own(context, settings, "tls-")
    _have_authorities(context, settings, is_needed=False)
    context.verify_mode = _VERIFY[clients]
    _choose_ciphers(context, settings["tls-ciphers"].decode(), settings["tls-ciphersuites"].decode())
    parameters = _path(settings, "tls-dh-params-file")
    if parameters is not None:
        try:
            context.load_dh_params(parameters)
        except OSError as failure:
            raise TlsError(f"Failed to load DH params file {parameters}: {failure}") from failure
    return context


def _path(settings: Settings, name: str) -> str | None:
    return settings[name].decode() or None


def _choose_versions(context: ssl.SSLContext, said: bytes) -> None:
    versions = frozenset(said.lower().split()) or _DEFAULT_VERSIONS
    if not versions <= _VERSIONS.keys():
        raise TlsError(
            "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'."
        )
    if not versions <= _DEFAULT_VERSIONS:
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    for version, without in _VERSIONS.items():
        if version in versions:
            context.options &= ~without
        else:
            context.options |= without


def _choose_ciphers(context: ssl.SSLContext, ciphers: str, suites: str) -> None:
    if ciphers:
        try:
            context.set_ciphers(ciphers)
        except ssl.SSLError as failure:
            raise TlsError(f"Failed to configure ciphers: {ciphers}") from failure
    if suites:
        _set_suites(context, suites)


class _ContextObject(ctypes.Structure):
    """CPython's SSLContext up to its first member, which is OpenSSL's context."""

    _fields_ = (("refcount", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("context", ctypes.c_void_p))


def _set_suites(context: ssl.SSLContext, suites: str) -> None:
    """Set the cipher suites: Python cannot before 3.15, so OpenSSL is called through CPython's own object, and the
    result is verified."""
    if hasattr(context, "set_ciphersuites"):
        try:
            context.set_ciphersuites(suites)
        except ssl.SSLError as failure:
            raise TlsError(f"Failed to configure ciphersuites: {suites}") from failure
        return
    import _ssl

    try:
        of_openssl = ctypes.CDLL(_ssl.__file__).SSL_CTX_set_ciphersuites
    except (AttributeError, OSError) as failure:
        raise TlsError("tls-ciphersuites can't be set with this Python") from failure
    of_openssl.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    inner = _ContextObject.from_address(id(context)).context
    is_set = of_openssl(inner, suites.encode()) == 1
    chosen = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.3"}
    if not is_set or chosen != set(suites.split(":")):
        raise TlsError(f"Failed to configure ciphersuites: {suites}")


def common_name(certificate: Mapping[str, Any] | None) -> str | None:
    """Return the CN of a peer's verified certificate; None if it has shown none."""
    for names in (certificate or {}).get("subject", ()):
        for name, value in names:
            if name == "commonName":
                return str(value)
    return None
