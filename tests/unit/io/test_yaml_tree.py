"""YAML reading: plain values, the line of each field, and refusal of what could hurt."""

import pytest
import yaml

from qgate.errors import RecipeError
from qgate.io.yaml_tree import Dumper, parse


def test_values_and_lines() -> None:
    tree = parse(b"a: 1\nb:\n  - x\n  - {c: [true, null, 2.5]}\n", "r.yaml")
    assert tree.value == {"a": 1, "b": ["x", {"c": [True, None, 2.5]}]}
    assert tree.line(("b", 1, "c")) == 4
    assert tree.line(("b", 1, "nowhere")) == 4


def test_dates_and_other_types_stay_text() -> None:
    assert parse(b"a: 2026-01-01\n", "r.yaml").value == {"a": "2026-01-01"}


def test_numbers_as_people_and_json_write_them() -> None:
    text = "[0, -1, +2, 1_000, 0.05, .5, +.5, -0.0, 1., 1.5e-3, 1.5e+3, 1e-3, 1e-05, 1E+16, 2.5e3, -.5e1]"
    assert parse(text.encode(), "r.yaml").value == [
        0, -1, 2, 1000, 0.05, 0.5, 0.5, -0.0, 1.0, 0.0015, 1500.0, 0.001, 0.00001, 1e16, 2500.0, -5.0,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["08", "1e", "e5", "1e5f", "1e5 ", "0.26.0", "v1.5", "1-2", ".", "-", "1e5", "+.5"])
def test_text_is_read_as_it_was_written(text: str) -> None:
    written = yaml.dump([text], Dumper=Dumper)
    assert parse(written.encode(), "r.yaml").value == [text]


@pytest.mark.parametrize("text", ["08", "1e", "e5", "1e5f", "0.26.0", "v1.5", "1-2", "."])
def test_text_that_is_no_number_needs_no_quotes(text: str) -> None:
    assert parse(f"a: {text}".encode(), "r.yaml").value == {"a": text}


def test_a_whole_number_beyond_every_float_is_read() -> None:
    assert parse(b"a: " + b"9" * 400 + b"\n", "r.yaml").value == {"a": 10**400 - 1}


def test_the_halves_of_a_character_are_joined() -> None:
    assert parse(b'a: "\\ud83d\\ude00"\n', "r.yaml").value == {"a": "\N{GRINNING FACE}"}


def test_aliases_are_followed() -> None:
    assert parse(b"a: &x {k: 1}\nb: *x\n", "r.yaml").value == {"a": {"k": 1}, "b": {"k": 1}}


BOMB = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n".encode() for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"# nothing\n", "is empty"),
        (b"a: 1\na: 2\n", "line 2: `a` stands here and on line 1"),
        (b"a: [1,\n", "line 2: not valid YAML"),
        (b"a: \xff\n", "line 1: not UTF-8"),
        (b"a: &x [*x]\n", "an alias contains itself"),
        (BOMB, "aliases expand to more than"),
        (b"[" * 200 + b"]" * 200, "nested deeper"),
        (b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
        (b"1: x\n", "field name 1 is not text"),
        (b"? [a]\n: x\n", "field name of several values is not text"),
        (b"a: 1\n<<: {b: 2}\n", "line 2: merge keys (`<<`) are not read"),
        (b"a: 010\n", "line 1: 010 would be read as 8"),
        (b"a: 1:30\n", "line 1: 1:30 would be read as 90"),
        (b"a: [.inf]\n", "line 1: .inf is no finite number"),
        (b"a: 1e400\n", "line 1: 1e400 is no finite number"),
        (b'a: "\\ud800"\n', "line 1: a lone surrogate"),
        (b"a: !!python/object/apply:os.system [x]\n", ""),
        (b"x" * (2 << 20), "at most"),
    ],
)
def test_refused(data: bytes, said: str) -> None:
    if said:
        with pytest.raises(RecipeError, match=r"r\.yaml") as caught:
            parse(data, "r.yaml")
        assert said in caught.value.message
    else:  # a tag never builds an object: its content is read as plain values
        assert parse(data, "r.yaml").value == {"a": ["x"]}
