"""Which stage comes next: the whole course of a bisection, pure.

A :class:`Course` says what it wants and is given the answer, over and over. It knows nothing of environments, indexes
or clocks. The same answers in the same order lead to the same state: the log keeps the answers, and replaying them is
all that resuming takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.bisection.confirmation import confirm
from bisect_env.bisection.log import Answer, Candidates, Checked, Told
from bisect_env.bisection.records import Answer as Kind
from bisect_env.bisection.records import Specification
from bisect_env.bisection.state import State
from bisect_env.bisection.testing_ends import both_ends
from bisect_env.bisection.wants import Asking, Check, Lookup, Round, Trials, Want
from bisect_env.bisection.which_factors import which_factors
from bisect_env.bisection.which_member import which_member
from bisect_env.bisection.which_version import which_commit, which_version
from bisect_env.snapshots.factors import Factor

FITS = {Trials: Told, Round: Told, Check: Checked, Lookup: Candidates}
"""What answers what."""


class Course(State):
    """One bisection. ``want`` is what it needs next; None when it has come to its end."""

    def __init__(self, specification: Specification, factors: Sequence[Factor]) -> None:
        super().__init__(specification, factors)
        self._steps = self._course()
        self.want: Want | None = next(self._steps, None)

    def give(self, answer: Answer) -> None:
        """The answer to what is wanted.

        Raises:
            ValueError: it is no answer to that.
        """
        if self.want is None or not isinstance(answer, FITS[type(self.want)]):
            raise ValueError(f"{type(answer).__name__} is no answer to {self.want}")
        self.take(self.want, answer)
        try:
            self.want = self._steps.send(answer)
        except StopIteration:
            self.want = None

    def _course(self) -> Asking[None]:
        if not self.factors:
            self.end(Kind.NOTHING, "The two sides do not differ in anything that can be changed here.")
            return
        if not (yield from both_ends(self)):
            return
        if not (yield from which_factors(self)):
            return
        yield from which_member(self)
        yield from which_version(self)
        yield from which_commit(self)
        yield from confirm(self)
