"""Orders and their order: in, looked at, open; held, idle, ended; and deployments."""

import pytest

from frameworks.common.pool import Phase
from frameworks.webfarm.core.balancer import Mode
from frameworks.webfarm.core.farm import Farm
from frameworks.webfarm.core.rollout import Rollout
from tests.kit.webfarm_world import World


def words(orders):
    return [each.what for each in orders]


def test_an_instance_gets_sessions_once_the_balancer_finds_it_well():
    world = World()
    assert words(world.step()) == ["put"]
    assert world.ids() == set()
    assert words(world.step()) == ["open"]
    assert world.ids() == {"t1"}
    assert world.step() == []


def test_one_that_the_balancer_does_not_find_well_gets_none():
    world = World()
    world.ill = {1}
    world.steps(20)
    assert [slot.mode for slot in world.slots][:2] == [Mode.HELD, Mode.FREE]
    assert world.ids(Phase.STARTING) == {"t1"}


def test_drained_then_idle_then_ended():
    world = World(wanted=2).steps(3)
    for task_id in ("t1", "t2"):
        world.set(world.slot_of(task_id).name, sessions=3)
    world.farm.wanted = 1
    assert words(world.step()) == ["hold"]
    (leaving,) = world.ids(Phase.DRAINING)
    for _ in range(10):
        assert world.step() == []
    world.set(world.slot_of(leaving).name, sessions=0)
    assert words(world.step()) == ["free", "kill"]
    assert leaving not in world.farm


def test_the_idle_one_goes_before_the_busy_one():
    world = World(wanted=2).steps(3)
    world.set(world.slot_of("t2").name, sessions=1)
    world.farm.wanted = 1
    world.step()
    assert world.ids(Phase.DRAINING) == {"t1"}


def test_who_does_not_get_idle_has_its_time():
    world = World(wanted=2, drain_s=30).steps(3)
    for task_id in ("t1", "t2"):
        world.set(world.slot_of(task_id).name, sessions=1)
    world.farm.wanted = 1
    world.step()
    assert world.step(29) == []
    assert words(world.step(1)) == ["free", "kill"]


def test_orders_that_nobody_carried_out_are_given_again():
    world = World()
    world.deaf = True
    assert words(world.step()) == words(world.step()) == ["put"]
    world.deaf = False
    world.steps(2)
    assert world.ids() == {"t1"}
    # The balancer began anew, without its servers.
    name = world.slot_of("t1").name
    world.set(name, mode=Mode.FREE)
    assert words(world.step()) == ["put"]
    assert words(world.step()) == ["open"]
    assert world.ids() == {"t1"}


def test_a_kill_is_said_again_only_after_a_while():
    world = World(wanted=2).steps(3)
    world.farm.wanted = 1
    world.deaf = True
    assert words(world.step()) == ["hold"]
    world.carry_out(world.step())  # held at last
    assert words(world.step()) == ["free", "kill"]
    assert [words(world.step(3)) for _ in range(4)] == [["free"]] * 3 + [["free", "kill"]]


def test_at_most_one_on_an_agent():
    world = World(agents=2, wanted=3, most=3).steps(5)
    assert len(world.farm.instances) == 2
    assert world.farm.to_start(world.now_s) == 1
    assert world.farm.refusal_s("agent-0", world.now_s) == float("inf")


def test_an_agent_on_which_one_failed_is_left_alone_for_a_moment():
    world = World(agents=1, backoff_first_s=5)
    world.step()
    world.end("t1")
    assert world.farm.refusal_s("agent-0", world.now_s) == 5
    assert world.farm.to_start(world.now_s) == 0
    world.steps(2)
    assert world.farm.instances == []
    world.step(6)
    assert len(world.farm.instances) == 1


def test_the_next_try_has_another_port():
    world = World(agents=1)
    world.step()
    first = world.farm.instances[0].port
    world.end("t1")
    world.step(10)
    assert world.farm.instances[0].port != first


def test_a_port_that_a_slot_still_points_to_is_nobody_s():
    world = World(agents=1).steps(3)
    at = world.farm.instances[0]
    world.end("t1", fault=False)
    ports = [at.port]
    assert world.farm.port_of(at.address, ports) is None
    world.step()
    world.step()
    assert world.farm.port_of(at.address, [31009]) == 31009


def test_an_instance_that_died_leaves_its_slot_at_once():
    world = World(wanted=2).steps(3)
    world.end("t1", fault=False)
    assert "free" in words(world.step())
    world.steps(3)
    assert len(world.ids()) == 2


def test_slots_of_servers_that_nobody_knows_are_freed():
    world = World().steps(3)
    world.set("s7", mode=Mode.OPEN, address="10.9.9.9", port=80)
    # And a second one of a server.
    at = world.farm.instances[0]
    world.set("s8", mode=Mode.OPEN, address=at.address, port=at.port)
    freed = [order.slot for order in world.step() if order.what == "free"]
    assert freed == ["s7", "s8"]


def test_one_that_never_serves_is_given_up():
    world = World(start_s=60)
    world.ill = {1}
    world.steps(3)
    orders = world.step(60)
    assert "kill" in words(orders)


def test_room_that_is_wanted_back_is_drained_and_replaced():
    world = World(wanted=2).steps(3)
    assert world.farm.leave(["t1", "unknown"], world.now_s, 60)
    assert not world.farm.leave(["t1", "unknown"], world.now_s, 60)
    while "t1" in world.farm:
        world.step()
        # It serves on until another one does.
        assert len(world.open_and_well()) >= 2
    world.steps(3)
    assert len(world.ids()) == 2
    assert world.farm.is_settled
    world.farm.wanted = 3
    world.ill = {1}
    world.step()
    (starting,) = world.ids(Phase.STARTING)
    assert world.farm.leave([starting], world.now_s)
    assert [order.instance.task_id for order in world.step() if order.what == "kill"] == [starting]


def test_one_that_has_to_go_does_in_time_though_nobody_can_take_its_place():
    world = World(agents=2, wanted=2).steps(3)
    world.farm.leave(["t1"], world.now_s, 10)
    assert world.farm.to_start(world.now_s) == 1
    world.steps(10)
    assert world.ids() == {"t1", "t2"}
    world.agents.remove(world.running["t1"].instance.agent_id)
    world.step(10)
    assert world.ids() == {"t2"}
    # The last one stays.
    world.farm.leave(["t2"], world.now_s, 10)
    world.step(60)
    assert world.ids() == {"t2"}
    world.agents.append("agent-9")
    world.steps(6)
    assert "t2" not in world.farm


def test_the_last_one_stays_also_while_the_balancer_takes_it_for_ill():
    world = World(agents=1).steps(3)
    world.farm.leave(["t1"], world.now_s, 10)
    world.running["t1"].well = False
    world.steps(60)
    assert world.ids() == {"t1"}
    # Another one serves: one that is ill is of no use to anybody.
    world.agents.append("agent-9")
    world.steps(6)
    assert world.ids() == {"t2"}


def test_fewer_are_wanted_while_one_has_to_go():
    world = World(wanted=3).steps(3)
    world.farm.leave(["t2"], world.now_s, 60)
    world.farm.wanted = 2
    world.steps(4)
    assert world.ids() == {"t1", "t3"}


def test_a_deployment_replaces_those_that_have_to_go_first():
    world = World(agents=6, wanted=3).steps(3)
    world.farm.leave(["t3"], world.now_s, 600)
    world.agents.remove(world.running["t3"].instance.agent_id)
    world.farm.rollout.begin("two")
    gone = []
    while world.farm.rollout.active:
        gone += [order.instance.task_id for order in world.step() if order.what == "hold"]
        assert len(world.open_and_well()) >= 3
    assert gone[0] == "t3"
    assert len(world.ids()) == 3


def test_one_with_nothing_open_ends_at_once_and_one_that_is_cut_has_its_grace():
    world = World(wanted=2, drain_s=5).steps(3)
    kills = []
    for task_id, sessions in (("t1", 0), ("t2", 3)):
        world.set(world.slot_of(task_id).name, sessions=sessions)
    world.farm.rollout.begin("two")
    for _ in range(60):
        kills += [each for each in world.step() if each.what == "kill"]
    assert {each.instance.task_id: each.idle for each in kills} == {"t1": True, "t2": False}


def test_a_successor_takes_over_what_is_there():
    old = World(wanted=3).steps(3)
    new = World(wanted=3)
    new.slots, new.running, new._count = old.slots, old.running, 10
    new.farm = Farm(new.rules, Rollout.first("one"), 3)
    for instance in old.farm.instances:
        new.farm.adopt(instance, new.now_s)
    # What is well serves on, whatever the cluster says later.
    assert new.step(200) == []
    assert new.ids() == {"t1", "t2", "t3"}
    new.farm.running("t1")
    new.farm.running("t2")
    new.end("t3", fault=False)
    new.steps(4)
    assert new.ids() == {"t1", "t2", "t11"}
    assert all(order.slot != old.slot_of("t1").name for order in new.orders)


# --- deployments ----------------------------------------------------------------


@pytest.mark.parametrize("agents", [3, 4, 8])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_deployment_replaces_all_and_never_has_too_few(agents, batch):
    world = World(agents=agents, wanted=3, most=4, batch=batch).steps(4)
    assert world.ids() == {"t1", "t2", "t3"}
    world.farm.rollout.begin("two")
    for _ in range(60):
        world.step()
        world.check()
        assert len(world.open_and_well()) >= 3
    assert world.farm.rollout.outcome == "done"
    assert {each.version for each in world.farm.instances} == {2}
    assert len(world.ids()) == 3
    holds = [order for order in world.orders if order.what == "hold"]
    assert len(holds) == 3


def test_a_new_one_that_does_not_serve_stops_the_deployment():
    world = World(wanted=3, start_s=60).steps(4)
    world.ill = {2}
    world.farm.rollout.begin("two")
    world.steps(10)
    assert world.ids() == {"t1", "t2", "t3"}
    assert len(world.farm.instances) == 4
    world.step(60)
    rollout = world.farm.rollout
    assert rollout.outcome == "failed"
    assert rollout.why == "t4 on agent-3: it does not serve within 60 s"
    assert (rollout.site, rollout.version) == ("one", 1)
    world.steps(10)
    assert world.ids() == {"t1", "t2", "t3"} == {each.task_id for each in world.farm.instances}
    # What is launched from now on has the old site again, and the next deployment another number.
    world.end("t1", fault=False)
    world.steps(5)
    assert {each.version for each in world.farm.instances} == {1}
    rollout.begin("three")
    assert rollout.version == 3


def test_a_new_one_that_is_lost_with_its_agent_stops_nothing():
    world = World(wanted=2).steps(4)
    world.farm.rollout.begin("two")
    world.step()
    (new,) = world.ids(Phase.STARTING)
    world.end(new, fault=False)
    world.steps(30)
    assert world.farm.rollout.outcome == "done"


def test_one_deployment_is_overtaken_by_another():
    world = World(wanted=2).steps(4)
    world.farm.rollout.begin("two")
    world.steps(3)
    world.farm.rollout.begin("three")
    for _ in range(40):
        world.step()
        assert len(world.open_and_well()) >= 2
    assert {each.version for each in world.farm.instances} == {3}


def test_more_are_wanted_while_a_deployment_goes_on():
    world = World(agents=8, wanted=2, most=6).steps(4)
    world.farm.rollout.begin("two")
    world.steps(3)
    world.farm.wanted = 6
    world.steps(40)
    assert len(world.ids()) == 6
    assert world.farm.rollout.outcome == "done"


def test_a_port_that_somebody_has_is_no_fault_of_a_site_that_is_deployed():
    world = World(agents=2, backoff_first_s=1).steps(3)
    world.farm.rollout.begin("two")
    world.step()
    world.running.pop("t2")
    gone = world.farm.ended("t2", world.now_s, fault=True, why="its port is in use", site=False)
    assert gone is not None
    assert world.farm.rollout.active
    world.steps(20)
    assert world.farm.rollout.outcome == "done"
    assert world.ids() == {"t3"}
    assert world.farm.instances[0].at != gone.at


def test_fewer_are_wanted_while_a_deployment_goes_on():
    world = World(wanted=4).steps(4)
    world.farm.rollout.begin("two")
    world.steps(3)
    world.farm.wanted = 1
    world.steps(40)
    assert len(world.ids()) == 1
    assert world.farm.rollout.outcome == "done"


def settled(world: World) -> bool:
    return world.farm.is_settled


def test_it_is_settled_when_nobody_comes_or_goes():
    world = World(wanted=2)
    assert settled(world)
    world.offer_all()
    assert not settled(world)
    world.steps(3)
    assert settled(world)
    world.farm.wanted = 1
    world.step()
    assert not settled(world)
    world.steps(3)
    assert settled(world)
    world.farm.rollout.begin("two")
    assert not settled(world)
