"""Which mixes show what the culprits do: culprits flipped, everything else held at one side. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bisect_env.bisection.confirming import Planned
from bisect_env.bisection.mixes import levels, member
from bisect_env.bisection.records import BAD, GOOD, Levels
from bisect_env.snapshots.factors import Change, Factor

Chosen = dict[str, str]
Part = tuple[Factor, Factor]
"""A group, and what of it can be flipped alone."""


@dataclass(frozen=True)
class Culprit:
    """A factor that is to blame, or one part of a group."""

    factor: Factor
    part: Factor | None = None
    """The part, once the group was taken apart; None for all of the factor."""

    @property
    def itself(self) -> Factor:
        """What is to blame, as a factor of its own."""
        return self.part or self.factor

    @property
    def change(self) -> Change | None:
        """The distribution along whose versions it can be searched; None where there is none."""
        members = self.itself.members
        return next((each for each in members if each.name == self.itself.name), members[0]) if members else None


@dataclass(frozen=True)
class Blame:
    """The culprits among all factors."""

    names: tuple[str, ...]
    """Of all factors."""
    culprits: tuple[Culprit, ...] = ()
    parts: tuple[Part, ...] = ()
    """All parts of the group that was taken apart, of several factors where only together they resolve."""
    one_of_several: bool = False
    """No mix tells the culprits apart: one of them is to blame."""

    @property
    def pair(self) -> bool:
        """Whether two only fail together."""
        return len(self.culprits) == 2 and not self.one_of_several

    @property
    def moving(self) -> tuple[str, ...]:
        """Names of the factors that the culprits belong to: the others are held at one side."""
        return tuple(dict.fromkeys(factor.name for factor in self._factors))

    def beside(self, background: str, chosen: Mapping[str, str]) -> Levels:
        """The mix with these levels and every factor that has no culprit at one side."""
        rest = {name: background for name in self.names if name not in self.moving}
        return levels({**rest, **chosen})

    def at_bad(self) -> Chosen:
        """The culprits, and the groups that they were taken out of, as the bad side has them."""
        return dict.fromkeys(self.moving, BAD)

    def back(self, culprits: Collection[Culprit]) -> Chosen:
        """The same with some of the culprits back at good."""
        if not self.parts:
            return self.at_bad() | {culprit.factor.name: GOOD for culprit in culprits}
        restored = {culprit.itself.name for culprit in culprits}
        return apart(self.parts, {part.name for _, part in self.parts} - restored)

    def along(self, culprit: Culprit, level: str) -> Chosen:
        """The only culprit at a level of its line, ``good`` and ``bad`` for its ends.

        What gives a group its name is followed by the others as it requires them. Any other part is moved alone, the
        rest of its group at bad: that breaks pins.
        """
        if level == BAD:
            return self.at_bad()
        if culprit.part is None or (len(self.moving) == 1 and culprit.part.name == culprit.factor.name):
            return {culprit.factor.name: level}
        assert culprit.change is not None, "only a distribution has a line"
        every = apart(self.parts, {part.name for _, part in self.parts})
        return {**every, member(culprit.factor.name, culprit.change.name): level}

    def arms(self, low: Chosen, high: Chosen) -> tuple[Planned, ...]:
        """The environments that confirm it: the culprits at bad and back at good, in both directions.

        Args:
            low: levels of a single culprit on the good side of the smallest difference.
            high: on its bad side.
        """
        words = " and ".join(culprit.itself.name for culprit in self.culprits)
        sides = (BAD, GOOD) if len(self.names) > len(self.moving) else (BAD,)
        found: list[Planned] = []
        for side in sides:
            rest = f", everything else at {side}" if len(sides) > 1 else ""
            found.append(Planned(f"{words} at bad{rest}", side, self.beside(side, high), True))
            if not self.pair:
                found.append(Planned(f"{words} at good{rest}", side, self.beside(side, low), False))
                continue
            for culprit in self.culprits:
                point = self.beside(side, self.back([culprit]))
                found.append(Planned(f"{culprit.itself.name} alone at good{rest}", side, point, False))
        return tuple(found)

    @property
    def _factors(self) -> tuple[Factor, ...]:
        return tuple(factor for factor, _ in self.parts) or tuple(culprit.factor for culprit in self.culprits)


def apart(parts: Collection[Part], bad: Collection[str]) -> Chosen:
    """Levels of every member of groups that are taken apart: those of these parts at bad, the others at good."""
    return {
        member(factor.name, change.name): BAD if part.name in bad else GOOD
        for factor, part in parts
        for change in part.members
    }
