"""Random runs of the agent's core: whatever happens in whatever order, every task that
was ordered ends exactly once, in order, not before its processes are gone, and in the
end nothing is left."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
)

from agent.core.effects import (
    KillContainer,
    LaunchContainer,
    SendExecutor,
    SendMaster,
    Signal,
    StartProbe,
    StopProbe,
)
from agent.core.health import Outcome
from mesos_py.states import is_terminal
from mesos_py.tasks import health_tcp
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    AgentWorld,
    command,
    executor_info,
    for_executor,
    framework_info,
    status,
)

# "d" is the agent's own for groups.
EXECUTORS = st.sampled_from(["x", "y", "d"])


def described(executor_id: str) -> pb.ExecutorInfo:
    info = executor_info(executor_id)
    if executor_id == "d":
        info.type = pb.ExecutorInfo.DEFAULT
        info.ClearField("command")
    return info


class AgentRuns(RuleBasedStateMachine):
    tasks = Bundle("tasks")
    executors = Bundle("executors")

    def __init__(self) -> None:
        super().__init__()
        self.world = AgentWorld(executor_registration_timeout_s=30, default_executor=("own",))
        self.world.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
        self.connected = True
        self.numbers = iter(range(1, 1_000_000))
        # Containers by id: "asked", "running"; gone ones are not here.
        self.containers: dict[str, str] = {}
        self.launched: list[str] = []
        self.owner: dict[str, str] = {}
        self.ordered: set[str] = set()
        # Per task: uuids in the order of their first sending, and what was acknowledged.
        self.sent: dict[str, list[bytes]] = {}
        self.state_of: dict[bytes, pb.TaskState.ValueType] = {}
        self.acknowledged: set[bytes] = set()
        # What custom executors hold, by executor: task ids.
        self.held: dict[str, set[str]] = {}
        self.subscribed: set[str] = set()
        # Probes in flight: their numbers by container and kind.
        self.probes: dict[tuple[str, str], int] = {}

    # ---- Helpers ---------------------------------------------------------------------

    def look(self) -> None:
        """Take the effects in as a master, executors and containers would."""
        self.world.collect()
        effects, self.world.effects = self.world.effects, []
        for effect in effects:
            if isinstance(effect, LaunchContainer):
                spec = effect.spec
                assert spec.container_id not in self.containers
                self.containers[spec.container_id] = "asked"
                self.owner[spec.container_id] = spec.executor_id
                self.launched.append(spec.executor_id)
            elif isinstance(effect, KillContainer):
                self._killed(effect)
            elif isinstance(effect, SendMaster) and effect.call.type == agent_pb2.Call.UPDATE:
                self._told(effect.call.update)
            elif isinstance(effect, SendExecutor):
                self._executor_told(effect.key[1], effect.event)
            elif isinstance(effect, StartProbe):
                key = (effect.container_id, effect.kind)
                assert key not in self.probes, "a second probe beside the first"
                assert self.containers[effect.container_id] == "running"
                self.probes[key] = effect.number
            elif isinstance(effect, StopProbe):
                del self.probes[effect.container_id, effect.kind]

    def _killed(self, effect: KillContainer) -> None:
        assert effect.container_id in self.containers, "a signal for what is gone"
        if effect.signal is Signal.KILL and self.containers[effect.container_id] == "running":
            self.containers[effect.container_id] = "dying"

    def _told(self, update: agent_pb2.Call.Update) -> None:
        assert self.connected
        task_id, uuid = update.status.task_id.value, update.status.uuid
        sent = self.sent.setdefault(task_id, [])
        if uuid not in self.state_of:
            # Only the head is in flight: all before it were acknowledged.
            assert set(sent) <= self.acknowledged
            assert not any(is_terminal(self.state_of[each]) for each in sent)
            sent.append(uuid)
            self.state_of[uuid] = update.status.state
        if is_terminal(update.latest_state):
            running = {self.owner[each] for each in self.containers}
            assert task_id not in running, "an end before its processes are gone"

    def _executor_told(self, executor_id: str, event: executor_pb2.Event) -> None:
        if event.type == executor_pb2.Event.LAUNCH and executor_id in self.subscribed:
            self.held.setdefault(executor_id, set()).add(event.launch.task.task_id.value)
        if event.type == executor_pb2.Event.LAUNCH_GROUP and executor_id in self.subscribed:
            group = event.launch_group.task_group.tasks
            self.held.setdefault(executor_id, set()).update(each.task_id.value for each in group)

    # ---- What may happen ----------------------------------------------------------------

    @rule(target=tasks, grace_s=st.sampled_from([None, 0, 2]))
    def run_command(self, grace_s):
        task_id = f"t{next(self.numbers)}"
        if self.connected:
            self.ordered.add(task_id)
            self.world.run(command(task_id, grace_s=grace_s))
            self.look()
        return task_id

    @rule(target=tasks, failures=st.sampled_from([1, 3]), delay_s=st.sampled_from([0, 5]))
    def run_checked(self, failures, delay_s):
        task_id = f"t{next(self.numbers)}"
        if self.connected:
            self.ordered.add(task_id)
            health = health_tcp(80, delay_s=delay_s, interval_s=2, timeout_s=4, failures=failures)
            check = pb.CheckInfo(type=pb.CheckInfo.TCP, tcp=pb.CheckInfo.Tcp(port=81))
            self.world.run(command(task_id, health_check=health, check=check))
            self.look()
        return task_id

    @rule(data=st.data(), good=st.sampled_from([True, False, None]), late=st.booleans())
    def probe_ends(self, data, good, late):
        if self.probes:
            (container, kind), number = data.draw(st.sampled_from(sorted(self.probes.items())))
            if not late:
                del self.probes[container, kind]
            outcome = Outcome(good, None if good is None else int(good), "why")
            now = self.world.clock.now()
            self.world.core.on_probe_ended(container, kind, number - late, outcome, now)
            self.look()

    @rule(seconds=st.sampled_from([2, 100]))
    def agent_stands_still(self, seconds):
        self.world.clock.advance(seconds)
        self.world.core.on_time(self.world.clock.now())
        self.look()

    @rule(target=tasks, executor=st.sampled_from(["x", "y"]))
    def run_in_executor(self, executor):
        task_id = f"t{next(self.numbers)}"
        if self.connected:
            self.ordered.add(task_id)
            self.world.run(for_executor(task_id, executor_info(executor)))
            self.look()
        return task_id

    @rule(target=tasks, executor=EXECUTORS, size=st.sampled_from([1, 2, 3]), checked=st.booleans())
    def run_group(self, executor: str, size: int, checked: bool) -> MultipleResults[str]:
        ids = [f"t{next(self.numbers)}" for _ in range(size)]
        if self.connected:
            self.ordered.update(ids)
            health = health_tcp(80, delay_s=0, interval_s=2, failures=1) if checked else None
            infos = [for_executor(each, described(executor), health_check=health) for each in ids]
            self.world.run_group(*infos, new=[executor])
            self.look()
        return multiple(*ids)

    @rule(task_id=tasks)
    def run_again(self, task_id):
        """The same order twice."""
        if self.connected and task_id in self.ordered and not self._forgotten(task_id):
            before = list(self.launched)
            self.world.run(command(task_id))
            self.look()
            assert self.launched == before

    def _forgotten(self, task_id: str) -> bool:
        return any(
            is_terminal(self.state_of[uuid]) and uuid in self.acknowledged
            for uuid in self.sent.get(task_id, ())
        )

    @rule(task_id=tasks, grace_s=st.sampled_from([None, 0, 1, 10]))
    def kill(self, task_id, grace_s):
        # A master orders no kill of a task whose acknowledged end it has passed on.
        if self.connected and task_id in self.ordered and not self._forgotten(task_id):
            self.world.kill(task_id, grace_s)
            self.look()

    @rule()
    def scheduler_subscribes_anew(self):
        if self.connected:
            effects = self.world.scheduler_is_new()
            sent = [
                each.call.update.status.uuid for each in effects if isinstance(each, SendMaster)
            ]
            self.look()
            updates = self.world.core.state.updates
            heads = [head.uuid for key in updates if (head := updates.head(key)) is not None]
            assert sent == heads

    @rule(executor=EXECUTORS)
    def shut_down_executor(self, executor):
        if self.connected:
            self.world.shut_down_executor(executor)
            self.look()

    @rule(data=st.data())
    def container_starts(self, data):
        if asked := [cid for cid, state in self.containers.items() if state == "asked"]:
            cid = data.draw(st.sampled_from(asked))
            self.containers[cid] = "running"
            self.world.core.on_container_started(cid, 10, self.world.clock.now())
            self.look()

    @rule(data=st.data())
    def container_fails(self, data):
        if asked := [cid for cid, state in self.containers.items() if state == "asked"]:
            cid = data.draw(st.sampled_from(asked))
            self._gone(cid)
            self.world.core.on_container_failed(cid, "why", self.world.clock.now())
            self.look()

    @rule(data=st.data(), code=st.sampled_from([0, 9, 256, None]))
    def container_ends(self, data, code):
        if up := [cid for cid, state in self.containers.items() if state != "asked"]:
            self._end(data.draw(st.sampled_from(up)), code)

    def _end(self, cid: str, code: int | None) -> None:
        from agent.core.records import Exit

        self._gone(cid)
        self.world.core.on_container_ended(cid, Exit(code, "lost"), self.world.clock.now())
        self.look()

    def _gone(self, cid: str) -> None:
        del self.containers[cid]
        executor = self.owner[cid]
        self.subscribed.discard(executor)
        self.held.pop(executor, None)

    @rule(executor=EXECUTORS)
    def executor_subscribes(self, executor):
        running = [cid for cid, state in self.containers.items() if state == "running"]
        if any(self.owner[cid] == executor for cid in running):
            self.subscribed.add(executor)
            unacknowledged = [for_executor(each) for each in self.held.get(executor, ())]
            assert self.world.subscribe(executor, unacknowledged_tasks=unacknowledged) is None
            self.look()

    @rule(executor=EXECUTORS)
    def executor_loses_its_stream(self, executor):
        if executor in self.subscribed:
            self.subscribed.discard(executor)
            self.world.core.on_executor_disconnected(("F1", executor), self.world.clock.now())
            self.look()

    @rule(
        data=st.data(),
        executor=EXECUTORS,
        state=st.sampled_from([pb.TASK_RUNNING, pb.TASK_FINISHED, pb.TASK_FAILED]),
        twice=st.booleans(),
    )
    def executor_reports(self, data, executor, state, twice):
        if executor in self.subscribed and (held := sorted(self.held.get(executor, ()))):
            task_id = data.draw(st.sampled_from(held))
            uuid = (10**9 + next(self.numbers)).to_bytes(16, "big")
            for _ in range(1 + twice):
                assert self.world.report(executor, status(task_id, state, uuid)) is None
            self.look()

    @rule(data=st.data())
    def acknowledge(self, data):
        """Whatever was sent, in any order, also again."""
        if self.connected and self.state_of:
            task_id = data.draw(st.sampled_from(sorted(self.sent)))
            uuid = data.draw(st.sampled_from(self.sent[task_id]))
            self._acknowledge(task_id, uuid)

    def _acknowledge(self, task_id: str, uuid: bytes) -> None:
        self.acknowledged.add(uuid)
        self.world.acknowledge(task_id, uuid)
        self.look()

    @rule(seconds=st.sampled_from([0.5, 3, 15, 60]))
    def time_passes(self, seconds):
        self.world.advance(seconds)
        self.look()

    @rule()
    def link_breaks(self):
        self.connected = False
        self.world.core.on_disconnected()
        self.look()

    @rule()
    def registers_again(self):
        call = self.world.core.register_call("v", 1).register
        named = {task.task_id.value for task in call.tasks}
        live = {
            task_id
            for task_id in self.ordered
            if not any(is_terminal(self.state_of[uuid]) for uuid in self.sent.get(task_id, ()))
        }
        self.connected = True
        self.world.register()
        self.look()
        # What is not named is answered for by itself: its end is on the way.
        for task_id in live - named:
            assert ("F1", task_id) in self.world.core.state.updates

    # ---- What must hold ------------------------------------------------------------------

    @invariant()
    def every_container_is_known_and_no_other(self):
        assert set(self.world.core.state.containers) == set(self.containers)

    @invariant()
    def no_task_is_lost(self):
        state = self.world.core.state
        for task_id in self.ordered:
            key = ("F1", task_id)
            assert key in state.tasks or key in state.updates or self._forgotten(task_id), task_id

    @invariant()
    def a_group_is_with_its_executor_or_not(self):
        delivered: dict[str, set[bool]] = {}
        for executor in self.world.core.state.executors.values():
            for task in executor.tasks.values():
                if task.group:
                    delivered.setdefault(task.group, set()).add(task.delivered)
        assert all(len(each) == 1 for each in delivered.values())

    @invariant()
    def only_what_runs_is_probed(self):
        assert {container for container, _ in self.probes} <= set(self.containers)

    def teardown(self):
        """Let everything end: nothing may be left."""
        if not self.connected:
            self.registers_again()
        self.world.core.on_stop(self.world.clock.now())
        self.look()
        while self.containers:
            cid = next(iter(self.containers))
            if self.containers[cid] == "asked":
                self._gone(cid)
                self.world.core.on_container_failed(cid, "stopped", self.world.clock.now())
                self.look()
            else:
                self._end(cid, 9)
        for _ in range(50):
            pending = [
                (task_id, uuid)
                for task_id, sent in self.sent.items()
                for uuid in sent
                if uuid not in self.acknowledged
            ]
            for task_id, uuid in pending:
                self._acknowledge(task_id, uuid)
            # Acknowledged out of turn while another was in flight: it is sent again.
            self.world.advance(700)
            self.look()
            for task_id in list(self.sent):
                head = self.world.core.state.updates.head(("F1", task_id))
                if head is not None:
                    self._acknowledge(task_id, head.uuid)
        state = self.world.core.state
        assert not state.tasks
        assert not state.containers
        assert not state.executors
        assert not len(state.updates)
        assert state.stopped
        for task_id in self.ordered:
            ends = [uuid for uuid in self.sent[task_id] if is_terminal(self.state_of[uuid])]
            assert len(ends) == 1, task_id
        assert self.world.core.next_deadline_s() is None


TestAgentRuns = AgentRuns.TestCase
