"""From witnessed trials to the explanation of a cell. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bisect_env.explanation.collisions import collisions_of
from bisect_env.explanation.ledger import hypotheses_of
from bisect_env.explanation.log import read_log
from bisect_env.explanation.records import Account, Consequence, Explanation, Mechanism, WitnessLog
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.telling import sentences_of
from bisect_env.explanation.windows import windows_of
from bisect_env.trials.records import Outcome, Side, TrialRecord
from bisect_env.verdicts.attention import DENSE_FROM
from bisect_env.verdicts.samples import counts
from bisect_env.verdicts.statistics import fisher_greater
from bisect_env.words import counted

ALPHA = 0.05
"""One-sided error with which a failure is said to be rarer under the witness."""
WRONG = (Outcome.FAILED, Outcome.HANG, Outcome.WRONG, Outcome.OOM)
SAYS_NOTHING = (Outcome.INFRA, Outcome.SKIPPED)


def explain(
    cell: str,
    environment: str,
    trials: Sequence[TrialRecord],
    plain: Sequence[TrialRecord] = (),
    serial: Sequence[TrialRecord] = (),
) -> Explanation:
    """Explain a cell.

    Args:
        cell: its id.
        environment: address of its environment.
        trials: witnessed ones, in the order in which they ran; those that say nothing of the cell are left out.
        plain: trials of the same condition with threads and without a witness.
        serial: those of its serial control.
    """
    trials, plain, serial = (
        tuple(trial for trial in each if trial.outcome not in SAYS_NOTHING) for each in (trials, plain, serial)
    )
    accounts = tuple(account(trial, read_log(trial.witness)) for trial in trials)
    failed, plain_failed = _wrong(trials), _wrong(plain)
    return Explanation(
        cell=cell,
        environment=environment,
        accounts=accounts,
        hypotheses=hypotheses_of(trials, accounts, (plain_failed, len(plain)), (_wrong(serial), len(serial))),
        failed=failed,
        plain_failed=plain_failed,
        plain=len(plain),
        vanished=vanished(failed, len(trials), plain_failed, len(plain)),
        cost=cost(trials, plain),
        notes=_notes(trials, accounts),
    )


def explain_by(
    cell: str, environment: str, trials: Sequence[TrialRecord], records: Sequence[TrialRecord]
) -> Explanation:
    """Explain a cell by these witnessed trials and by the controls among ``records``, as far as they count."""
    plain, serial = (
        [record for record in records if record.side is side and counts(record)] for side in (Side.THREADS, Side.SERIAL)
    )
    return explain(cell, environment, trials, plain, serial)


def account(trial: TrialRecord, log: WitnessLog | None) -> Account:
    """What happened in one trial."""
    if log is None:
        text = "The witness did not start in this trial: nothing is known of what its threads did."
        return Account(trial.id, str(trial.outcome), None, (), (), (text,))
    windows = windows_of(log)
    collisions = collisions_of(log, windows, trial)
    sentences = sentences_of(Seen.of(log, windows), collisions, trial)
    return Account(trial.id, str(trial.outcome), log, windows, collisions, sentences)


def went_wrong(trial: TrialRecord) -> bool:
    """Whether a trial failed, hung, or ran a share of its calls dense."""
    dense = any(seen >= DENSE_FROM * path.calls > 0 for path in trial.paths for _, seen in path.signs)
    return trial.outcome in WRONG or dense


def is_explained(explanation: Explanation) -> bool:
    """Whether some trial went wrong and a known mechanism says why."""
    return any(
        collision.mechanism is not Mechanism.UNKNOWN
        for each in explanation.accounts
        for collision in each.collisions[:1]
    )


def vanished(failed: int, n: int, plain_failed: int, plain: int) -> str:
    """A sentence where failures are rarer under the witness than chance explains; empty where they are not.

    The one-sided exact test of two proportions (Fisher) at 5 %.
    """
    if not n or not plain:
        return ""
    chance = fisher_greater(plain_failed, plain, failed, n)
    if chance > ALPHA:
        return ""
    left = "It did not occur" if not failed else "It is rarer"
    return (
        f"{left} under the witness: {failed} of {n} trials went wrong with it, and {plain_failed} of {plain} without"
        f" (p = {chance:.2g}, one-sided exact test). The witness changes how the threads meet, so that what it saw is"
        " not all that happens without it."
    )


def cost(trials: Sequence[TrialRecord], plain: Sequence[TrialRecord]) -> str:
    """A sentence: what the witness cost in the rate of warm work, else in the time of clean trials; with both counts.

    Trials that ran side by side with others are left out, since their times say nothing.
    """
    sides = [[trial for trial in each if trial.at_once == 1] for each in (trials, plain)]
    rates = [[rate for trial in side if (rate := trial.tokens_per_second) is not None] for side in sides]
    if all(rates):
        with_, without = median(rates[0]), median(rates[1])
        spans = [f"{len(side)} trials between {min(side):,.0f} and {max(side):,.0f}" for side in rates]
        return (
            f"Warm work at {with_:,.0f} tokens/s with the witness and {without:,.0f} without: {_share(with_, without)}"
            f" (medians of {spans[0]}, and of {spans[1]})."
        )
    seconds = [[trial.seconds for trial in side if trial.outcome is Outcome.CLEAN] for side in sides]
    if all(seconds):
        with_, without = median(seconds[0]), median(seconds[1])
        counts = f"{len(seconds[0])} with it and {len(seconds[1])} without"
        return f"A clean trial took {with_:.1f} s with the witness and {without:.1f} s without (medians of {counts})."
    if not plain:
        return "Not known: the store has no trial of this cell without the witness (`--controls N` runs them)."
    seconds = [[trial.seconds for trial in side if trial.outcome is not Outcome.HANG] for side in sides]
    if all(seconds):
        with_, without = median(seconds[0]), median(seconds[1])
        return (
            f"Trials took {with_:.1f} s with the witness and {without:.1f} s without (medians of {len(seconds[0])} and"
            f" {len(seconds[1])}), but one that fails ends when it does."
        )
    return "Not known: no trials with and without the witness that can be compared."


def _share(with_: float, without: float) -> str:
    change = 100 * (with_ / without - 1)
    return f"{abs(change):.0f} % {'less' if change < 0 else 'more'}"


def _wrong(trials: Sequence[TrialRecord]) -> int:
    return sum(map(went_wrong, trials))


def _notes(trials: Sequence[TrialRecord], accounts: Sequence[Account]) -> tuple[str, ...]:
    notes = []
    silent = sum(each.log is None for each in accounts)
    if silent:
        notes.append(f"The witness did not start in {silent} of {len(accounts)} trials: counted, and not explained.")
    surprising = [
        trial.id
        for trial, each in zip(trials, accounts, strict=True)
        if went_wrong(trial) and each.log is not None and not each.collisions
    ]
    if surprising:
        notes.append(f"Went wrong, and the witness saw nothing that explains it: {', '.join(surprising)}.")
    hidden = sum(
        trial.outcome is Outcome.CLEAN
        and any(collision.consequence is Consequence.FAILED for collision in each.collisions)
        for trial, each in zip(trials, accounts, strict=True)
    )
    if hidden:
        notes.append(
            f"{counted(hidden, 'trial')} ended clean although an exception ended a thread: the command's exit status "
            "does not tell of it, so that no verdict counts it. Let it end with another one."
        )
    return tuple(notes)
