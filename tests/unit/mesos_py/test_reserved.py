"""Reservations on the wire: what cannot be is refused; names of reserved amounts."""

import pytest

from mesos_py import reserved
from mesos_py.errors import InvalidResources
from mesos_py.persistent import Volume
from mesos_py.reserved import Reservation, key_of
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

RESERVATION = pb.Resource.ReservationInfo(role="web")
STATIC = pb.Resource.ReservationInfo(role="web", type=pb.Resource.ReservationInfo.STATIC)
SIGNED = pb.Resource.ReservationInfo(
    role="web", type=pb.Resource.ReservationInfo.STATIC, principal="alice"
)
DYNAMIC = pb.Resource.ReservationInfo(role="webs/x", type=pb.Resource.ReservationInfo.DYNAMIC)
NOBODY = pb.Resource.ReservationInfo(role="*", type=pb.Resource.ReservationInfo.STATIC)


def reserved_by(**fields):
    message = pb.Resource(name="cpus", type=pb.Value.SCALAR, scalar=pb.Value.Scalar(value=1))
    message.MergeFrom(pb.Resource(**fields))
    return message


def dynamic(**fields):
    kind = pb.Resource.ReservationInfo.DYNAMIC
    info = pb.Resource.ReservationInfo(role="web", type=kind, **fields)
    return reserved_by(reservations=[info])


def labels(count, value="v"):
    return pb.Labels(labels=[pb.Label(key=f"k{n:02}", value=value) for n in range(count)])


def test_reservations_have_principals_and_labels_of_some_length():
    for message in (
        dynamic(principal="p" * 255, labels=labels(32, "v" * 100)),
        dynamic(labels=labels(8, "v" * 255)),
    ):
        (again,) = Resources.from_proto("it", [message]).to_proto()
        assert again.reservations == message.reservations


def test_all_that_is_said_of_one_amount_is_bounded_before_it_is_remembered():
    reserved.stack_of.cache_clear()
    info = pb.Resource.ReservationInfo(type=pb.Resource.ReservationInfo.DYNAMIC)
    role, levels = "web", []
    for _ in range(16):
        level = pb.Resource.ReservationInfo(role=role, labels=labels(1, "v" * 230))
        level.MergeFrom(info)
        levels.append(level)
        role += "/x"
    with pytest.raises(InvalidResources, match="at most 4096 are kept") as caught:
        Resources.from_proto("resources", [reserved_by(reservations=levels)])
    assert caught.value.field == "resources.cpus.reservations"
    assert reserved.stack_of.cache_info().currsize == 0
    assert Resources.from_proto("resources", [reserved_by(reservations=levels[:8])])


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([reserved_by(role="")], "must not be empty"),
        ([reserved_by(role="a//b")], "double"),
        ([reserved_by(reservation=pb.Resource.ReservationInfo())], "must be for a role"),
        ([reserved_by(role="web", reservation=RESERVATION)], "must not have a role or a type"),
        ([reserved_by(reservations=[RESERVATION])], "must be STATIC or DYNAMIC"),
        ([reserved_by(role="web", reservations=[STATIC])], "together with role"),
        ([reserved_by(reservations=[STATIC, STATIC])], "only the first can be static"),
        ([reserved_by(reservations=[STATIC, DYNAMIC])], "must be below web"),
        ([reserved_by(reservations=[NOBODY])], "for all roles"),
        ([reserved_by(reservations=[SIGNED])], "neither principal nor labels"),
        ([dynamic(principal="p" * 256)], "principal.*at most 255 bytes"),
        ([dynamic(labels=labels(33))], "labels.*at most 32"),
        ([dynamic(labels=labels(1, "é" * 128))], "labels.*at most 255 bytes"),
    ],
)
def test_reservations_that_cannot_be_are_refused_with_their_place(messages, why):
    with pytest.raises(InvalidResources, match=why) as caught:
        Resources.from_proto("resources", messages)
    assert caught.value.field.startswith("resources.cpus")


def test_too_many_refinements_are_refused():
    info = pb.Resource.ReservationInfo(role="web", type=pb.Resource.ReservationInfo.DYNAMIC)
    message = reserved_by(reservations=[info] * (reserved.MAX_REFINED + 1))
    with pytest.raises(InvalidResources, match="at most"):
        Resources.from_proto("resources", [message])


@pytest.mark.parametrize(
    ("key", "role", "allowed"),
    [
        ("cpus", "web", True),
        ("cpus(web)", "web", True),
        ("cpus(web)", "web/x", True),
        ("cpus(web)", "webs", False),
        ("cpus(web/x)", "web", False),
    ],
)
def test_a_role_may_have_what_is_for_it_or_above_it(key, role, allowed):
    assert reserved.is_for(key, role) is allowed


def test_names_are_read_as_people_write_them():
    refined = (Reservation("a"), Reservation("a/x", "dynamic", "alice"))
    assert key_of("cpus", ()) == "cpus"
    assert key_of("cpus", refined[:1]) == "cpus(a)"
    assert key_of("cpus", refined) == 'cpus([["a","static"],["a/x","dynamic","alice"]])'


def test_ports_that_are_there_both_ways_are_there_once():
    both = Resources.parse_reserved("ports:[1-5];ports(a):[4-9];racks:{x};racks(a):{x,y}")
    assert both.plain == Resources.parse("ports:[1-9];racks:{x,y}")


def test_what_must_not_be_reserved_is_told_by_its_role():
    plain = Resources.parse("cpus:1")
    assert plain.require_unreserved("needs") is plain
    with pytest.raises(InvalidResources, match="'ads': what is reserved cannot") as caught:
        Resources.parse_reserved("cpus:1;mem(ads):5").require_unreserved("needs")
    assert caught.value.field == "needs.mem"


def disk(message: pb.Resource.DiskInfo, name: str = "disk", **fields) -> pb.Resource:
    made = pb.Resource(name=name, type=pb.Value.SCALAR, scalar=pb.Value.Scalar(value=1), **fields)
    made.disk.CopyFrom(message)
    return made


def persistence(volume_id: str = "v1", path: str = "data", **volume) -> pb.Resource.DiskInfo:
    made = pb.Resource.DiskInfo(volume=pb.Volume(container_path=path, mode=pb.Volume.RW))
    made.volume.MergeFrom(pb.Volume(**volume))
    made.persistence.id = volume_id
    return made


BARE = pb.Resource.DiskInfo(volume=pb.Volume(container_path="data", mode=pb.Volume.RW))
SOURCE = pb.Resource.DiskInfo(
    source=pb.Resource.DiskInfo.Source(type=pb.Resource.DiskInfo.Source.PATH)
)
PLACELESS = pb.Resource.DiskInfo(persistence=pb.Resource.DiskInfo.Persistence(id="v1"))
MODELESS = pb.Resource.DiskInfo(volume=pb.Volume(container_path="data"))
MODELESS.persistence.id = "v1"


@pytest.mark.parametrize(
    ("messages", "field", "why"),
    [
        ([disk(persistence())], "role", "of reserved disk"),
        ([disk(persistence(), name="cpus", role="web")], "disk", "only a disk"),
        ([disk(BARE, role="web")], "persistence.id", "must have an id"),
        ([disk(pb.Resource.DiskInfo(), role="web")], "persistence.id", "must not be empty"),
        ([disk(SOURCE, role="web")], "source", "not supported"),
        ([disk(PLACELESS, role="web")], "volume", "must say where"),
        ([disk(MODELESS, role="web")], "volume.mode", "must be RW or RO"),
        ([disk(persistence("a/b"), role="web")], "persistence.id", "slash"),
        ([disk(persistence(".."), role="web")], "persistence.id", "'..'"),
        ([disk(persistence("x" * 256), role="web")], "persistence.id", "longer"),
        ([disk(persistence(path="//"), role="web")], "volume.container_path", "a place"),
        ([disk(persistence(path="a/../b"), role="web")], "volume.container_path", "no '..'"),
        ([disk(persistence(path="a\0"), role="web")], "volume.container_path", "zero byte"),
        ([disk(persistence(path="é" * 513), role="web")], "volume.container_path", "1024"),
        ([disk(persistence(host_path="/"), role="web")], "volume.host_path", "its agent"),
        ([disk(persistence(), role="web")] * 2, "disk", "is there twice"),
    ],
)
def test_volumes_that_cannot_be_are_refused_with_their_place(messages, field, why):
    with pytest.raises(InvalidResources, match=why) as caught:
        Resources.from_proto("resources", messages)
    name = messages[0].name
    assert caught.value.field == f"resources.{name}.{field}"


def test_people_are_told_in_words_what_an_amount_is():
    refined = (Reservation("ads"), Reservation("ads/x", "dynamic", "alice"))
    names = ["cpus", key_of("cpus", refined[:1]), key_of("disk", refined)]
    names.append(key_of("disk", refined, Volume("v1", "data")))
    assert [reserved.in_words(name) for name in names] == [
        "cpus",
        "cpus reserved for ads",
        "disk reserved for ads/x by alice",
        "volume v1 of ads/x",
    ]


def test_the_name_of_an_odd_role_is_that_of_no_volume():
    key = reserved.key_of("disk", (Reservation("a]}]"),))
    assert not reserved.is_volume(key)
    assert reserved.role_of(key) == "a]}]"
