"""What frameworks make of persistent volumes."""

from typing import Any, cast

import pytest

import mesos_py
from mesos_py import Room, reserve, reserved_for, reserved_in, unreserve
from mesos_py.conversions import conversion_of
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.persistent import MAX_PATH_BYTES, MAX_PRINCIPAL_BYTES, Volume
from mesos_py.reserved import Reservation, key_of, volume_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.testing.builders import make_offer
from mesos_py.v1.types_pb2 import Offer
from mesos_py.volumes import (
    create_volume,
    destroy_volume,
    disk_of_volume,
    grow_volume,
    resized_volume,
    shrink_volume,
    volume_at,
    volume_on,
    volumes_in,
)
from tests.kit import reserving
from tests.kit.reserving import amount, by

ADS = by("ads", "alice")
DISK = amount(ADS, disk=64)
MADE = reserving.volume(ADS, 64)


def test_what_create_makes_is_what_a_task_asks_for():
    operation = create_volume(DISK, "v1", "data", operation_id="o1")
    assert operation.type == Offer.Operation.CREATE
    assert operation.id.value == "o1"
    assert Resources.from_proto("volumes", operation.create.volumes) == MADE
    assert volume_on(DISK, "v1", "data") == MADE


def test_whose_a_volume_is_stays_with_it():
    made = volume_on(DISK, "v1", "data", principal="alice")
    assert made == reserving.volume(ADS, 64, principal="alice")
    assert made != MADE


@pytest.mark.parametrize(
    ("disk", "what"),
    [
        (EMPTY, "resources: '': must be one amount of disk"),
        (Resources.of(disk=64), "disk: 'disk': must be disk that is reserved"),
        (amount(ADS, mem=64), "must be disk that is reserved, and no volume yet"),
        (MADE, "must be disk that is reserved, and no volume yet"),
        (amount(ADS, disk=64, cpus=1), "must be one amount of disk"),
        (amount(ADS, ports=(1, 2)), "must be disk that is reserved"),
    ],
)
def test_a_volume_is_made_of_one_amount_of_reserved_disk(disk, what):
    for make in (volume_on, create_volume):
        with pytest.raises(InvalidResources) as raised:
            make(disk, "v1", "data")
        assert what in str(raised.value)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"volume_id": ""}, "volume_id: '': must not be empty"),
        ({"volume_id": "a/b"}, "volume_id: 'a/b': must not contain a slash"),
        ({"container_path": "/"}, "container_path: '/': must name a place"),
        ({"container_path": "a/../../b"}, "container_path: 'a/../../b': must have no '.'"),
        ({"container_path": "x" * (MAX_PATH_BYTES + 1)}, "container_path: 'xxx"),
        ({"principal": "x" * (MAX_PRINCIPAL_BYTES + 1)}, "principal: 'xxx"),
        ({"volume_id": None}, "volume_id: None: must be text"),
        ({"volume_id": "v\ud800"}, r"volume_id: 'v\ud800': has '\ud800', which is no character"),
        ({"container_path": 7}, "container_path: 7: must be text"),
        ({"container_path": "\udcff"}, r"container_path: '\udcff': has"),
        ({"principal": b"bob"}, "principal: b'bob': must be text"),
        ({"principal": "\ud800"}, r"principal: '\ud800': has"),
    ],
)
def test_what_cannot_be_is_said_by_the_name_of_the_argument(given, what):
    arguments = {"volume_id": "v1", "container_path": "data", **given}
    for make in (volume_on, create_volume):
        with pytest.raises(InvalidResources) as raised:
            make(DISK, **arguments)
        assert str(raised.value).startswith(what)


def test_an_operation_id_that_cannot_be_is_said():
    wrongs: tuple[Any, ...] = ("a/b", "\ud800", 7)
    for wrong in wrongs:
        with pytest.raises(InvalidValue, match=r"^operation_id: ") as raised:
            create_volume(DISK, "v1", "data", operation_id=wrong)
        assert raised.value.value == wrong


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"role": None}, "role: None: must be text"),
        ({"role": "\ud800"}, r"role: '\ud800': has"),
        ({"principal": 7}, "principal: 7: must be text"),
        ({"principal": "\ud800"}, r"principal: '\ud800': has"),
        ({"labels": {1: "x"}}, "labels: 1: must be text"),
        ({"labels": {"\ud800": None}}, r"labels: '\ud800': has"),
        ({"labels": {"n": 1}}, "labels.n: 1: must be text"),
        ({"labels": {"n": "\ud800"}}, r"labels.n: '\ud800': has"),
    ],
)
def test_a_reservation_says_what_is_no_text(given, what):
    for make in (reserve, reserved_for):
        with pytest.raises(InvalidValue) as raised:
            make(**{"resources": Resources.of(cpus=1), "role": "ads", **given})
        assert str(raised.value).startswith(what)


def test_a_volume_is_destroyed_as_it_is_offered():
    operation = destroy_volume(MADE, operation_id="o1")
    assert (operation.type, operation.id.value) == (Offer.Operation.DESTROY, "o1")
    assert Resources.from_proto("volumes", operation.destroy.volumes) == MADE
    for other in (DISK, EMPTY):
        with pytest.raises(InvalidResources, match=r"destroy\.volumes"):
            destroy_volume(other)


def test_a_volume_grows_by_disk_of_its_own_kind():
    operation = grow_volume(MADE, amount(ADS, disk=6))
    assert operation.type == Offer.Operation.GROW_VOLUME
    assert operation.grow_volume.volume == MADE.to_proto()[0]
    assert operation.grow_volume.addition == amount(ADS, disk=6).to_proto()[0]
    assert resized_volume(MADE, 70) == reserving.volume(ADS, 70)
    for addition in (amount(by("ads"), disk=6), Resources.of(disk=6), EMPTY):
        with pytest.raises(InvalidResources, match=r"grow_volume\.addition|one amount of disk"):
            grow_volume(MADE, addition)


def test_a_volume_shrinks_by_less_than_it_has():
    operation = shrink_volume(MADE, 60, operation_id="o1")
    assert (operation.type, operation.id.value) == (Offer.Operation.SHRINK_VOLUME, "o1")
    assert operation.shrink_volume.subtract.value == 60
    assert resized_volume(MADE, 4) == reserving.volume(ADS, 4)
    for mb in (64, 65, 0, -1, float("nan")):
        with pytest.raises(InvalidResources, match=r"shrink_volume\.subtract"):
            shrink_volume(MADE, mb)
    with pytest.raises(InvalidResources, match=r"^subtract_mb: 'x': must be a number"):
        shrink_volume(MADE, cast("float", "x"))
    with pytest.raises(InvalidResources, match=r"shrink_volume\.volume"):
        shrink_volume(DISK, 1)


def test_a_task_may_see_a_volume_elsewhere_and_not_write_to_it():
    used = volume_at(MADE, "db/files", read_only=True)
    assert used == reserving.volume(ADS, 64, path="db/files", read_only=True)
    with pytest.raises(InvalidResources, match=r"^container_path: '\.\.'"):
        volume_at(MADE, "..")


@pytest.mark.parametrize("other", [DISK, EMPTY, MADE + DISK])
def test_what_is_not_one_volume_is_not_taken_for_one(other):
    uses = (
        lambda: volume_at(other, "x"),
        lambda: resized_volume(other, 1),
        lambda: disk_of_volume(other),
    )
    for use in uses:
        with pytest.raises(InvalidResources, match=r"no persistent volume|one amount of disk"):
            use()


def test_the_volumes_of_an_offer_are_found_by_their_ids():
    second = reserving.volume(ADS, 9, "v2", principal="bob")
    offered = MADE + second + DISK + Resources.of(cpus=1, disk=5)
    offer = make_offer("o", "o", resources=offered)
    assert volumes_in(mesos_py.resources_of(offer)) == {"v1": MADE, "v2": second}
    assert volumes_in(DISK) == {}


def test_an_id_that_two_roles_use_is_that_of_the_narrower_one():
    """An offer for ads/x has what is reserved for ads, too."""
    below = reserving.volume(by("ads/x"), 9)
    refined = reserving.volume((Reservation("ads"), *by("ads/y")), 7)
    for offered in (below + MADE, MADE + below):
        assert volumes_in(offered) == {"v1": below}
        assert volumes_in(offered, "ads") == {"v1": MADE}
        assert volumes_in(offered, "ads/x") == {"v1": below}
        assert volumes_in(offered, "web") == {}
    assert volumes_in(MADE + refined, "ads/y") == {"v1": refined}


def test_a_task_rests_on_what_is_reserved_and_made_by_the_same_call():
    """As docs/schedulers.md shows it, the first time and the next."""
    need, labels = Resources.of(cpus=1, mem=64, disk=512), {"for": "orders"}
    place = reserved_for(Resources.of(cpus=1, mem=64), "db", labels=labels)
    disk = reserved_for(Resources.of(disk=512), "db", labels=labels)
    offered = Resources.of(cpus=4, mem=1024, disk=1024)
    for operation in (reserve(need, "db", labels=labels), create_volume(disk, "orders", "data")):
        offered = conversion_of(operation).apply(offered)
    assert offered.contains(place + volume_on(disk, "orders", "data"))
    room = Room(make_offer("o", "o", resources=offered))
    assert room.take(volumes_in(room.left)["orders"] + place)
    assert not reserved_in(room.left, "db", labels=labels)
    for operation in (
        destroy_volume(volumes_in(offered)["orders"]),
        unreserve(place + disk_of_volume(volumes_in(offered)["orders"])),
    ):
        offered = conversion_of(operation).apply(offered)
    assert offered == Resources.of(cpus=4, mem=1024, disk=1024)


def test_a_task_takes_a_volume_as_its_resources():
    task = mesos_py.command_task("t", "t", "agent", "true", cpus=1, resources=MADE)
    assert Resources.from_proto("task", task.resources) == MADE + Resources.of(cpus=1)
    (disk,) = (each.disk for each in task.resources if each.name == "disk")
    assert (disk.persistence.id, disk.volume.container_path) == ("v1", "data")


def test_the_name_of_a_volume_says_what_it_is():
    (key,) = volume_at(volume_on(DISK, "v1", "data", principal="bob"), "x").names()
    assert volume_of(key) == Volume("v1", "x", "bob")
    assert key == key_of("disk", ADS, Volume("v1", "x", "bob"))
