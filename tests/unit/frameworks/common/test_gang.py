"""All or nothing: what is held, when it is given back, where slots go."""

import pytest

from frameworks.common.gang import Ask, Gang, Piece, Placement, never_fits, over, packed, spread
from mesos_py import InvalidValue, Resources

SLOT = Resources.of(cpus=1, mem=100)


def room(slots: int) -> Resources:
    return Resources.of(cpus=slots, mem=100 * slots)


def ask(slots: int, per_agent: int | None = None, placement=Placement.PACK) -> Ask:
    return Ask(slots, SLOT, per_agent, placement)


def gang_with(asked: Ask, *rooms: tuple[str, int]) -> Gang:
    gang = Gang(asked)
    for number, (agent, slots) in enumerate(rooms):
        gang.offered(Piece(f"o{number}", agent, room(slots)), 0.0, 1.0)
    return gang


def slots_of(gang: Gang) -> dict[str, int] | None:
    shares = gang.complete()
    return None if shares is None else {share.agent_id: share.slots for share in shares}


# --- being complete ---------------------------------------------------------------------------


def test_nothing_is_complete_before_all_slots_have_room():
    gang = gang_with(ask(3), ("a", 2))
    assert gang.complete() is None
    gang.offered(Piece("p", "b", room(1)), 0.5, 1.0)
    assert slots_of(gang) == {"a": 2, "b": 1}


def test_offers_of_one_agent_add_up():
    gang = Gang(ask(1))
    assert not gang.offered(Piece("o1", "a", Resources.of(cpus=1)), 0.0, 1.0)
    gang = Gang(ask(3))
    gang.offered(Piece("o1", "a", Resources.of(cpus=1, mem=150)), 0.0, 1.0)
    gang.offered(Piece("o2", "a", Resources.of(cpus=2, mem=150)), 0.0, 1.0)
    (share,) = gang.complete() or ()
    assert (share.agent_id, share.offer_ids, share.slots) == ("a", ("o1", "o2"), 3)


def test_what_brings_no_slot_is_not_held():
    gang = gang_with(ask(4, per_agent=2), ("a", 2))
    assert not gang.offered(Piece("p", "a", room(5)), 0.0, 1.0)
    assert not gang.offered(Piece("q", "b", Resources.of(mem=1000)), 0.0, 1.0)
    assert gang.held == 2


def test_amounts_beyond_the_ask_and_ports_do_not_matter():
    gang = Gang(ask(1))
    more = Resources.of(cpus=1, mem=100, disk=5, ports=[(1, 9)])
    assert gang.offered(Piece("o", "a", more), 0.0, 1.0)
    assert slots_of(gang) == {"a": 1}


def test_an_offer_that_has_gone_counts_no_more():
    gang = gang_with(ask(2), ("a", 1), ("b", 1))
    assert gang.gone("o0")
    assert not gang.gone("o0")
    assert gang.complete() is None


# --- giving back ------------------------------------------------------------------------------


def test_all_is_given_back_after_the_time_that_began_with_the_first():
    gang = Gang(ask(3))
    gang.offered(Piece("o1", "a", room(1)), 10.0, 1.5)
    gang.offered(Piece("o2", "b", room(1)), 11.0, 9.0)
    assert not gang.due(11.4)
    assert gang.due(11.5)
    assert gang.give_back() == ["o1", "o2"]
    assert (gang.held, gang.due_s) == (0, None)


def test_the_time_begins_anew_with_what_comes_after():
    gang = gang_with(ask(3), ("a", 1))
    gang.gone("o0")
    assert not gang.due(99.0)
    gang.offered(Piece("p", "a", room(1)), 100.0, 1.0)
    assert gang.due_s == 101.0


# --- placement --------------------------------------------------------------------------------


def test_pack_takes_few_agents_and_the_smallest_that_suffices_last():
    assert packed({"a": 2, "b": 8, "c": 3}, 4) == {"b": 4}
    assert packed({"a": 2, "b": 8, "c": 3}, 10) == {"b": 8, "a": 2}
    assert packed({"a": 2, "b": 8, "c": 3}, 11) == {"b": 8, "c": 3}


def test_spread_takes_all_in_turn():
    assert spread({"a": 1, "b": 4, "c": 4}, 6) == {"a": 1, "b": 3, "c": 2}
    assert spread({"a": 4, "b": 4, "c": 4}, 2) == {"a": 1, "b": 1}


def test_one_per_agent_is_one_per_agent():
    gang = gang_with(ask(2, placement=Placement.ONE_PER_AGENT), ("a", 4))
    assert gang.complete() is None
    gang.offered(Piece("p", "b", room(4)), 0.0, 1.0)
    assert slots_of(gang) == {"a": 1, "b": 1}


def test_at_most_so_many_of_an_agent():
    assert slots_of(gang_with(ask(4, per_agent=2), ("a", 9))) is None
    assert slots_of(gang_with(ask(4, per_agent=2), ("a", 9), ("b", 9))) == {"a": 2, "b": 2}


# --- what can never be ------------------------------------------------------------------------


def test_what_no_empty_cluster_has_room_for_is_told_with_numbers():
    assert never_fits(ask(4), [room(2), room(2)]) == ""
    told = never_fits(ask(5), [room(2), room(2)])
    assert told == "needs 5 x (cpus:1;mem:100); 2 agents have room for 4 when empty"
    told = never_fits(ask(3, per_agent=1), [room(9)])
    assert told == (
        "needs 3 x (cpus:1;mem:100), at most 1 on an agent; 1 agent has room for 1 when empty"
    )
    assert "0 agents have room for 0" in never_fits(ask(1), [])


def test_more_than_a_limit_is_told_with_numbers():
    assert over(ask(4), Resources.of(cpus=4), "it has") == ""
    assert over(ask(4), Resources.of(cpus=3.5), "it has") == "needs 4 cpus in all; it has 3.5"
    assert over(ask(4), Resources.of(gpus=1), "it has") == ""


@pytest.mark.parametrize("wrong", [{"slots": 0}, {"slots": 1, "per_agent": 0}])
def test_an_ask_for_nothing_is_refused(wrong):
    with pytest.raises(InvalidValue, match=next(reversed(wrong))):
        Ask(each=SLOT, **wrong)


def test_an_ask_for_ports_is_refused():
    with pytest.raises(InvalidValue, match="each"):
        Ask(1, Resources.of(cpus=1, ports=[(1, 2)]))
