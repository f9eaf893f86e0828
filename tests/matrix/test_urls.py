"""Credentials in URLs."""

from __future__ import annotations

import pytest

from bisect_env.matrix.urls import has_credentials, names_secret, secret_values, stripped, without_credentials


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@host/simple",
        "https://secret@host/simple",
        "https://me:se@cret@host:8080/simple",
        "git+https://x-access-token:secret@host/p.git@main",
        "git+ssh://me:secret@host/p.git",
        "https://host/simple?token=secret",
        "https://host/simple?a=b&api_key=secret&c=d",
        "pip: error at https://me:secret@host/simple and https://secret@other/x",
    ],
)
def test_secrets_are_found_and_hidden(url: str) -> None:
    assert has_credentials(url)
    for hidden in (without_credentials(url), stripped(url)):
        assert "secret" not in hidden
        assert "cret@" not in hidden
        assert "host" in hidden


@pytest.mark.parametrize(
    "url",
    ["https://host/simple", "git+ssh://git@host/p.git@v1", "git+https://host/p.git@v1", "a@b", "https://host/a@b"],
)
def test_what_holds_none_is_let_be(url: str) -> None:
    assert not has_credentials(url)
    if "ssh" not in url:
        assert without_credentials(url) == stripped(url) == url


def test_a_new_token_is_the_same_source() -> None:
    assert stripped("https://me:one@host/simple") == stripped("https://you:two@host/simple") == "https://host/simple"


def test_a_token_ends_where_its_url_ends() -> None:
    said = '{"url":"https://host/simple?token=secret","next":"kept"} and "https://host/x?sig=secret\\n" kept'
    hidden = without_credentials(said)
    assert "secret" not in hidden and hidden.count("kept") == 2


@pytest.mark.parametrize("name", ["HF_TOKEN", "UV_INDEX_CORP_PASSWORD", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"])
def test_variables_that_hold_secrets_are_known_by_their_names(name: str) -> None:
    assert names_secret(name)
    assert secret_values({name: "s3cret", "HOME": "/root", "A_TOKEN": "1"}) == ("s3cret",)


@pytest.mark.parametrize("name", ["GIT_AUTHOR_NAME", "HOME", "TORCH_LOGS"])
def test_others_are_not(name: str) -> None:
    assert not names_secret(name)
