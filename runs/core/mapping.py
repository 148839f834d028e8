"""What an exception of a client library says about the call: surely not done, refused, or unknown.

Classes are matched by module and name, so that no client library has to be installed.
"""

from __future__ import annotations

import errno
import smtplib
import socket
import ssl
from email.utils import parsedate_to_datetime

from runs.core.errors import Ambiguous, Permanent, Transient

NOT_SENT = {
    "httpx.ConnectError",
    "httpx.ConnectTimeout",
    "httpx.PoolTimeout",
    "httpx.ProxyError",
    "httpcore.ConnectError",
    "httpcore.ConnectTimeout",
}
UNKNOWN = {
    "httpx.ReadTimeout",
    "httpx.WriteTimeout",
    "httpx.ReadError",
    "httpx.WriteError",
    "httpx.CloseError",
    "httpx.RemoteProtocolError",
    "httpx.DecodingError",
}
REFUSED = {
    "httpx.UnsupportedProtocol",
    "httpx.InvalidURL",
    "httpx.TooManyRedirects",
    "httpx.LocalProtocolError",
}
SURELY_NOT_DONE = {408, 425, 429}
NETWORK_AWAY = {
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.EHOSTUNREACH,
    errno.EHOSTDOWN,
}  # also in the middle of a call


def classify(error: Exception) -> Exception:
    """The engine's own class for a known client error (httpx, smtplib, OS); any other error unchanged."""
    if isinstance(error, (Transient, Permanent, Ambiguous)):
        return error
    names = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(error).__mro__}
    message = f"{type(error).__name__}: {error}"
    if "httpx.HTTPStatusError" in names:
        return _status(error, message)
    if names & NOT_SENT or isinstance(error, (ConnectionRefusedError, socket.gaierror)):
        return Transient(message)
    if names & REFUSED or isinstance(error, ssl.SSLCertVerificationError):
        return Permanent(message)
    if isinstance(error, smtplib.SMTPException):
        return _smtp(error, message)
    if names & UNKNOWN or isinstance(error, (TimeoutError, ConnectionError, ssl.SSLError)):
        return Ambiguous(message)
    if isinstance(error, OSError) and error.errno in NETWORK_AWAY:
        return Ambiguous(message)
    return error


def _status(error: Exception, message: str) -> Exception:
    response = error.response  # type: ignore[attr-defined]  # httpx.HTTPStatusError
    after = response.headers.get("retry-after", "").strip()
    refused = response.status_code == 503 and after  # the server itself says when it will take it
    if response.status_code in SURELY_NOT_DONE or refused:
        return Transient(message, retry_after=_seconds(after, response.headers.get("date", "")))
    if response.status_code >= 500:
        return Ambiguous(message)  # the provider, or one behind a gateway, may have done it before that
    return Permanent(message)


def _seconds(after: str, now: str) -> float | None:
    """Retry-After in either of its forms: seconds, or a moment, seen from the server's own clock."""
    if after.isascii() and after.isdigit():
        return float(after)
    try:
        wait = parsedate_to_datetime(after) - parsedate_to_datetime(now)
    except (TypeError, ValueError):
        return None
    return max(wait.total_seconds(), 0.0)


def _smtp(error: smtplib.SMTPException, message: str) -> Exception:
    """Before the message was handed over an SMTP client knows; a connection lost later it does not."""
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return Ambiguous(message)
    if isinstance(error, (smtplib.SMTPConnectError, smtplib.SMTPHeloError)):
        return Transient(message)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
        return (
            Transient(message) if codes and all(400 <= code < 500 for code in codes) else Permanent(message)
        )
    if isinstance(error, smtplib.SMTPResponseException):
        return Transient(message) if 400 <= error.smtp_code < 500 else Permanent(message)
    return Permanent(message)
