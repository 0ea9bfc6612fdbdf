"""The two forms of a body, and how a request chooses them."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Final, TypeVar

from google.protobuf.message import Message

from mesos_py.http import binary, jsonpb
from mesos_py.http.answers import HttpRefusal

M = TypeVar("M", bound=Message)


class Media(enum.Enum):
    """How messages are written in a body."""

    JSON = "application/json"
    PROTOBUF = "application/x-protobuf"

    def dumps(self, message: Message, *, ours: bool = False) -> bytes:
        """The message as a body; `ours`: with the fields that Mesos does not have."""
        if self is Media.JSON:
            return jsonpb.dumps(message, ours=ours)
        return binary.dumps(message)

    def loads(self, kind: type[M], data: bytes, where: str = "body") -> M:
        """The message of a body.  Raises InvalidValue naming the field and its value."""
        if self is Media.JSON:
            return jsonpb.loads(kind, data, where)
        return binary.loads(kind, data, where)


RECORDIO: Final = "application/recordio"
# A weight of nothing.
_NEVER: Final = re.compile(r"q\s*=\s*0(\.0*)?")
_OF_VALUE: Final = {media.value: media for media in Media}
_OFFERED: Final = tuple(_OF_VALUE)


def content_media(headers: Mapping[str, str], name: str = "Content-Type") -> Media:
    """How the body of a request is written.

    Raises HttpRefusal: 400 if it does not say, 415 for anything but exactly one of ours.
    """
    given = headers.get(name)
    if given is None:
        raise HttpRefusal(400, f"{name}: is missing; give one of {', '.join(_OFFERED)}")
    media = _OF_VALUE.get(given)
    if media is not None:
        return media
    raise HttpRefusal(415, f"{name}: {given[:100]!r}: must be one of {', '.join(_OFFERED)}")


def accepts(accept: str | None, media: str) -> bool:
    """Whether an Accept header allows a media type; without one all are allowed,
    and an empty one allows nothing.

    The first range that fits decides; its weight counts only if it is 0: "not that one".
    """
    if accept is None:
        return True
    family = media.partition("/")[0]
    for part in accept.split(","):
        given, *parameters = (word.strip().lower() for word in part.split(";"))
        if given in (media, "*/*", f"{family}/*"):
            return not any(_NEVER.fullmatch(each) for each in parameters)
    return False


def accepted_media(headers: Mapping[str, str], name: str = "Accept") -> Media:
    """How the answer is to be written: as JSON if that is allowed, whatever the weights.

    Raises HttpRefusal 406.
    """
    given = headers.get(name)
    for media in Media:
        if accepts(given, media.value):
            return media
    raise HttpRefusal(406, f"{name}: {(given or '')[:100]!r}: allows none of {', '.join(_OFFERED)}")


__all__ = ["RECORDIO", "Media", "accepted_media", "accepts", "content_media"]
