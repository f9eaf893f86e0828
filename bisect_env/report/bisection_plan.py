"""What a bisection would do, before it does it (``--dry-run``)."""

from __future__ import annotations

from bisect_env.bisection.records import Plan
from bisect_env.engine.disk import size
from bisect_env.report import pieces
from bisect_env.report.bisection_words import change, held, level, members, point
from bisect_env.report.grid import Column
from bisect_env.report.pieces import Grid, Points, Section, Words
from bisect_env.report.rows import cut
from bisect_env.words import counted, lasting


def describe(plan: Plan, fmt: str = "text", width: int = 100) -> str:
    """The plan as text or as Markdown: suspects, what is held, mixes without an environment, trials, time, download."""
    factors = plan.factors
    between = dict(plan.versions)
    columns = (
        Column("suspect", tuple(factor.name for factor in factors)),
        Column("kind", tuple(factor.kind.value for factor in factors)),
        Column("good", tuple(level(factor.good, factor.kind) for factor in factors)),
        Column("bad", tuple(level(factor.bad, factor.kind) for factor in factors)),
        Column("versions", tuple(str(between.get(factor.name, "")) for factor in factors)),
    )
    groups = [(factor, members(factor)) for factor in factors if len(factor.members) > 1]
    together = tuple(f"{factor.name} {change(factor)}, and with it {along}" for factor, along in groups)
    lost = tuple(
        f"{point(each.point, [factor.name for factor in factors])}: {cut(each.reason, 300)}"
        for each in plan.unresolvable
    )
    sections = [
        Section("", (Words(_headline(plan)), Grid(columns, ("kind", "versions")))),
        Section(
            "Pinned to each other, so they move together (and are split when they are to blame)", (Points(together),)
        ),
        Section(
            "Held: differs, cannot be changed here, and will not be cleared", (Points(tuple(map(held, plan.held))),)
        ),
        Section("Mixes without an environment, which the search goes round", (Points(lost),)),
        Section("Notes", (Points(plan.notes),)),
        Section("", (Words(_expected(plan)),)),
    ]
    return pieces.markdown(sections) if fmt == "markdown" else pieces.text(sections, width)


def _headline(plan: Plan) -> str:
    number = len(plan.factors)
    if not number:
        return "Nothing to bisect: the two sides do not differ in anything that can be changed here."
    return (
        f"{counted(number, 'suspect')}; {counted(plan.mixes, 'environment')} resolved, "
        f"{len(plan.unresolvable) or 'none'} of them impossible. Nothing was built or run."
    )


def _expected(plan: Plan) -> str:
    if not plan.factors:
        return ""
    said = (
        f"Expected: {plan.trials:.0f} trials (95 of 100 times at most {plan.trials_95:.0f}) in "
        f"{plan.environments:.0f} environments, if 30 % of the bad end's trials fail; then those along its versions."
    )
    if plan.download_bytes is not None:
        said += f" Download: about {size(plan.download_bytes)}, less what uv has cached."
    if plan.seconds is not None:
        return f"{said} Time: about {lasting(plan.seconds)}, by what trials and builds took here before."
    return f"{said} Time: not known yet; the first trials of this reproducer here will tell."
