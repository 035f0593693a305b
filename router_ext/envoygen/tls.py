"""TLS towards backends: who is trusted and which name a certificate must carry."""

import importlib.util
import ipaddress
import os
import ssl
from pathlib import Path
from typing import Final

from envoy_data_plane.envoy.config.core.v3 import DataSource, TransportSocket
from envoy_data_plane.envoy.extensions.transport_sockets.tls.v3 import (
    CertificateValidationContext,
    CommonTlsContext,
    SubjectAltNameMatcher,
    SubjectAltNameMatcherSanType,
    TlsParameters,
    TlsParametersTlsProtocol,
    UpstreamTlsContext,
)
from envoy_data_plane.envoy.type.matcher.v3 import StringMatcher
from envoy_data_plane.google.protobuf import Any

_SYSTEM_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


class CaBundleNotFoundError(RuntimeError):
    """No file of trusted certificates was found."""


def is_ip(host: str) -> bool:
    """True when ``host`` is an IPv4 or IPv6 address and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def find_ca_bundle() -> Path:
    """The trusted certificates: ``SSL_CERT_FILE``, else the system's bundle, else certifi's.

    Raises CaBundleNotFoundError when there is none, or when ``SSL_CERT_FILE`` names no file.
    """
    chosen = os.environ.get("SSL_CERT_FILE")
    candidates = [chosen] if chosen else [*_SYSTEM_BUNDLES, ssl.get_default_verify_paths().cafile, _certifi()]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return Path(candidate).absolute()
    raise CaBundleNotFoundError(
        f"SSL_CERT_FILE names no file: {chosen}"
        if chosen
        else "no CA bundle found for https backends: set SSL_CERT_FILE"
    )


def _certifi() -> str | None:
    spec = importlib.util.find_spec("certifi")
    return str(Path(spec.origin).with_name("cacert.pem")) if spec and spec.origin else None


def upstream_tls(host: str) -> TransportSocket:
    """A TLS client socket that accepts only a certificate of a trusted CA for ``host``, at TLS 1.2 or later.

    An IP address is matched against the certificate's IP names and sends no SNI (RFC 6066, section 3).
    """
    kind = SubjectAltNameMatcherSanType.IP_ADDRESS if is_ip(host) else SubjectAltNameMatcherSanType.DNS
    validation = CertificateValidationContext(
        trusted_ca=DataSource(filename=str(find_ca_bundle())),
        match_typed_subject_alt_names=[SubjectAltNameMatcher(san_type=kind, matcher=StringMatcher(exact=host))],
    )
    context = UpstreamTlsContext(
        sni="" if is_ip(host) else host,
        common_tls_context=CommonTlsContext(
            tls_params=TlsParameters(tls_minimum_protocol_version=TlsParametersTlsProtocol.TLSv1_2),
            validation_context=validation,
        ),
    )
    return TransportSocket(name="envoy.transport_sockets.tls", typed_config=Any.pack(context))
