"""Map outputs: what reduces are told, and what happens when they are lost."""

from frameworks.mapreduce.core.orders import Failed, Lost
from frameworks.mapreduce.messages import FetchFailed, Maps, WantMaps
from frameworks.mapreduce.work import Failure
from tests.kit.mapreduce_brain import Shell, job_id, options, spec, splits


def attempt(kind: str, task: int, number: int = 0) -> str:
    return f"attempt_1_0001_{kind}_{task:06}_{number}"


def copying(agents: int = 3, maps: int = 3, reduces: int = 2, **conf: str) -> Shell:
    """All maps are done, one per agent in turn, and all reduces run."""
    shell = Shell(options())
    for n in range(agents):
        shell.agent(f"a{n}", cpus=4.1)
    shell.submit(spec(1, reduces, **conf), splits(maps))
    shell.offer()
    assert len(shell.running()) == maps
    shell.finish(*shell.running())
    shell.offer_all()
    assert len(shell.running()) == reduces
    return shell


def ask(shell: Shell, reduce: str, since: int = 0) -> list[Maps]:
    before = len(shell.sent)
    shell.brain.said(shell.agent_of[reduce], WantMaps(reduce, since), shell.now_s)
    shell.drain()
    return [order.message for order in shell.sent[before:] if isinstance(order.message, Maps)]


def report(shell: Shell, reduce: str, *lost: str) -> None:
    message = FetchFailed(reduce, lost, "connection refused")
    shell.brain.said(shell.agent_of[reduce], message, shell.now_s)
    shell.drain()


def waiting_maps(shell: Shell) -> list[int]:
    return [task.number for task in shell.brain.tasks(job_id(), "map", "waiting")]


def test_reduces_are_told_of_their_part_of_each_output():
    shell = copying()
    [maps] = ask(shell, attempt("r", 1), since=1)
    assert (maps.attempt, maps.since) == (attempt("r", 1), 1)
    assert [output.map for output in maps.outputs] == [1, 2]
    first = maps.outputs[0]
    assert first.attempt == attempt("m", 1)
    assert first.url == f"http://{first.agent_id}/{first.attempt}"
    assert (first.segment.offset, first.segment.length, first.segment.crc) == (10, 10, 1)
    assert ask(shell, attempt("r", 1), since=3) == []


def test_a_reduce_that_waits_for_the_last_map_is_told_when_it_is_done():
    shell = Shell(options())
    shell.agent("a0", cpus=4.1)
    shell.submit(spec(mapreduce__job__reduce__slowstart__completedmaps="0"), splits(2))
    shell.offer()
    shell.offer_all()
    assert ask(shell, attempt("r", 0)) == []
    shell.finish(attempt("m", 0))
    assert not shell.sent
    shell.finish(attempt("m", 1))
    [order] = shell.sent
    assert isinstance(order.message, Maps)
    assert [output.map for output in order.message.outputs] == [0, 1]
    assert (order.agent_id, order.worker_id) == ("a0", "worker-1")


def test_who_asks_and_is_not_known_is_killed():
    shell = copying()
    shell.brain.said("a0", WantMaps(attempt("r", 0, 7), 0), shell.now_s)
    orders = shell.brain.take_orders()
    assert [getattr(order, "attempt", None) for order in orders] == [attempt("r", 0, 7)]


def test_outputs_of_a_lost_agent_and_no_others_are_made_again():
    shell = copying()
    maps = [name for name in shell.launched if "_m_" in name]
    gone = shell.agent_of[maps[1]]
    shell.lose_agent(gone)
    assert waiting_maps(shell) == [1]
    shell.offer_all()
    assert [name for name in shell.launched if "_m_" in name] == [*maps, attempt("m", 1, 1)]
    shell.finish(attempt("m", 1, 1))
    reduce = next(name for name in shell.running() if "_r_" in name)
    [again] = ask(shell, reduce, since=3)
    assert [(output.map, output.attempt) for output in again.outputs] == [(1, attempt("m", 1, 1))]
    shell.run()
    view = shell.brain.view(job_id())
    assert (view.state, view.maps.lost_outputs, view.counters["g"]["maps"]) == ("succeeded", 1, 3)


def test_outputs_lost_after_all_reduces_are_done_are_not_made_again():
    shell = copying(reduces=1)
    shell.finish(*shell.running())
    for agent_id in list(shell.agents):
        shell.lose_agent(agent_id)
    shell.agent("fresh")
    shell.offer_all()
    assert not shell.asks
    assert shell.running() == []
    # But if the part turns out not to be there, they are.
    shell.commits.clear()
    shell.brain.commit_failed(job_id(), "reduce", 0, "no such file", shell.now_s)
    shell.drain()
    assert waiting_maps(shell) == [0, 1, 2]
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"


def test_outputs_that_no_reduce_needs_any_more_are_not_made_though_they_were_to_be():
    shell = copying(reduces=1)
    [reduce] = shell.running()
    for agent_id in list(shell.agents):
        if agent_id != shell.agent_of[reduce]:
            shell.lose_agent(agent_id)
    assert waiting_maps(shell)
    shell.finish(reduce)
    shell.offer_all()
    assert shell.running() == []
    assert not shell.asks


def test_maps_that_no_reduce_needs_any_more_are_stopped():
    shell = copying(reduces=1)
    maps = [name for name in shell.launched if "_m_" in name]
    [reduce] = shell.running()
    other = next(name for name in maps if shell.agent_of[name] != shell.agent_of[reduce])
    shell.lose_agent(shell.agent_of[other])
    shell.offer_all()
    [again] = [name for name in shell.running() if name != reduce]
    shell.finish(reduce)
    assert shell.killed == [again]


def test_two_agents_that_cannot_fetch_an_output_are_believed():
    shell = copying()
    lost = attempt("m", 0)
    report(shell, attempt("r", 0), lost)
    assert waiting_maps(shell) == []
    report(shell, attempt("r", 1), lost)
    assert waiting_maps(shell) == [0]
    # Both go on: what replaces it comes as another entry.
    assert len(shell.running()) == 2
    report(shell, attempt("r", 1), lost)
    assert shell.brain.view(job_id()).maps.lost_outputs == 1


def test_the_only_reduce_is_believed_at_once():
    shell = copying(reduces=1)
    report(shell, attempt("r", 0), attempt("m", 2), attempt("m", 99), "nonsense")
    assert waiting_maps(shell) == [2]


def test_a_reduce_that_is_alone_with_its_complaints_is_done_elsewhere():
    shell = copying()
    reduce = attempt("r", 0)
    for _ in range(2):
        report(shell, reduce, attempt("m", 0))
    assert shell.killed == []
    report(shell, reduce, attempt("m", 0))
    assert shell.killed == [reduce]
    assert waiting_maps(shell) == []
    shell.end_killed()
    shell.offer_all()
    again = attempt("r", 0, 1)
    assert shell.agent_of[again] != shell.agent_of[reduce]
    # That is no failure that counts: it was the network, as likely as not.
    [task] = [task for task in shell.brain.tasks(job_id(), "reduce") if task.number == 0]
    assert (task.failures, task.attempts[0].state) == (0, "failed")


def test_the_only_reduce_is_not_believed_twice_about_the_same_map():
    shell = copying(agents=2, reduces=1)
    reduce = attempt("r", 0)
    report(shell, reduce, attempt("m", 0))
    shell.offer_all()
    shell.finish(attempt("m", 0, 1))
    report(shell, reduce, attempt("m", 0, 1))
    assert shell.killed == [reduce]
    assert waiting_maps(shell) == []
    shell.end_killed()
    shell.offer_all()
    # Another one, elsewhere, is believed.
    assert shell.agent_of[attempt("r", 0, 1)] != shell.agent_of[reduce]
    report(shell, attempt("r", 0, 1), attempt("m", 0, 1))
    assert waiting_maps(shell) == [0]


def test_an_output_that_is_never_to_be_had_fails_the_job_in_the_end():
    shell = copying(agents=2, reduces=1, mapreduce__map__maxattempts="2")
    for _ in range(40):
        shell.offer_all()
        shell.end_killed()
        for name in shell.running():
            if "_m_" in name:
                shell.finish(name)
        for name in shell.running():
            kept = [name for name in shell.kept_outputs() if "_m_000000" in name]
            report(shell, name, kept[-1])
        if shell.brain.view(job_id()).state == "stopping":
            break
        shell.tick(1)
    view = shell.brain.view(job_id())
    assert view.failure is not None
    assert view.failure.blame == "fetch"
    assert "task_1_0001_m_000000 could not be fetched" in view.failure.message


def test_a_reduce_that_fails_for_lack_of_an_output_says_so():
    shell = copying(reduces=1)
    failure = Failure(blame="fetch", message="timed out", lost=(attempt("m", 1),))
    shell.end(attempt("r", 0), Failed(failure))
    assert waiting_maps(shell) == [1]
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"


def test_map_outputs_outlive_their_worker():
    shell = copying()
    agent_id = shell.agent_of[attempt("m", 0)]
    [worker_id] = shell.agents[agent_id].workers
    shell.agents[agent_id].workers.clear()
    shell.agents[agent_id].running.clear()
    shell.brain.worker_lost(agent_id, worker_id, "signal 9", shell.now_s)
    shell.drain()
    assert waiting_maps(shell) == []
    shell.run()
    view = shell.brain.view(job_id())
    assert (view.state, view.maps.lost_outputs) == ("succeeded", 0)


def test_a_reduce_is_told_of_nothing_where_a_map_may_fail():
    shell = Shell(options())
    shell.agent("a0", cpus=4.1)
    made = spec(mapreduce__map__failures__maxpercent="50", mapreduce__map__maxattempts="1")
    shell.submit(made, splits(2))
    shell.offer()
    shell.fail(attempt("m", 0))
    shell.finish(attempt("m", 1))
    shell.offer_all()
    [maps] = ask(shell, attempt("r", 0))
    assert [(output.map, output.attempt, output.segment.length) for output in maps.outputs] == [
        (0, "", 0),
        (1, attempt("m", 1), 10),
    ]


# ---- Room ----------------------------------------------------------------------------------


def test_a_reduce_gives_way_to_maps_that_it_waits_for_and_is_not_blamed():
    shell = Shell(options())
    shell.agent("a0", cpus=1.1)
    shell.agent("a1", cpus=1.1)
    shell.submit(spec(reduces=2, mapreduce__reduce__maxattempts="1"), splits(2))
    shell.offer()
    shell.finish(*shell.running())
    shell.offer_all()
    assert len(shell.running()) == 2
    report(shell, attempt("r", 0), attempt("m", 0))
    report(shell, attempt("r", 1), attempt("m", 0))
    assert waiting_maps(shell) == [0]
    shell.tick()
    shell.tick(6.9)
    shell.offer_all()
    assert shell.killed == []
    shell.tick(0.1)
    assert len(shell.killed) == 1
    shell.end_killed()
    shell.offer_all()
    assert attempt("m", 0, 1) in shell.running()
    assert [task.failures for task in shell.brain.tasks(job_id(), "reduce")] == [0, 0]
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"


def test_no_reduce_gives_way_while_a_map_runs():
    shell = copying(agents=1, maps=3, reduces=3)
    report(shell, attempt("r", 0), attempt("m", 0), attempt("m", 1))
    shell.offer_all()
    assert len(shell.running()) == 4
    assert len(waiting_maps(shell)) == 1
    for _ in range(30):
        shell.tick(1)
    assert shell.killed == []


def test_as_many_reduces_give_way_as_a_large_map_needs():
    shell = Shell(options())
    shell.agent("a0", cpus=4.1, mem=4 * 512 + 64)
    memory = {"mapreduce__map__memory__mb": "1024", "mapreduce__reduce__memory__mb": "512"}
    shell.submit(spec(1, 4, **memory), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    shell.offer_all()
    assert len(shell.running()) == 4
    report(shell, attempt("r", 0), attempt("m", 0))
    shell.tick()
    shell.tick(10)
    assert len(shell.killed) == 2


def test_no_reduce_starts_early_while_a_map_waits_for_a_better_place():
    shell = Shell(options())
    shell.agent("a0", cpus=4.1)
    early = {"mapreduce__job__reduce__slowstart__completedmaps": "0"}
    shell.submit(spec(1, 2, **early), splits(2, [("a0",), ("elsewhere",)]))
    shell.offer()
    assert shell.running() == [attempt("m", 0)]
    shell.sleep(1)
    shell.offer()
    assert attempt("m", 1) in shell.running()
    # Now that all maps run there is room for reduces.
    assert attempt("r", 0) in shell.running()


def test_two_jobs_with_early_reduces_do_not_hold_each_other_up():
    shell = Shell(options())
    shell.agent("a0", cpus=2.1)
    early = {"mapreduce__job__reduce__slowstart__completedmaps": "0"}
    for number in (1, 2):
        shell.submit(spec(number, 3, **early), splits(4))
    shell.run()
    assert [view.state for view in shell.brain.views()] == ["succeeded", "succeeded"]


def test_maps_of_one_job_leave_room_for_another_one_and_hold_none_for_their_outputs():
    shell = Shell(options())
    shell.agent("a0", cpus=2.1)
    shell.submit(spec(1, 0), splits(6))
    shell.submit(spec(2, 2), splits(2))
    shell.run()
    assert [view.state for view in shell.brain.views()] == ["succeeded", "succeeded"]


def test_an_attempt_that_was_lost_and_comes_back_is_killed():
    shell = copying()
    reduce = attempt("r", 0)
    agent = shell.agents[shell.agent_of[reduce]]
    shell.brain.ended(reduce, Lost("unreachable"), shell.now_s)
    shell.drain()
    shell.started(reduce)
    assert shell.killed == [reduce]
    assert reduce in agent.running
