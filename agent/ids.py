"""Ids that agents give."""

from __future__ import annotations

import os


class RandomIds:
    """Ids that no other agent makes: UUIDs of version 4 (uuid.uuid4 takes ten times as long)."""

    def container_id(self) -> str:
        text = self.uuid().hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def uuid(self) -> bytes:
        random_bytes = bytearray(os.urandom(16))
        random_bytes[6] = random_bytes[6] & 0x0F | 0x40
        random_bytes[8] = random_bytes[8] & 0x3F | 0x80
        return bytes(random_bytes)
