"""Jobs for the tests of their files."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from bisect_env.cluster.job import Item, JobSpec, Wanted
from bisect_env.engine.attempt import Attempt, Prepared
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.engine.plan import Slot
from bisect_env.environments.records import Environment, Interpreter, Lock
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, IndexChoice, Limits, Matrix, ReproducerChoice
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Reproducer, Side
from tests.store.samples import H200, trial

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
WORD = st.text("abcxyz019.-_é", min_size=1, max_size=8)
PATHS = WORD.map(lambda word: Path("/shared") / word)
SCALARS = TEXT | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.booleans()
PASSWORDS = st.text("abcXYZ019.%~+-_é", min_size=1, max_size=12)
URLS = st.one_of(
    st.builds("https://{}.example/simple".format, st.sampled_from("abc")),
    st.builds("https://user:{}@{}.example/simple".format, PASSWORDS, st.sampled_from("abc")),
    st.builds("https://{}@{}.example/simple".format, PASSWORDS, st.sampled_from("abc")),
    st.builds("https://a.example/simple?access_token={}&x=1".format, PASSWORDS),
)
SECONDS = st.floats(0, 1e6)


def pairs(values: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[tuple[str, object], ...]]:
    return st.lists(st.tuples(WORD, values), max_size=3).map(tuple)


REQUESTS = st.builds(
    EnvironmentRequest,
    st.tuples(st.builds("torch=={}".format, WORD)),
    cuda=st.none() | st.sampled_from(["cpu", "cu130"]),
    python=st.none() | st.just("3.12"),
    index=st.builds(IndexChoice, urls=st.lists(URLS, max_size=2).map(tuple), find_links=st.tuples() | st.tuples(URLS)),
    overrides=st.tuples() | st.tuples(TEXT),
)
CELLS = st.builds(
    Cell, WORD, pairs(WORD), REQUESTS, st.dictionaries(WORD, SCALARS, max_size=3).map(Condition.of), pairs(TEXT)
)
LOCKS = st.builds(
    Lock,
    TEXT,
    st.builds(Interpreter, PATHS, WORD, st.just("cpython"), WORD),
    pairs(WORD),
    st.none() | WORD,
    WORD,
    downloads=st.none() | pairs(st.integers(0, 2**40)),
)
ENVIRONMENTS = st.builds(Environment, LOCKS, PATHS, PATHS, TEXT, SECONDS, SECONDS)
SAMPLES = st.builds(
    StoredTrial,
    st.builds(
        trial,
        WORD,
        side=st.sampled_from(Side),
        outcome=st.sampled_from(Outcome),
        started=SECONDS,
        devices=st.sampled_from([(), (H200,)]),
        output=TEXT,
    ),
    st.integers(0, 99),
    WORD,
)
PREPARED = st.none() | st.builds(Prepared, PATHS, WORD)
ATTEMPTS = st.builds(
    Attempt,
    st.builds(Slot, CELLS, st.sampled_from(Side), st.integers(0, 99)),
    ENVIRONMENTS,
    SECONDS,
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(1, 9),
    st.booleans(),
    PREPARED,
)
ENTRANTS = st.builds(Entrant, CELLS, ENVIRONMENTS, st.lists(SAMPLES, max_size=2).map(tuple), PREPARED)
MATRICES = st.builds(
    Matrix,
    WORD,
    PATHS,
    st.tuples(CELLS),
    st.tuples(WORD),
    st.builds(ReproducerChoice, WORD, st.tuples(WORD), st.tuples(PATHS), st.none() | TEXT),
    limits=st.builds(Limits, SECONDS, SECONDS),
    pass_env=st.lists(st.sampled_from(["HF_TOKEN", "WANDB_API_KEY"]), unique=True).map(tuple),
    at_once=st.integers(1, 4),
)
JOBS = st.builds(
    JobSpec,
    WORD,
    WORD,
    PATHS,
    MATRICES,
    st.builds(Reproducer, WORD, st.tuples(WORD), st.tuples(PATHS), WORD, st.booleans()),
    st.tuples(st.builds(Wanted, LOCKS, REQUESTS, TEXT)),
    st.lists(st.builds(Item, st.from_regex(r"[a-z0-9_-]{1,8}", fullmatch=True), ATTEMPTS), max_size=2).map(tuple),
    st.lists(ENTRANTS, max_size=1).map(tuple),
    st.none() | st.builds(Session, st.none() | ENTRANTS, st.tuples(ENTRANTS)),
    st.integers(0, 2**31),
    st.booleans(),
    st.none() | st.just("0,1"),
    st.none() | PATHS,
    st.none() | st.just("$SLURM_TMPDIR/environments"),
    st.none() | st.just("$TMPDIR/uv"),
    SECONDS,
)
