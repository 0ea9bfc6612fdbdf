"""The wrapper of a batch server under any order of events: what is never done, and that in the
end all that waits runs and all that is idle goes."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from frameworks.torque.cluster import size_in
from frameworks.torque.core.records import Size
from mesos_py import TASK_FAILED, TASK_KILLED, TASK_LOST, TASK_RUNNING, TASK_UNREACHABLE, Resources
from tests.kit.torque_fakes import Scene

SHARE = Resources.of(cpus=6, mem=3000)
MOST = 3
AGENTS = st.sampled_from(["a", "b", "c"])
PICK = st.integers(0, 20)


class Play:
    """Tasks run from their launch until they are told to have ended."""

    def __init__(self, directory: Path) -> None:
        self.scene = Scene(directory, max_nodes=MOST)
        self.scene.share = SHARE
        self.scene.restart()
        self.running: dict[str, str] = {}
        self.ever: set[str] = set()
        self.jobs = 0
        self.on: dict[str, str] = {}

    @property
    def batch(self):
        return self.scene.batch

    def pick(self, names, number: int) -> str | None:
        found = sorted(names)
        return found[number % len(found)] if found else None

    # ---- Rounds -------------------------------------------------------------------

    def round(self, after_s, offers=(), smoothly=False):
        """offers: of so many cpus, if they are wanted.  smoothly: what is told is done."""
        for agent, cpus in offers if self.scene.cluster.wants else ():
            self.scene.offer(agent, cpus=cpus, mem=1000)
        launched, killed = len(self.scene.cluster.launched), len(self.scene.cluster.killed)
        before, lost = set(self.scene.book.nodes), len(self.batch.lost)
        self.scene.round(after_s)
        for name in self.batch.lost[lost:]:
            assert name not in before
        for name in self.scene.cluster.killed[killed:]:
            node = self.batch.known.get(name)
            assert node is None or node.state != "up"
            assert node is None or node.state == "down" or not node.busy
        for task in self.scene.cluster.launched[launched:]:
            name = task.task_id.value
            assert name not in self.ever
            self.ever.add(name)
            self.running[name] = task.agent_id.value
        for name in list(self.running) if smoothly else ():
            if name in self.scene.cluster.killed:
                self.over(name, TASK_KILLED)
            elif name not in self.batch.known:
                self.batch.comes(name)

    def wrapper_dies(self, number):
        """kill -9 of the wrapper: the next one is told what runs."""
        self.scene.restart()
        for name in list(self.running):
            self.scene.status(name, TASK_RUNNING)

    # ---- Jobs and offers ------------------------------------------------------------

    def submit(self, number):
        """Some are larger than what is guaranteed."""
        cpus, nodes = (1, 1, 2, 3, 7)[number % 5], 2 if number % 7 == 0 else 1
        self.jobs += 1
        self.batch.submit(str(self.jobs), cpus=cpus, nodes=nodes)

    def runs(self, number):
        waiting = [job for job in self.batch.queue if job.state == "waiting" and job.nodes == 1]
        for job in waiting:
            fit = [
                node.name
                for node in self.batch.known.values()
                if node.state == "up" and not node.busy and node.free_cpus >= job.cpus
            ]
            if name := self.pick(fit, number):
                self.batch.runs(job.job_id, name)
                self.on[name] = job.job_id
                return

    def ends(self, number):
        if name := self.pick(self.on, number):
            self.batch.ends(self.on.pop(name), name)

    # ---- Nodes ----------------------------------------------------------------------

    def comes(self, number):
        if name := self.pick(self.running.keys() - self.batch.known.keys(), number):
            self.batch.comes(name)

    def dies(self, number):
        if name := self.pick(self.running, number):
            self.over(name, (TASK_FAILED, TASK_LOST, TASK_UNREACHABLE)[number % 3])

    def is_killed(self, number):
        if name := self.pick(set(self.scene.cluster.killed) & self.running.keys(), number):
            self.over(name, TASK_KILLED)

    def is_cut_off_or_back(self, number):
        """Only what runs comes back."""
        there = [
            node.name
            for node in self.batch.known.values()
            if node.state in ("up", "down") and node.name in self.running
        ]
        if name := self.pick(there, number):
            self.batch.change(
                name, state="up" if self.batch.known[name].state == "down" else "down"
            )

    def is_drained_by_hand(self, number):
        there = [node.name for node in self.batch.known.values() if node.state == "up"]
        if name := self.pick(there, number):
            self.batch.change(name, state="draining")

    def server_dies(self, number):
        """Now and then it does not come back at once."""
        self.batch.is_alive = False
        self.batch.broken = "no answer" if number % 2 else ""

    def server_answers(self, number):
        self.batch.broken = ""

    def over(self, name: str, state: int) -> None:
        del self.running[name]
        if job_id := self.on.pop(name, None):
            self.batch.queue = [job for job in self.batch.queue if job.job_id != job_id]
        if name in self.batch.known:
            self.batch.change(name, state="down", busy=False)
        self.scene.status(name, state)

    # ---- What always holds --------------------------------------------------------------

    def nothing_is_beyond_the_share(self):
        entries = self.scene.book.nodes.values()
        overhead = Size(0, self.batch.overhead_mb)
        taken = sum((entry.size + overhead for entry in entries), start=Size(0, 0))
        assert size_in(SHARE).holds(taken)
        assert len(entries) <= MOST

    def what_runs_is_known(self):
        """What is not in the book any more was told to end."""
        assert self.running.keys() <= self.scene.book.nodes.keys() | set(self.scene.cluster.killed)

    def everything_goes_and_comes_again(self):
        self.batch.broken, self.batch.is_alive, self.batch.queue = "", True, []
        while self.on:
            self.ends(0)
        self._until(lambda: not self.scene.book.nodes and not self.batch.known)
        assert not self.scene.cluster.wants
        self.submit(1)
        self._until(lambda: self.batch.known)

    def _until(self, done) -> None:
        """All that is told is done; in so many rounds it has to be."""
        for _ in range(60):
            self.round(5.0, offers=[("a", 4)], smoothly=True)
            for node in list(self.batch.known.values()):
                if node.state == "down":
                    self.batch.change(node.name, state="up")
            if done():
                return
        raise AssertionError(f"{self.scene.book.nodes} {self.batch.known} {self.running}")


ACTIONS = st.sampled_from(
    [
        *(
            Play.submit,
            Play.submit,
            Play.submit,
            Play.runs,
            Play.runs,
            Play.runs,
            Play.ends,
            Play.ends,
        ),
        *(Play.comes, Play.dies, Play.is_killed, Play.is_cut_off_or_back, Play.is_drained_by_hand),
        *(Play.wrapper_dies, Play.server_dies, Play.server_answers),
    ]
)
STEPS = st.tuples(
    st.lists(st.tuples(ACTIONS, PICK), max_size=2),
    st.sampled_from([0.2, 1.0, 1.0, 11.0, 21.0, 130.0]),
    st.lists(st.tuples(AGENTS, st.integers(1, 4)), max_size=3),
    st.sampled_from([True, True, False]),
)


@given(st.lists(STEPS, min_size=40, max_size=40))
def test_any_order_of_events(steps):
    with tempfile.TemporaryDirectory() as directory:
        play = Play(Path(directory))
        for actions, after_s, offers, smoothly in steps:
            for act, number in actions:
                act(play, number)
                play.what_runs_is_known()
            play.round(after_s, offers, smoothly)
            play.nothing_is_beyond_the_share()
            play.what_runs_is_known()
        play.everything_goes_and_comes_again()
