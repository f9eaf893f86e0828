"""Whatever order events are seen in, every item ends exactly once and nothing is taken twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from bisect_env.cluster.batches import batches
from bisect_env.cluster.items import OPEN, TRIES, Items, State, Waiting


class AnyOrder(RuleBasedStateMachine):
    """A run as a cluster may treat it: results late or never, jobs lost, jobs refused, a cancellation at any time."""

    jobs = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.items = Items()
        self.contents: dict[str, tuple[str, ...]] = {}
        self.taken: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.names: list[str] = []

    @rule(group=st.integers(0, 2))
    def add(self, group: int) -> None:
        name = f"i{len(self.names)}"
        self.names.append(name)
        self.items.add(name, group)

    @rule(target=jobs, free=st.integers(1, 3), most=st.integers(1, 4))
    def submit(self, free: int, most: int) -> str:
        for batch in batches(self.items.waiting(), free, most):
            job = f"j{len(self.contents)}"
            self.contents[job] = batch.items
            self.items.submitted(job, batch.items)
        return f"j{len(self.contents) - 1}"

    @rule(job=consumes(jobs))
    def refused(self, job: str) -> None:
        before = {name: self.items.state(name) for name in self.names}
        self.items.returned(job)
        for name, state in before.items():
            back = state is State.SUBMITTED and self.items.state(name) is State.WAITING
            assert self.items.state(name) is state or (back and name in self.contents[job])

    @rule(job=jobs, which=st.integers(0, 3))
    def result(self, job: str, which: int) -> None:
        """Of a job that runs, or of one that was thought gone long ago."""
        for name in self.contents.get(job, ())[which : which + 1]:
            was_open = self.items.state(name) in OPEN
            taken = self.items.result(name)
            assert taken == was_open
            self.taken[name] += taken
            self.ended[name] += taken

    @rule(job=jobs, node=st.sampled_from(["", "n1", "n2"]), final=st.booleans())
    def gone(self, job: str, node: str, final: bool) -> None:
        """Also told again of a job that is gone already."""
        lost = [n for n in self.contents.get(job, ()) if self.items.state(n) is State.SUBMITTED]
        given_up = self.items.gone(job, f"{job} was lost", node, final)
        for name in given_up:
            assert final or len(name.losses) == TRIES
            self.ended[name.item] += 1
        assert {each.item for each in given_up} <= set(lost)

    @rule()
    def cancel(self) -> None:
        for name in self.items.cancel():
            self.ended[name] += 1

    @invariant()
    def ends_once(self) -> None:
        assert all(count == 1 for count in self.ended.values() if count)
        assert all(count <= 1 for count in self.taken.values())
        for name in self.names:
            assert (self.items.state(name) in OPEN) == (self.ended[name] == 0)
        assert {each.item for each in self.items.waiting()} == {
            name for name in self.names if self.items.state(name) is State.WAITING
        }


AnyOrder.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase


def test_a_late_result_of_an_earlier_job_ends_the_item_and_the_second_one_is_dropped() -> None:
    items = Items()
    items.add("i", "env")
    items.submitted("first", ["i"])
    assert items.gone("first", "its node failed", "n1") == ()
    assert items.waiting() == (Waiting("i", "env", frozenset({"n1"})),)
    items.submitted("second", ["i"])
    assert items.result("i")
    assert not items.result("i")
    assert items.gone("second", "cancelled") == ()
    assert items.state("i") is State.DONE


def test_given_up_after_three_jobs_with_every_reason() -> None:
    items = Items()
    items.add("i", "env")
    for number in range(TRIES):
        items.submitted(f"j{number}", ["i"])
        given_up = items.gone(f"j{number}", f"loss {number}", f"n{number}")
    assert [each.losses for each in given_up] == [("loss 0", "loss 1", "loss 2")]
    assert not items.result("i")


def test_a_refused_job_costs_its_items_no_try() -> None:
    items = Items()
    items.add("i", "env")
    for number in range(2 * TRIES):
        items.submitted(f"j{number}", ["i"])
        items.returned(f"j{number}")
    assert items.state("i") is State.WAITING


waiting = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([frozenset(), frozenset({"n1"})])), max_size=30).map(
    lambda keys: [Waiting(f"i{at}", group, avoid) for at, (group, avoid) in enumerate(keys)]
)


@given(waiting, st.integers(0, 12), st.integers(1, 6), st.integers(0, 20))
def test_batches_hold_each_item_once_and_are_no_more_and_no_larger_than_allowed(
    items: list[Waiting], free: int, most: int, share: int
) -> None:
    found = batches(items, free, most, lambda group: group % 2, share)
    assert len(found) <= free
    inside = [name for batch in found for name in batch.items]
    assert len(inside) == len(set(inside))
    by_name = {item.item: item for item in items}
    for batch in found:
        assert 1 <= len(batch.items) <= most
        assert {(by_name[n].group % 2, by_name[n].avoid) for n in batch.items} == {(batch.group % 2, batch.avoid)}


@given(waiting, st.integers(1, 12), st.integers(1, 6), st.integers(0, 20))
def test_nothing_waits_while_a_job_is_free(items: list[Waiting], free: int, most: int, share: int) -> None:
    found = batches(items, free, most, share=share)
    left = len(items) - sum(len(batch.items) for batch in found)
    assert left == 0 or len(found) == free


def test_the_last_items_are_shared_with_the_jobs_that_still_run() -> None:
    items = [Waiting(f"i{at}", "env", frozenset()) for at in range(8)]
    assert [len(batch.items) for batch in batches(items, 1, 8, share=2)] == [4]
    assert [len(batch.items) for batch in batches(items, 1, 8)] == [8]


def test_where_jobs_are_few_groups_of_one_kin_share_them() -> None:
    items = [Waiting(f"i{at}", at % 5, frozenset()) for at in range(8)]
    [batch] = batches(items, 1, 8, kin=lambda group: "one")
    assert sorted(batch.items) == sorted(item.item for item in items)
    assert [len(batch.items) for batch in batches(items, 1, 8)] == [2]
    assert [len(batch.items) for batch in batches(items, 2, 8, kin=lambda group: group == 4)] == [7, 1]


def test_items_are_spread_over_the_free_jobs() -> None:
    items = [Waiting(f"i{at}", "env", frozenset()) for at in range(8)]
    assert [len(batch.items) for batch in batches(items, 8, 4)] == [1] * 8
    assert [len(batch.items) for batch in batches(items, 4, 4)] == [2] * 4
    assert [len(batch.items) for batch in batches(items, 1, 4)] == [4]
