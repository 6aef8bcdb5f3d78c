"""Secrets are found by the name of their field and by how they look."""

from __future__ import annotations

import pytest

from qgate.io.redact import REMOVED, redact, redact_words


@pytest.mark.parametrize(
    "text",
    [
        "see https://bob:hunter2!!@host/x", "key gsk_s3cr3tVALUE99aaaaaaaa", "npm_s3cr3tVALUE99aaaaaaaa",
        "password: hunter22222", "Authorization: Bearer s3cr3tVALUE99", "http://h/x.png?w=1&sig=s3cr3t%2BVALUE",
        "https://h/x?X-Amz-Signature=s3cr3tVALUE99",
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_goes(text: str) -> None:
    clean, num = redact(text)
    assert num == 1
    assert REMOVED in clean
    assert "hunter2" not in clean
    assert "s3cr3t" not in clean


@pytest.mark.parametrize(
    "text", ["http://127.0.0.1:8000/v1", "http://h/x?page=12345678", "mail me at bob@host.example", "ratio 3:4 @ noon"]
)
def test_addresses_without_a_password_stay(text: str) -> None:
    assert redact(text) == (text, 0)


def test_fields_named_like_a_secret_go() -> None:
    assert redact({"extra_headers": {"X-Auth": "abc"}, "author": "Ann", "max_tokens": 5}) == (
        {"extra_headers": {"X-Auth": REMOVED}, "author": "Ann", "max_tokens": 5},
        1,
    )


def test_a_commands_words() -> None:
    words = [
        "HF_TOKEN=a",
        "vllm",
        "serve",
        "m",
        "--api-key",
        "b",
        "--tokenizer",
        "c",
        "--api-key=d",
        "--max-num-seqs",
        "8",
    ]
    clean, num = redact_words(words)
    assert num == 3
    assert clean == [
        f"HF_TOKEN={REMOVED}", "vllm", "serve", "m", "--api-key", REMOVED, "--tokenizer", "c", f"--api-key={REMOVED}",
        "--max-num-seqs", "8",
    ]  # fmt: skip
    assert redact_words(clean) == (clean, 0)
