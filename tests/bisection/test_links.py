from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection.links import Repository, links, repository, tag_of
from bisect_env.bisection.records import Link


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://github.com/huggingface/transformers", "https://github.com/huggingface/transformers"),
        ("https://www.github.com/o/r.git", "https://github.com/o/r"),
        ("https://github.com/o/r/tree/main/packages/x", "https://github.com/o/r"),
        ("git+ssh://git@github.com/o/r.git", "https://github.com/o/r"),
        ("https://gitlab.com/group/sub/r/-/issues", "https://gitlab.com/group/sub/r"),
        ("https://user:hidden@gitlab.example.org/g/r", "https://gitlab.example.org/g/r"),
        ("https://pytorch.org", None),
        ("https://github.com/o", None),
        ("https://github.com/sponsors/o", None),
        ("not a url", None),
    ],
)
def test_repositories_among_project_urls(url: str, found: str | None) -> None:
    told = repository([("Whatever", url)])
    assert (None if told is None else told.url) == found


def test_the_label_that_means_the_source_goes_first() -> None:
    urls = [("Homepage", "https://github.com/o/site"), ("Source Code", "https://github.com/o/code")]
    assert repository(urls) == Repository("https://github.com/o/code")


TAGS = (
    *(
        "v1.2.0",
        "1.3",
        "name-1.4",
        "name/v1.5",
        "release-1.6",
        "REL_1_7",
        "name==1.8",
        "v1.9rc1",
        "v1.9",
        "n-a-me-v2.0",
    ),
    *("other-1.2", "ciflow/1.2", "v1.2-docs", "name-other-1.4", "latest", "v2.11.0", "2021.05"),
)


@pytest.mark.parametrize(
    ("version", "tag"),
    [
        *[("1.2", "v1.2.0"), ("1.3.0", "1.3"), ("1.4", "name-1.4"), ("1.5", "name/v1.5"), ("1.6", "release-1.6")],
        *[("1.7", "REL_1_7"), ("1.8", "name==1.8"), ("1.9", "v1.9"), ("1.9rc1", "v1.9rc1"), ("2.0", None)],
        *[("2.11.0+cu128", "v2.11.0"), ("2021.5", "2021.05"), ("3.0", None), ("no version", None)],
    ],
)
def test_tags_of_versions(version: str, tag: str | None) -> None:
    assert tag_of("Name", version, TAGS) == tag


def test_a_name_of_several_words() -> None:
    assert tag_of("huggingface_hub", "1.0", ["hub-1.0", "huggingface-hub-v1.0"]) == "huggingface-hub-v1.0"


@given(st.lists(st.integers(0, 99), min_size=2, max_size=4), st.sampled_from(["v", "", "x-", "x/v", "release-", "x_"]))
def test_every_way_to_write_a_tag_is_found(numbers: list[int], before: str) -> None:
    version = ".".join(map(str, numbers))
    assert tag_of("x", version, [f"{before}{version}"]) == f"{before}{version}"


def test_links_of_github_and_gitlab() -> None:
    assert links("x", [("Source", "https://github.com/o/x")], "1.0", "1.1", ["v1.0", "v1.1"]) == (
        Link("release notes of 1.1", "https://github.com/o/x/releases/tag/v1.1"),
        Link("changes from 1.0 to 1.1", "https://github.com/o/x/compare/v1.0...v1.1"),
    )
    assert links("x", [("Source", "https://gitlab.com/o/x")], "1.0", "1.1", ["x/1.0", "x/1.1"]) == (
        Link("release notes of 1.1", "https://gitlab.com/o/x/-/releases/x%2F1.1"),
        Link("changes from 1.0 to 1.1", "https://gitlab.com/o/x/-/compare/x%2F1.0...x%2F1.1"),
    )


def test_no_tag_is_made_up_and_a_changelog_goes_first() -> None:
    urls = [("Source", "https://github.com/o/x"), ("Release Notes", "https://x.org/changes")]
    assert links("x", urls, "1.0", "1.1") == (Link("release notes", "https://x.org/changes"),)
    assert links("x", urls[:1], "1.0", "1.1") == (Link("source repository", "https://github.com/o/x"),)
    assert links("x", [("Changelog", "file:///etc/passwd")], "1.0", "1.1") == ()
