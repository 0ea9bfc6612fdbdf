"""HTTP basic authentication by a file of credentials."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Mapping
from pathlib import Path

from mesos_py.errors import InvalidValue
from mesos_py.http.answers import HttpRefusal


class Credentials:
    """Who may come in: secrets by principal."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = {name: secret.encode() for name, secret in secrets.items()}

    def principal(self, header: str | None) -> str | None:
        """Who is meant by an Authorization header; None if it proves nobody."""
        scheme, _, encoded = (header or "").strip().partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            given = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        # As in Mesos there is one colon: neither part can contain another.
        if given.count(":") != 1:
            return None
        name, secret = given.split(":")
        known = self._secrets.get(name)
        # Compared also when there is nobody of that name: the time must not tell.
        same = hmac.compare_digest(secret.encode(), known if known is not None else b"")
        return name if same and known is not None else None

    def require(self, header: str | None, realm: str) -> str:
        """The principal.  Raises HttpRefusal 401."""
        found = self.principal(header)
        if found is None:
            why = "is missing" if header is None else "names nobody, or not by the right secret"
            challenge = {"WWW-Authenticate": f'Basic realm="{realm}"'}
            raise HttpRefusal(401, f"Authorization: {why}", challenge)
        return found


def parse_credentials(text: str, field: str) -> Credentials:
    """Read `{"credentials":[{"principal":"p","secret":"s"}]}`.  Raises InvalidValue, in which
    no secret is shown."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InvalidValue(field, "", f"is no JSON: {error}") from None
    rows = content.get("credentials") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise InvalidValue(field, "", 'must be {"credentials": [...]}')
    secrets: dict[str, str] = {}
    for at, row in enumerate(rows):
        where = f"{field}.credentials[{at}]"
        name = row.get("principal") if isinstance(row, dict) else None
        secret = row.get("secret") if isinstance(row, dict) else None
        if not isinstance(name, str) or not name or not isinstance(secret, str):
            raise InvalidValue(where, "", "must have a principal and a secret, both text")
        if ":" in name or ":" in secret:
            raise InvalidValue(where, name, "neither principal nor secret may have a colon")
        if name in secrets:
            raise InvalidValue(where, name, "is there twice")
        secrets[name] = secret
    return Credentials(secrets)


def read_credentials(path: Path, field: str) -> Credentials:
    """Read a file of credentials.  Raises InvalidValue."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(field, path, f"cannot be read: {error}") from None
    return parse_credentials(text, field)


__all__ = ["Credentials", "parse_credentials", "read_credentials"]
