"""The error tree of the project.

::

    MesosPyError                 anything that we raise on purpose
    ├── InvalidValue             an input is wrong: names the field and the value
    │   └── InvalidResources     an amount, a range or a resources text is wrong
    ├── NotFound                 an id that nobody here knows
    ├── Conflict                 the request clashes with what is already there
    │   ├── AlreadyExists        an id is taken
    │   └── InsufficientResources  more is asked for than there is
    ├── Refused                  understood and not done, for the reason given
    │   ├── UnsupportedProtocol  the peer speaks a version that we do not
    │   └── Superseded           another leadership has begun since
    ├── NotLeader                this master does not lead; names who does
    ├── Unavailable              a peer could not be reached or went away
    │   └── MasterUnreachable    no master answered at any address given
    ├── TooLarge                 a message or value is over its limit
    ├── PortInUse                an address cannot be bound
    └── InternalError            a rule of ours was broken: a bug

Errors carry fields, so that whoever shows them can show the parts; the text is
complete without them.  `rpc.py` holds the one table from these to gRPC codes.
"""

from __future__ import annotations


class MesosPyError(Exception):
    """Base of all errors of this project.

    `code` is a stable word for programs; `fields` holds the parts of the text.
    """

    code = "error"

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword arguments do not survive pickling by themselves.
        return (_rebuild, (type(self), self.message, self.fields))

    def __repr__(self) -> str:
        inner = "".join(f", {name}={value!r}" for name, value in self.fields.items())
        return f"{type(self).__name__}({self.message!r}{inner})"


def _rebuild(cls: type[MesosPyError], message: str, fields: dict[str, object]) -> MesosPyError:
    error = cls.__new__(cls)
    MesosPyError.__init__(error, message, **fields)
    return error


def shown(value: object, limit: int = 200) -> str:
    """`value` as it may stand in an error text: quoted, on one line, shortened."""
    return shortened(repr(value) if isinstance(value, (str, bytes)) else value, limit)


def shortened(value: object, limit: int = 500) -> str:
    """`value` as text of at most `limit` characters: for what goes back to a peer."""
    text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


class InvalidValue(MesosPyError):
    """An input is wrong.  `field` is its path, `value` what was given."""

    code = "invalid-value"

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(
            f"{field}: {shown(value)}: {reason}", field=field, value=value, reason=reason
        )
        self.field = field
        self.value = value
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.field, self.value, self.reason))

    def under(self, prefix: str) -> InvalidValue:
        """The same error, its field named as a part of `prefix`."""
        return type(self)(f"{prefix}.{self.field}", self.value, self.reason)


class InvalidResources(InvalidValue):
    code = "invalid-resources"


class NotFound(MesosPyError):
    """`kind` is what was looked for ("task", "agent"), `name` the id given."""

    code = "not-found"

    def __init__(self, kind: str, name: str, reason: str = "unknown") -> None:
        super().__init__(f"{kind} {shown(name)}: {reason}", kind=kind, name=name)
        self.kind = kind
        self.name = name
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.kind, self.name, self.reason))


class Conflict(MesosPyError):
    code = "conflict"


class AlreadyExists(Conflict):
    code = "already-exists"


class InsufficientResources(Conflict):
    code = "insufficient-resources"


class Refused(MesosPyError):
    code = "refused"


class UnsupportedProtocol(Refused):
    code = "unsupported-protocol"


class Superseded(Refused):
    """What leads with `epoch` may not write any more; `newer` is the epoch that may."""

    code = "superseded"

    def __init__(self, epoch: int, newer: int) -> None:
        super().__init__(
            f"the leadership of epoch {epoch} is over: epoch {newer} has begun",
            epoch=epoch,
            newer=newer,
        )
        self.epoch = epoch
        self.newer = newer

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.epoch, self.newer))


class NotLeader(MesosPyError):
    """`leader` is the address of the master that leads, or None."""

    code = "not-leader"

    def __init__(self, leader: str | None) -> None:
        super().__init__(
            f"this master does not lead; the leader is {leader or 'not known'}", leader=leader
        )
        self.leader = leader

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.leader,))


class Unavailable(MesosPyError):
    code = "unavailable"


class MasterUnreachable(Unavailable):
    code = "master-unreachable"


class TooLarge(MesosPyError):
    code = "too-large"


class PortInUse(MesosPyError):
    code = "port-in-use"


class InternalError(MesosPyError):
    code = "internal"
