"""An agent that may be killed between any two steps, before or after it has written them.

The machine is real in the sense that containers keep running, end, and are asked about
after each restart, as the launcher does with the warden; the master repeats nothing but
what it is asked for.  What must hold: no task is started twice, none is forgotten, and
each has one end that is true.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from agent.core.effects import ForgetContainer, KillContainer, LaunchContainer, SendMaster
from agent.core.journal import Kind
from agent.core.records import Exit, State
from mesos_py.states import is_terminal, short_name
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, AgentWorld, command

Call = agent_pb2.Call


@dataclass
class Container:
    """The truth about it, which outlives the agent."""

    task_id: str
    pid: int
    # Whether the agent has been told that it was started, in this run or an earlier one.
    status: int | None = None
    killed: bool = False


class Machine(RuleBasedStateMachine):
    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.world = AgentWorld()
        self.containers: dict[str, Container] = {}
        self.forgotten: set[str] = set()
        # What was told of each task: uuid and state, each update once, in order.
        self.told: dict[str, dict[bytes, State]] = {}
        self.acknowledged: set[bytes] = set()
        self.count = 0
        self.carry_out()

    # ---- The effects of a step -------------------------------------------------------

    def carry_out(self) -> None:
        for effect in self.world.collect():
            if isinstance(effect, LaunchContainer):
                spec = effect.spec
                assert spec.container_id not in self.containers
                assert all(each.task_id != spec.executor_id for each in self.containers.values())
                self.count += 1
                self.containers[spec.container_id] = Container(spec.executor_id, self.count)
            elif isinstance(effect, KillContainer):
                container = self.containers.get(effect.container_id)
                if container is not None and container.status is None:
                    container.status, container.killed = int(effect.signal), True
            elif isinstance(effect, ForgetContainer):
                self.forgotten.add(effect.container_id)
            elif isinstance(effect, SendMaster) and effect.call.type == Call.UPDATE:
                status = effect.call.update.status
                updates = self.told.setdefault(status.task_id.value, {})
                assert updates.get(status.uuid, status.state) == status.state
                updates[status.uuid] = status.state

    def step(self, crash: str | None) -> None:
        """The core has done something.  `crash`: before or after it is written down."""
        if crash is None:
            self.carry_out()
            return
        if crash == "after":
            self.world.collect()  # written, and nothing of it carried out
        self.restart()

    def restart(self) -> None:
        world = self.world
        world.restart()
        now = world.clock.now()
        ours = {saved.container_id for saved in world.core.saved_containers()}
        for container_id, container in self.containers.items():
            if container_id not in ours:
                # The warden has it, or how it ended, and nobody knows it any more.
                assert container.status is not None
                self.forgotten.add(container_id)
        for saved in world.core.saved_containers():
            found = self.containers.get(saved.container_id)
            if found is None:
                world.core.on_container_failed(saved.container_id, "never started", now)
            elif found.status is not None:
                assert saved.container_id not in self.forgotten
                world.core.on_container_ended(saved.container_id, Exit(found.status), now)
            elif saved.pid is None:
                world.core.on_container_started(saved.container_id, found.pid, now)
            else:
                assert saved.pid == found.pid
        registered = agent_pb2.Event.Registered(agent_id=pb.AgentID(value="A1"))
        event = agent_pb2.Event(type=agent_pb2.Event.REGISTERED, registered=registered)
        world.core.on_master_event(event, now)
        self.carry_out()

    # ---- What happens -----------------------------------------------------------------

    crashes = st.sampled_from([None, None, None, "before", "after"])

    @rule(target=tasks, crash=crashes)
    def run(self, crash: str | None) -> str:
        self.count += 1
        task_id = f"t{self.count}"
        order = agent_pb2.Event.RunTasks(
            framework_info=self.world.framework, tasks=[command(task_id, grace_s=30)]
        )
        event = agent_pb2.Event(type=agent_pb2.Event.RUN_TASKS, run_tasks=order)
        self.world.core.on_master_event(event, self.world.clock.now())
        self.step(crash)
        return task_id

    @rule(task_id=tasks, crash=crashes)
    def starts(self, task_id: str, crash: str | None) -> None:
        for container_id, container in self.containers.items():
            executor = self.world.core.state.containers.get(container_id)
            if container.task_id == task_id and executor is not None and executor.pid is None:
                now = self.world.clock.now()
                self.world.core.on_container_started(container_id, container.pid, now)
                self.step(crash)
                return

    @rule(task_id=tasks, status=st.sampled_from([0, 3 << 8, 11]), crash=crashes, seen=st.booleans())
    def ends(self, task_id: str, status: int, crash: str | None, seen: bool) -> None:
        """`seen`: the agent hears of it now, and not only from the warden later."""
        for container_id, container in self.containers.items():
            if container.task_id == task_id and container_id in self.world.core.state.containers:
                if container.status is None:
                    container.status = status
                if seen:
                    now = self.world.clock.now()
                    exit = Exit(container.status)
                    self.world.core.on_container_ended(container_id, exit, now)
                    self.step(crash)
                return

    @rule(task_id=tasks, crash=crashes)
    def kill(self, task_id: str, crash: str | None) -> None:
        if (FRAMEWORK, task_id) not in self.world.core.state.tasks:
            return  # the order to run it was lost, or it is over
        order = agent_pb2.Event.KillTask(
            framework_id=pb.FrameworkID(value=FRAMEWORK), task_id=pb.TaskID(value=task_id)
        )
        event = agent_pb2.Event(type=agent_pb2.Event.KILL_TASK, kill_task=order)
        self.world.core.on_master_event(event, self.world.clock.now())
        self.step(crash)

    @rule(task_id=tasks, crash=crashes)
    def acknowledge(self, task_id: str, crash: str | None) -> None:
        waiting = [uuid for uuid in self.told.get(task_id, {}) if uuid not in self.acknowledged]
        if waiting:
            self._acknowledge(task_id, waiting[0])
            self.step(crash)

    def _acknowledge(self, task_id: str, uuid: bytes) -> None:
        order = agent_pb2.Event.Acknowledge(
            framework_id=pb.FrameworkID(value=FRAMEWORK),
            task_id=pb.TaskID(value=task_id),
            uuid=uuid,
        )
        event = agent_pb2.Event(type=agent_pb2.Event.ACKNOWLEDGE, acknowledge=order)
        self.world.core.on_master_event(event, self.world.clock.now())
        self.acknowledged.add(uuid)

    # ---- What must hold ----------------------------------------------------------------

    @invariant()
    def ends_are_single_and_last(self) -> None:
        for task_id, updates in self.told.items():
            states = list(updates.values())
            ends = [state for state in states if is_terminal(state)]
            assert len(ends) <= 1, (task_id, [short_name(state) for state in states])
            assert not ends or is_terminal(states[-1])

    def teardown(self) -> None:
        """Everything ends and is acknowledged: nothing may be left, each end be true."""
        self.restart()
        for container_id in list(self.world.core.state.containers):
            container = self.containers[container_id]
            container.status = container.status if container.status is not None else 0
            now = self.world.clock.now()
            self.world.core.on_container_ended(container_id, Exit(container.status), now)
        self.carry_out()
        for _ in range(5):
            for task_id, updates in list(self.told.items()):
                for uuid in list(updates):
                    self._acknowledge(task_id, uuid)
            self.carry_out()
        left = {kind for kind, _ in self.world.records}
        assert left <= {Kind.AGENT, Kind.FRAMEWORK}, self.world.records.keys()
        for container_id, container in self.containers.items():
            states = list(self.told[container.task_id].values())
            assert is_terminal(states[-1]), (container, states)
            assert container_id in self.forgotten
            if not container.killed:
                expected = pb.TASK_FINISHED if container.status == 0 else pb.TASK_FAILED
                assert states[-1] in (expected, pb.TASK_KILLED)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=settings().max_examples * 3 // 2,  # 150 but in the fast profile
    stateful_step_count=min(40, settings().stateful_step_count),
    deadline=None,
)
