"""The account: every amount is free, offered or allocated, whatever is asked of it."""

import random

import pytest

from master.core.ledger import Holder, Ledger, require_fit
from mesos_py.errors import (
    Conflict,
    InsufficientResources,
    InternalError,
    InvalidResources,
    MesosPyError,
    NotFound,
)
from mesos_py.resources import EMPTY, Resources

WHOLE = Resources.parse("cpus:4;mem:1024;ports:[31000-31009]")
PART = Resources.parse("cpus:1.5;mem:100;ports:[31000-31001]")


def task(name="t1", framework="f", role="*"):
    return Holder(framework, role, "task", name)


@pytest.fixture
def ledger():
    made = Ledger()
    made.put_agent("a", WHOLE, {})
    yield made
    made.check()


def test_a_new_agent_is_free(ledger):
    assert ledger.has("a")
    assert ledger.free("a") == ledger.total("a") == WHOLE
    assert ledger.offered("a") == ledger.allocated("a") == EMPTY
    assert ledger.cluster_total() == {"cpus": 4000, "mem": 1_024_000}
    assert ledger.version("a") == 0


def test_unknown_agents_have_nothing(ledger):
    assert not ledger.has("b")
    assert ledger.free("b") == ledger.total("b") == EMPTY
    assert ledger.offered("b") == ledger.allocated("b") == EMPTY
    assert ledger.allocation("b", task()) is None
    assert ledger.allocations("b") == {}
    assert ledger.release("b", task()) == EMPTY


def test_unknown_frameworks_and_roles_hold_nothing(ledger):
    assert ledger.held("f", "*") == {}
    assert ledger.held_by_role("*") == {}


def test_an_offer_counts_towards_its_framework_until_it_is_withdrawn(ledger):
    ledger.offer("a", "o1", "f", "web", PART)
    assert ledger.free("a") == WHOLE - PART
    assert ledger.offered("a") == PART
    assert ledger.held("f", "web") == ledger.held_by_role("web") == {"cpus": 1500, "mem": 100_000}
    assert ledger.withdraw("a", "o1") == PART
    assert ledger.free("a") == WHOLE
    assert ledger.held("f", "web") == ledger.held_by_role("web") == {}


def test_ports_alone_are_offered_but_count_towards_no_share(ledger):
    ports = Resources.parse("ports:[31005-31006]")
    ledger.offer("a", "o1", "f", "web", ports)
    assert ledger.held("f", "web") == {}
    assert ledger.withdraw("a", "o1") == ports


def test_two_frameworks_of_one_role_are_summed_up_by_the_role(ledger):
    ledger.offer("a", "o1", "f", "web", Resources.of(cpus=1))
    ledger.offer("a", "o2", "g", "web", Resources.of(cpus=0.5))
    ledger.offer("a", "o3", "f", "db", Resources.of(cpus=0.25))
    assert ledger.held_by_role("web") == {"cpus": 1500}
    assert ledger.held("f", "web") == {"cpus": 1000}
    ledger.withdraw("a", "o1")
    assert ledger.held_by_role("web") == {"cpus": 500}


def test_what_is_not_free_cannot_be_offered(ledger):
    ledger.offer("a", "o1", "f", "*", Resources.of(cpus=3))
    with pytest.raises(InsufficientResources, match="cpus: 2 wanted, 1 there"):
        ledger.offer("a", "o2", "g", "*", Resources.of(cpus=2))
    assert ledger.free("a").scalar("cpus") == 1


def test_an_offer_id_is_used_once(ledger):
    ledger.offer("a", "o1", "f", "*", PART)
    with pytest.raises(InternalError):
        ledger.offer("a", "o1", "f", "*", Resources.of(cpus=1))


def test_an_offer_is_withdrawn_once(ledger):
    ledger.offer("a", "o1", "f", "*", PART)
    ledger.withdraw("a", "o1")
    with pytest.raises(NotFound):
        ledger.withdraw("a", "o1")


@pytest.mark.parametrize(
    "step",
    [
        lambda ledger: ledger.offer("b", "o1", "f", "*", PART),
        lambda ledger: ledger.withdraw("b", "o1"),
        lambda ledger: ledger.claim("b", []),
        lambda ledger: ledger.version("b"),
        lambda ledger: ledger.remove_agent("b"),
    ],
)
def test_nothing_is_done_with_an_agent_that_is_not_there(ledger, step):
    with pytest.raises(NotFound, match="agent 'b'"):
        step(ledger)


# ---- Claims ----------------------------------------------------------


def test_a_claim_takes_what_the_offers_hold_and_frees_the_rest(ledger):
    ledger.offer("a", "o1", "f", "*", Resources.of(cpus=1))
    ledger.offer("a", "o2", "f", "*", Resources.of(cpus=2, mem=500))
    rest = ledger.claim("a", [(task(), Resources.of(cpus=2.5, mem=100))], ["o1", "o2"])
    assert rest == Resources.of(cpus=0.5, mem=400)
    assert ledger.offered("a") == EMPTY
    assert (
        ledger.allocated("a") == ledger.allocation("a", task()) == Resources.of(cpus=2.5, mem=100)
    )
    assert ledger.allocations("a") == {task(): Resources.of(cpus=2.5, mem=100)}
    assert ledger.held("f", "*") == {"cpus": 2500, "mem": 100_000}


def test_a_claim_on_offers_does_not_reach_for_what_is_free_beside_them(ledger):
    ledger.offer("a", "o1", "f", "*", Resources.of(cpus=1))
    with pytest.raises(InsufficientResources):
        ledger.claim("a", [(task(), Resources.of(cpus=2))], ["o1"])
    assert ledger.offered("a") == Resources.of(cpus=1)


def test_a_claim_without_offers_takes_what_is_free(ledger):
    rest = ledger.claim("a", [(task(), PART)], expected_version=0)
    assert rest == ledger.free("a") == WHOLE - PART
    with pytest.raises(InsufficientResources):
        ledger.claim("a", [(task("t2"), WHOLE)])


def test_every_claim_raises_the_version_and_an_older_view_is_told_so(ledger):
    ledger.claim("a", [(task("t1"), Resources.of(cpus=1))], expected_version=0)
    with pytest.raises(Conflict, match="at version 1, the claim expects 0"):
        ledger.claim("a", [(task("t2"), Resources.of(cpus=1))], expected_version=0)
    ledger.claim("a", [(task("t2"), Resources.of(cpus=1))], expected_version=1)
    assert ledger.version("a") == 2


def test_a_claim_of_nothing_consumes_the_offers(ledger):
    ledger.offer("a", "o1", "f", "*", PART)
    assert ledger.claim("a", [], ["o1"]) == PART
    assert ledger.free("a") == WHOLE


@pytest.mark.parametrize(
    ("claims", "offers", "error"),
    [
        ([(task(), PART)], ["o1", "gone"], NotFound),
        ([(task("t0"), Resources.of(cpus=0.1))], ["o1"], Conflict),
        ([(task(), Resources.of(cpus=0.1)), (task(), Resources.of(cpus=0.1))], ["o1"], Conflict),
        ([(task(), Resources.of(cpus=2)), (task("t2"), Resources.of(cpus=1))], ["o1"], Conflict),
        (
            [(task(n), Resources.parse("ports:[31000-31000]")) for n in ("t1", "t2")],
            ["o1"],
            InvalidResources,
        ),
    ],
    ids=["offer gone", "holder has something", "holder twice", "too much", "one port twice"],
)
def test_a_claim_that_fails_changes_nothing(ledger, claims, offers, error):
    ledger.claim("a", [(task("t0"), Resources.of(cpus=1))])
    ledger.offer("a", "o1", "f", "*", Resources.parse("cpus:2;mem:100;ports:[31000-31001]"))
    before = (ledger.free("a"), ledger.offered("a"), ledger.allocations("a"), ledger.version("a"))
    with pytest.raises(error):
        ledger.claim("a", claims, offers)
    after = (ledger.free("a"), ledger.offered("a"), ledger.allocations("a"), ledger.version("a"))
    assert after == before


def test_what_is_released_is_free_once(ledger):
    ledger.claim("a", [(task(), PART)])
    assert ledger.release("a", task()) == PART
    assert ledger.release("a", task()) == EMPTY
    assert ledger.free("a") == WHOLE
    assert ledger.held("f", "*") == {}


# ---- Agents that come back ----------------------------------------------------------


def test_an_agent_opens_anew_with_what_runs_on_it(ledger):
    ledger.claim("a", [(task("old"), PART)])
    smaller = Resources.parse("cpus:2;mem:1024")
    ledger.put_agent("a", smaller, {task("new", role="web"): Resources.of(cpus=1)})
    assert ledger.free("a") == Resources.of(cpus=1, mem=1024)
    assert list(ledger.allocations("a")) == [task("new", role="web")]
    assert ledger.held("f", "*") == {}
    assert ledger.held_by_role("web") == {"cpus": 1000}
    assert ledger.cluster_total() == {"cpus": 2000, "mem": 1_024_000}


def test_an_agents_version_never_goes_back(ledger):
    ledger.claim("a", [(task(), PART)])
    ledger.put_agent("a", WHOLE, {})
    assert ledger.version("a") == 2
    ledger.remove_agent("a")
    ledger.put_agent("a", WHOLE, {})
    assert ledger.version("a") > 2


def test_an_agent_does_not_open_anew_while_offers_of_it_are_out(ledger):
    ledger.offer("a", "o1", "f", "*", PART)
    with pytest.raises(Conflict, match="offers out"):
        ledger.put_agent("a", WHOLE, {})
    assert ledger.offered("a") == PART


def test_an_agent_that_has_less_than_its_tasks_use_is_refused(ledger):
    used = {task("t1"): Resources.of(cpus=3), task("t2"): Resources.of(cpus=2)}
    with pytest.raises(Conflict, match="tasks on the agent use 5 cpus, it has 4") as caught:
        ledger.put_agent("a", WHOLE, used)
    assert caught.value.fields["field"] == "agent_info.resources.cpus"
    assert ledger.free("a") == WHOLE


def test_two_tasks_on_one_port_do_not_fit():
    port = Resources.parse("ports:[31000-31000]")
    with pytest.raises(InvalidResources, match="overlaps"):
        require_fit("a", WHOLE, {task("t1"): port, task("t2"): port})


def test_a_removed_agent_takes_everything_with_it(ledger):
    ledger.claim("a", [(task(), PART)])
    ledger.offer("a", "o1", "f", "web", Resources.of(cpus=1))
    ledger.remove_agent("a")
    assert not ledger.has("a")
    assert ledger.cluster_total() == {}
    assert ledger.held("f", "*") == ledger.held_by_role("web") == {}


# ---- Proof ----------------------------------------------------------


def broken_row(ledger):
    ledger._rows["a"].free = Resources.of(cpus=1)


def broken_cluster(ledger):
    ledger._cluster["cpus"] += 1


def broken_held(ledger):
    ledger._held["f", "*"]["cpus"] += 1


def broken_role(ledger):
    ledger._held_by_role["*"]["cpus"] += 1


@pytest.mark.parametrize("damage", [broken_row, broken_cluster, broken_held, broken_role])
def test_check_finds_what_does_not_add_up(damage):
    ledger = Ledger()
    ledger.put_agent("a", WHOLE, {task(): PART})
    ledger.check()
    damage(ledger)
    with pytest.raises(InternalError):
        ledger.check()


def test_random_steps_keep_the_account_exact():
    dice = random.Random(5)
    ledger = Ledger()
    offers, holders = [], []
    for number in range(3000):
        agent = dice.choice("abc")
        amount = Resources.of(cpus=dice.choice([0.1, 0.2, 0.66, 1.5]), mem=dice.randrange(1, 300))
        try:
            match dice.randrange(7):
                case 0:
                    ledger.put_agent(agent, WHOLE, {})
                case 1:
                    ledger.offer(agent, f"o{number}", dice.choice("fg"), "*", amount)
                    offers.append((agent, f"o{number}"))
                case 2 if offers:
                    ledger.withdraw(*offers.pop(dice.randrange(len(offers))))
                case 3 | 4:
                    mine = [name for name in offers if name[0] == agent][:2]
                    holder = task(str(number), dice.choice("fg"))
                    ledger.claim(agent, [(holder, amount)], [name for _, name in mine])
                    offers = [name for name in offers if name not in mine]
                    holders.append((agent, holder))
                case 5 if holders:
                    ledger.release(*holders.pop(dice.randrange(len(holders))))
                case 6 if dice.random() < 0.05:
                    ledger.remove_agent(agent)
        except MesosPyError:
            pass
        if number % 25 == 0:
            ledger.check()
    for agent, holder in holders:
        ledger.release(agent, holder)
    for agent in "abc":
        assert ledger.allocated(agent) == EMPTY
    ledger.check()


def test_amounts_are_exact_after_ten_thousand_random_fractional_tasks():
    dice = random.Random(11)
    ledger = Ledger()
    whole = Resources.parse("cpus:16;mem:8192")
    ledger.put_agent("a", whole, {})
    running: list[Holder] = []
    sizes = [Resources.of(cpus=c, mem=m) for c in (0.1, 0.2, 0.66) for m in (0.001, 33.333)]
    for number in range(10_000):
        amount = dice.choice(sizes)
        while not ledger.free("a").contains(amount):
            ledger.release("a", running.pop(dice.randrange(len(running))))
        running.append(task(str(number)))
        ledger.claim("a", [(running[-1], amount)])
    ledger.check()
    for holder in running:
        ledger.release("a", holder)
    assert ledger.free("a") == whole
    assert ledger.held_by_role("*") == {}
