"""The directives of TLS: Redis's, for its port, and ours, for HTTP. tls.py makes contexts from them."""

from __future__ import annotations

from rlite_pubsub.engine.settings.directive import INT_MAX, Directive, choice, number, text, yes_no

TLS: tuple[Directive, ...] = (
    number(
        "tls-port", 0, 0, 65535,
        meaning="TCP port to listen on with TLS; 0 for none. With `port 0` it is the only one.",
    ),
    text("tls-cert-file", "", "volatile", meaning="The server's certificate with its chain (PEM)."),
    text("tls-key-file", "", "volatile", meaning="The certificate's private key (PEM)."),
    text("tls-key-file-pass", "", "secret", meaning="The passphrase of that key, if it has one."),
    text(
        "tls-ca-cert-file", "", "volatile",
        meaning="Certificates of the authorities that clients' certificates are verified with (PEM).",
    ),
    text("tls-ca-cert-dir", "", "volatile", meaning="A folder of such certificates, named by their hashes."),
    choice(
        "tls-auth-clients",
        "yes",
        "no yes optional",
        meaning="Whether clients must present a certificate: yes, no, or optional (if presented, it must be valid).",
    ),
    text(
        "tls-protocols", "",
        meaning="Which of `TLSv1 TLSv1.1 TLSv1.2 TLSv1.3` are accepted; by default the last two.",
    ),
    text("tls-ciphers", "", meaning="Ciphers up to TLS 1.2, as OpenSSL names them."),
    text("tls-ciphersuites", "", meaning="Cipher suites of TLS 1.3, as OpenSSL names them."),
    yes_no("tls-prefer-server-ciphers", "no", meaning="Prefer the server's order of ciphers to the client's."),
    text("tls-dh-params-file", "", "volatile", meaning="Diffie-Hellman parameters for TLS up to 1.2 (PEM)."),
    yes_no("tls-session-caching", "yes", meaning="Let clients resume sessions (by tickets)."),
    yes_no("tls-replication", "no", meaning="Follow a master (`replicaof`) over TLS."),
    text(
        "tls-client-cert-file", "", "volatile",
        meaning="The certificate that is shown to a master (PEM); by default that of `tls-cert-file`.",
    ),
    text("tls-client-key-file", "", "volatile", meaning="The private key of that certificate (PEM)."),
    text("tls-client-key-file-pass", "", "secret", meaning="The passphrase of that key, if it has one."),
)
"""Redis's, with a meaning here."""

KEPT_TLS: tuple[Directive, ...] = (
    number("tls-session-cache-size", 20480, 0, INT_MAX),
    number("tls-session-cache-timeout", 300, 0, INT_MAX),
    yes_no("tls-cluster", "no"),
)
"""Redis's, for what is not there: a cache of sessions on the server, a cluster's bus."""

OUR_TLS: tuple[Directive, ...] = (
    choice(
        "tls-auth-clients-user",
        "off",
        "off cn",
        ours=True,
        meaning="`cn`: a client whose certificate has an ACL user's name as its CN is logged in as that user.",
    ),
    number(
        "http-tls-port",
        0,
        0,
        65535,
        "settled",
        ours=True,
        meaning="TCP port for HTTPS, with the certificate of `tls-cert-file`; 0 for none.",
    ),
    choice(
        "http-tls-auth-clients",
        "no",
        "no yes optional",
        ours=True,
        meaning="As `tls-auth-clients`, for HTTPS.",
    ),
)

TLS_CONTEXT = (
    "tls-cert-file",
    "tls-key-file",
    "tls-key-file-pass",
    "tls-ca-cert-file",
    "tls-ca-cert-dir",
    "tls-auth-clients",
    "http-tls-auth-clients",
    "tls-protocols",
    "tls-ciphers",
    "tls-ciphersuites",
    "tls-prefer-server-ciphers",
    "tls-dh-params-file",
    "tls-session-caching",
)
"""What a TLS context is made of: it is recreated when one of these changes."""
