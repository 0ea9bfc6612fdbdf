"""Whatever happens to a farm: nothing is there twice, and left alone it is what is wanted."""

from hypothesis import given
from hypothesis import strategies as st

from frameworks.webfarm.core.balancer import Mode
from frameworks.webfarm.core.farm import Farm
from tests.kit.webfarm_world import World

steps = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.sampled_from([0.5, 5.0, 31.0, 121.0])),
        st.tuples(st.just("wanted"), st.integers(1, 4)),
        st.tuples(st.just("deploy"), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("crash"), st.integers(0, 9)),
        st.tuples(st.just("sessions"), st.integers(0, 9)),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("deaf"), st.booleans()),
        st.tuples(st.just("balancer"), st.booleans()),
        st.tuples(st.just("wrapper"), st.just(None)),
    ),
    max_size=60,
)


def do(world, what, value):
    instances = world.farm.instances
    chosen = instances[value % len(instances)] if instances and isinstance(value, int) else None
    match what:
        case "step":
            world.step(value)
        case "wanted":
            world.farm.wanted = value
        case "deploy":
            if not value:
                world.ill.add(world.farm.rollout.last_version + 1)
            world.farm.rollout.begin("another")
        case "end" | "crash" if chosen is not None:
            world.end(chosen.task_id, fault=what == "crash")
        case "leave" if chosen is not None:
            world.farm.leave([chosen.task_id], world.now_s, within_s=value)
        case "sessions":
            world.set(f"s{value % 8 + 1}", sessions=value)
        case "deaf":
            world.deaf = value
        case "balancer":
            # Without the file that says what it had, or from the start with nothing well.
            for slot in world.slots:
                world.set(slot.name, well=False, **({} if value else {"mode": Mode.FREE}))
        case "wrapper":
            # Killed: the next one knows what was written down.
            world.farm = Farm(world.rules, world.farm.rollout, world.farm.wanted)
            for instance in instances:
                world.farm.adopt(instance, world.now_s)
                if instance.task_id in world.running:
                    world.farm.running(instance.task_id)


@given(steps, st.integers(1, 2))
def test_nothing_is_there_twice_and_it_becomes_what_is_wanted(happening, batch):
    world = World(agents=4, wanted=2, most=4, batch=batch)
    for what, value in happening:
        do(world, what, value)
        world.check()
    world.deaf = False
    for slot in world.slots:
        world.set(slot.name, sessions=0)
    for _ in range(60):
        world.step(5.0)
        world.check()
    farm = world.farm
    assert not farm.rollout.active
    assert len(world.ids()) == farm.wanted == len(farm.instances)
    assert {slot.at for slot in world.open_and_well()} == {each.at for each in farm.instances}
    assert sum(slot.mode is not Mode.FREE for slot in world.slots) == farm.wanted


@given(st.integers(1, 4), st.integers(1, 2), st.integers(4, 8))
def test_a_deployment_never_has_fewer_than_wanted(wanted, batch, agents):
    world = World(agents=agents, wanted=wanted, most=4, batch=batch).steps(8)
    world.farm.rollout.begin("two")
    for _ in range(60):
        world.step()
        world.check()
        assert len(world.open_and_well()) >= wanted
    assert world.farm.rollout.outcome == "done"
    assert {each.version for each in world.farm.instances} == {2}
