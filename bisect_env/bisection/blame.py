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
    """All parts of the group that was taken apart."""
    one_of_several: bool = False
    """No mix tells the culprits apart: one of them is to blame."""
    perhaps_with: tuple[Factor, ...] = ()
    """The culprit is needed for certain, and perhaps one of these as well: they are held at bad."""
    entangled: tuple[Factor, ...] = ()
    """Factors that do not resolve without each other, and that overriding their pins has told apart: it stands in for
    every mix of them that does not resolve."""

    @property
    def pair(self) -> bool:
        """Whether two only fail together."""
        return len(self.culprits) == 2 and not self.one_of_several

    @property
    def moving(self) -> tuple[str, ...]:
        """Names of the factors that the culprits belong to: the others are held at one side."""
        factors = [factor for factor, _ in self.parts] or [culprit.factor for culprit in self.culprits]
        return tuple(dict.fromkeys(factor.name for factor in factors))

    def beside(self, background: str, chosen: Mapping[str, str]) -> Levels:
        """The mix with these levels and every factor that has no culprit at one side."""
        rest = {name: background for name in self.names if name not in self.moving}
        return levels({**rest, **{factor.name: BAD for factor in self.perhaps_with}, **chosen})

    def at_bad(self) -> Chosen:
        """The culprits, and the groups that they were taken out of, as the bad side has them."""
        return dict.fromkeys(self.moving, BAD)

    def back(self, culprits: Collection[Culprit]) -> Chosen:
        """The same with some of the culprits back at good."""
        if not self.parts:
            return self.at_bad() | {culprit.factor.name: GOOD for culprit in culprits}
        restored = {culprit.itself.name for culprit in culprits}
        return apart(self.parts, {part.name for _, part in self.parts} - restored)

    def along(self, at: Mapping[str, str]) -> Chosen:
        """The culprits at these levels of their lines, ``good`` and ``bad`` for the ends; at bad where none is given.

        What gives a group its name is followed by the others as it requires them. Any other part is moved alone, the
        rest of its group at bad: that breaks pins.
        """
        moved = {culprit: at[culprit.itself.name] for culprit in self.culprits if culprit.itself.name in at}
        moved = {culprit: level for culprit, level in moved.items() if level != BAD}
        if not moved:
            return self.at_bad()
        if not self.parts or self._leads_alone:
            return self.at_bad() | {culprit.factor.name: level for culprit, level in moved.items()}
        chosen = self.back([culprit for culprit, level in moved.items() if level == GOOD])
        for culprit, level in moved.items():
            if level != GOOD:
                assert culprit.change is not None, "only a distribution has a line"
                chosen[member(culprit.factor.name, culprit.change.name)] = level
        return chosen

    def arms(self, low: Mapping[str, str], high: Mapping[str, str]) -> tuple[Planned, ...]:
        """The environments that confirm it: the culprits at bad and back at good, in both directions.

        Args:
            low: levels of the culprits that were searched along a line, on the good side of the smallest difference.
            high: on its bad side.
        """
        sides = (BAD, GOOD) if len(self.names) > len(self.moving) + len(self.perhaps_with) else (BAD,)
        found: list[Planned] = []
        for side in sides:
            rest = f", everything else at {side}" if len(sides) > 1 else ""
            label = f"{self._named(self.culprits, high, BAD)}{rest}"
            found.append(Planned(label, side, self.beside(side, self.along(high)), True))
            if not self.pair:
                good = self.beside(side, self.with_good(self.culprits, low, high))
                found.append(Planned(f"{self._named(self.culprits, low, GOOD)}{rest}", side, good, False))
                continue
            for culprit in self.culprits:
                point = self.beside(side, self.with_good([culprit], low, high))
                found.append(Planned(f"{self._named([culprit], low, GOOD)} alone{rest}", side, point, False))
        return tuple(found)

    def _named(self, culprits: Collection[Culprit], at: Mapping[str, str], side: str) -> str:
        """Culprits at their levels, for people: ``alpha and beta at bad``, ``alpha 1.4.0``."""
        levels_of = {culprit.itself.name: at.get(culprit.itself.name, side) for culprit in culprits}
        if set(levels_of.values()) == {side}:
            return f"{' and '.join(levels_of)} at {side}"
        return " and ".join(f"{name} {_level(level)}" for name, level in levels_of.items())

    def with_good(self, culprits: Collection[Culprit], low: Mapping[str, str], high: Mapping[str, str]) -> Chosen:
        """The bad side of the smallest difference with some of the culprits on its good side.

        Args:
            culprits: these.
            low: as for :meth:`arms`.
            high: likewise.
        """
        if not low:
            return self.back(culprits)
        return self.along({**high, **{each.itself.name: low.get(each.itself.name, GOOD) for each in culprits}})

    def stand_in(self, point: Levels) -> Levels | None:
        """A mix that does not resolve, with the pins of what is entangled overriding; None where there is none.

        A version between the two sides has no pins but its own: a group cannot be held against it.
        """
        chosen = dict(point)
        for factor in self.entangled:
            apart_already = any(name.startswith(f"{factor.name}/") for name in chosen)
            level = chosen.pop(factor.name, GOOD)
            if level not in (GOOD, BAD) and len(factor.members) > 1:
                return None
            if not apart_already:
                chosen |= {member(factor.name, change.name): level for change in factor.members}
        return levels(chosen) if self.entangled else None

    @property
    def _leads_alone(self) -> bool:
        """Whether the only culprit is what gives the only group its name."""
        part = self.culprits[0].part
        return len(self.culprits) == len(self.moving) == 1 and part is not None and part.name == self.moving[0]


def _level(level: str) -> str:
    if level in (GOOD, BAD):
        return f"at {level}"
    return f"at commit {level.rpartition('@')[2].partition('#')[0][:12]}" if "://" in level else level


def apart(parts: Collection[Part], bad: Collection[str]) -> Chosen:
    """Levels of every member of groups that are taken apart: those of these parts at bad, the others at good."""
    return {
        member(factor.name, change.name): BAD if part.name in bad else GOOD
        for factor, part in parts
        for change in part.members
    }
