"""Names of amounts that are reserved.

`Resources` keeps amounts by name.  What is reserved is kept under a name of its own, so that it
adds up, compares and is taken away by itself: "cpus(ads)" are cpus that the operator of an agent
has reserved for the role ads.  Where more is to be said than that, it is written as JSON:
'cpus([["ads","static"],["ads/x","dynamic","alice"]])' are refined reservations, each for a
role below the one before, and 'disk([["ads","static"],{"volume":["v1","data"]}])' is the
persistent volume v1 (`mesos_py.persistent`), which is made of reserved disk.  The name itself
says everything; nothing has to be kept beside it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final, NamedTuple

from mesos_py import persistent
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.ids import check_role
from mesos_py.persistent import Volume
from mesos_py.v1 import types_pb2 as pb

Info = pb.Resource.ReservationInfo
_TYPES: Final = {Info.STATIC: "static", Info.DYNAMIC: "dynamic"}
_NUMBERS: Final = {word: number for number, word in _TYPES.items()}
# Each is a level of the tree of roles.
MAX_REFINED: Final = 32
# It is part of a name, of which many are kept.
MAX_PRINCIPAL: Final = 255
MAX_LABELS: Final = 32
MAX_LABEL: Final = 255
# All levels with their labels, as it is in the name.
MAX_STACK_BYTES: Final = 4096
# No other name ends like this.
_VOLUME_END: Final = "]}])"


class Reservation(NamedTuple):
    """One for `role`; `principal` and `labels` are of whoever made it while the agent ran."""

    role: str
    kind: str = "static"
    principal: str | None = None
    labels: tuple[tuple[str, str | None], ...] | None = None


Stack = tuple[Reservation, ...]


class _Made:
    """Whether there is any such name: where nothing is ever reserved nobody looks further."""

    any = False
    volume = False


def none_made() -> bool:
    """Whether this process has not seen a reserved amount yet."""
    return not _Made.any


def no_volume_made() -> bool:
    """Whether this process has not seen a persistent volume yet."""
    return not _Made.volume


def is_reserved(key: str) -> bool:
    return key.endswith(")")


def plain_name(key: str) -> str:
    """The name without what it is reserved for."""
    return key.partition("(")[0]


def is_volume(key: str) -> bool:
    """Whether it is a persistent volume, which is had whole or not at all."""
    return key.endswith(_VOLUME_END)


def key_of(name: str, stack: Stack, volume: Volume | None = None) -> str:
    """The one name of what is reserved so; `name` itself where nothing is."""
    if not stack:
        return name
    _Made.any = True
    first = stack[0]
    if volume is None and len(stack) == 1 and first == Reservation(first.role):
        role = first.role
        if role[0] != "[" and not role.endswith(_VOLUME_END[:-1]):
            return f"{name}({role})"
    items: list[object] = [_item(each) for each in stack]
    if volume is not None:
        _Made.volume = True
        items.append({"volume": _volume_item(volume)})
    return f"{name}({json.dumps(items, separators=(',', ':'))})"


def volume_mark(volume_id: str) -> str:
    """What is in the name of each volume of that id, and hardly in another one: those of an id
    are found so without looking at each name closely."""
    return f'{{"volume":[{json.dumps(volume_id)},'


def _volume_item(volume: Volume) -> list[object]:
    item: list[object] = [volume.volume_id, volume.container_path]
    if volume.principal is not None or volume.read_only:
        item.append(volume.principal)
    if volume.read_only:
        item.append("RO")
    return item


def _item(each: Reservation) -> list[object]:
    item: list[object] = [each.role, each.kind]
    if each.principal is not None or each.labels is not None:
        item.append(each.principal)
    if each.labels is not None:
        item.append(each.labels)
    return item


@lru_cache(maxsize=10_000)
def stack_of(key: str) -> Stack:
    """How the amount of that name is reserved, the widest first; () if it is not."""
    inner = key.partition("(")[2][:-1]
    if not inner:
        return ()
    if not inner.startswith("["):
        return (Reservation(inner),)
    found = []
    for each in json.loads(inner):
        if isinstance(each, dict):
            continue
        role, kind, *rest = each
        principal = rest[0] if rest else None
        labels = tuple((k, v) for k, v in rest[1]) if len(rest) > 1 else None
        found.append(Reservation(role, kind, principal, labels))
    return tuple(found)


@lru_cache(maxsize=10_000)
def volume_of(key: str) -> Volume | None:
    """The persistent volume that the amount of that name is."""
    if not is_volume(key):
        return None
    volume_id, path, *rest = json.loads(key.partition("(")[2][:-1])[-1]["volume"]
    return Volume(volume_id, path, rest[0] if rest else None, len(rest) > 1)


def role_of(key: str) -> str:
    """The role that may have it: of the narrowest reservation; "*": it is not reserved."""
    stack = stack_of(key)
    return stack[-1].role if stack else "*"


def in_words(key: str) -> str:
    """What the amount of that name is, for people."""
    stack, volume = stack_of(key), volume_of(key)
    if not stack:
        return key
    if volume is not None:
        return f"volume {volume.volume_id} of {stack[-1].role}"
    by = f" by {stack[-1].principal}" if stack[-1].principal is not None else ""
    return f"{plain_name(key)} reserved for {stack[-1].role}{by}"


def is_refined(key: str) -> bool:
    """Whether of what is reserved for a role something is reserved for one below it."""
    return len(stack_of(key)) > 1


def is_dynamic(key: str) -> bool:
    """Whether it was reserved while its agent ran: its last reservation at least."""
    stack = stack_of(key)
    return bool(stack) and stack[-1].kind == "dynamic"


def is_kept(key: str) -> bool:
    """Whether it is something that was made while its agent ran, and that the agent keeps: a
    dynamic reservation, or a volume."""
    return is_dynamic(key) or is_volume(key)


@lru_cache(maxsize=10_000)
def disk_of(key: str) -> str:
    """The name of the reserved disk that a volume is made of."""
    return key_of(plain_name(key), stack_of(key))


def before(key: str) -> str:
    """The name that the amount had before its last reservation."""
    return key_of(plain_name(key), stack_of(key)[:-1])


def before_all(key: str) -> str:
    """The name that the amount has when nothing is reserved but what its agent says."""
    return key_of(plain_name(key), tuple(x for x in stack_of(key) if x.kind == "static"))


def is_for(key: str, role: str) -> bool:
    """Whether the role may have it: it is reserved for the role or one above it."""
    owner = role_of(key)
    return owner in ("*", role) or role.startswith(owner + "/")


# ---- The wire ------------------------------------------------------------------------


def key_from(where: str, message: pb.Resource) -> str:
    """The name under which the amount of a message is kept: in either form that Mesos has
    for reservations, `reservations` or `role` with `reservation`.

    Raises InvalidResources, with `where` in its field, for reservations and volumes that
    cannot be and for what else a message may say of itself and is not there: revocable and
    shared resources, disks of a kind of their own, resource providers.
    """
    _refuse_special(where, message)
    volume = persistent.from_disk(where, message) if message.HasField("disk") else None
    if message.reservations:
        stack = _refined(where, message)
    elif message.HasField("role") and message.role != "*":
        stack = (_older(where, message),)
    elif message.HasField("reservation"):
        raise InvalidResources(f"{where}.role", "*", "a reservation must be for a role")
    elif volume is not None:
        raise InvalidResources(f"{where}.role", "*", "a volume must be of reserved disk")
    else:
        return message.name
    key = key_of(message.name, stack, volume)
    size = len(key.encode())
    if size > MAX_STACK_BYTES:
        # Before anybody asks for it by name: those that were asked for are remembered.
        said = "its roles, principals, labels and volume"
        reason = f"bytes for {said}, at most {MAX_STACK_BYTES} are kept"
        raise InvalidResources(f"{where}.reservations", size, reason)
    return key


def _refined(where: str, message: pb.Resource) -> Stack:
    where = f"{where}.reservations"
    if message.HasField("role") or message.HasField("reservation"):
        reason = "cannot be given together with role or reservation"
        raise InvalidResources(where, message.role or "*", reason)
    if len(message.reservations) > MAX_REFINED:
        reason = f"must be at most {MAX_REFINED}"
        raise InvalidResources(where, len(message.reservations), reason)
    stack: list[Reservation] = []
    for info in message.reservations:
        if info.type not in _TYPES:
            raise InvalidResources(f"{where}.type", info.type, "must be STATIC or DYNAMIC")
        made = _checked(where, info, info.role, _TYPES[info.type])
        if stack and made.kind == "static":
            raise InvalidResources(f"{where}.type", "STATIC", "only the first can be static")
        if stack and not made.role.startswith(stack[-1].role + "/"):
            reason = f"must be below {stack[-1].role}, which it is refined from"
            raise InvalidResources(f"{where}.role", made.role, reason)
        stack.append(made)
    return tuple(stack)


def _older(where: str, message: pb.Resource) -> Reservation:
    if not message.HasField("reservation"):
        return _checked(where, Info(), message.role, "static")
    info = message.reservation
    if info.HasField("role") or info.HasField("type"):
        reason = "must not have a role or a type: the resource has the role"
        raise InvalidResources(f"{where}.reservation", info.role, reason)
    return _checked(where, info, message.role, "dynamic")


def _checked(where: str, info: Info, role: str, kind: str) -> Reservation:
    try:
        check_role(f"{where}.role", role)
    except InvalidValue as error:
        raise InvalidResources(f"{where}.role", role, error.reason) from None
    if role == "*":
        raise InvalidResources(f"{where}.role", role, "nothing can be reserved for all roles")
    principal = info.principal if info.HasField("principal") else None
    labels = None
    if info.HasField("labels"):
        # In one order: that in which they are given makes no difference.
        labels = tuple(
            sorted(
                (
                    (each.key, each.value if each.HasField("value") else None)
                    for each in info.labels.labels
                ),
                key=lambda label: (label[0], label[1] is not None, label[1] or ""),
            )
        )
    _check_sizes(where, principal, labels or ())
    if kind == "static" and (principal is not None or labels is not None):
        reason = "a static reservation has neither principal nor labels"
        raise InvalidResources(f"{where}.principal", principal or "", reason)
    return Reservation(role, kind, principal, labels)


def _check_sizes(
    where: str, principal: str | None, labels: tuple[tuple[str, str | None], ...]
) -> None:
    if principal is not None and len(principal.encode()) > MAX_PRINCIPAL:
        reason = f"must be at most {MAX_PRINCIPAL} bytes"
        raise InvalidResources(f"{where}.principal", principal, reason)
    if len(labels) > MAX_LABELS:
        raise InvalidResources(f"{where}.labels", len(labels), f"must be at most {MAX_LABELS}")
    for text in (text for label in labels for text in label if text is not None):
        if len(text.encode()) > MAX_LABEL:
            reason = f"must be at most {MAX_LABEL} bytes each"
            raise InvalidResources(f"{where}.labels", text, reason)


def mark(message: pb.Resource, key: str) -> None:
    """Say in the message how the amount of that name is reserved, and what volume it is."""
    volume = volume_of(key)
    if volume is not None:
        persistent.put(message, volume)
    for each in stack_of(key):
        info = message.reservations.add(role=each.role, type=_NUMBERS[each.kind])
        if each.principal is not None:
            info.principal = each.principal
        if each.labels is not None:
            info.labels.SetInParent()
            for name, value in each.labels:
                info.labels.labels.add(key=name, value=value)


def put_older_form(message: pb.Resource) -> None:
    """Bring what `mark` has said into the form of before reservations could be refined."""
    if message.reservations:
        _say_older(message)
        del message.reservations[:]


def put_both_forms(message: pb.Resource) -> None:
    """What is shown to people and their tools says it in both ways, as Mesos does."""
    if message.reservations:
        _say_older(message)
    else:
        message.role = "*"


def _say_older(message: pb.Resource) -> None:
    last = message.reservations[-1]
    message.role = last.role
    if last.type == Info.DYNAMIC:
        message.reservation.CopyFrom(last)
        message.reservation.ClearField("role")
        message.reservation.ClearField("type")


def _refuse_special(where: str, message: pb.Resource) -> None:
    if message.HasField("revocable"):
        raise InvalidResources(where, "revocable", "revocable resources are not supported")
    if message.HasField("shared"):
        raise InvalidResources(where, "shared", "shared resources are not supported")
    if message.HasField("provider_id"):
        reason = "resource providers are not supported"
        raise InvalidResources(where, message.provider_id.value, reason)
