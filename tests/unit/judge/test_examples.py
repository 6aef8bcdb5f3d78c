import dataclasses

from qgate.judge.arms import Arms
from qgate.judge.examples import PROMPT_TAIL_CHARS, worst
from qgate.schemas.evidence import DefectHit, Evidence

from .made import arm, row


def test_the_worst_come_first_one_per_item_and_none_that_is_as_good_as_the_baseline():
    loop = DefectHit("repetition_loop", 312, "same line 9 times")
    rows = [row(item=item, seed=seed) for item in range(4) for seed in range(2)]
    rows += [row("w8a8", 0, seed=seed, score=0.5) for seed in range(2)]
    rows += [row("w8a8", 1, seed=seed, score=0.0, defects=(loop,)) for seed in range(2)]
    rows += [row("w8a8", 2, seed=0), row("w8a8", 2, seed=1, status="timeout", score=None, text=None)]
    rows += [row("w8a8", 3, seed=seed) for seed in range(2)]
    prompts = {("facts", "i0001"): "x" * 1000}
    found = worst(Arms.of(Evidence(rows=tuple(rows))), ["w8a8", "absent"], prompts)
    assert [each.id.split("/")[1] for each in found] == ["i0001", "i0002", "i0000"]
    assert found[0].where == "char 312: repetition_loop (same line 9 times)"
    assert found[0].defects == ("repetition_loop",)
    assert len(found[0].prompt_tail) == PROMPT_TAIL_CHARS
    assert found[1].where == "no answer: timeout"
    assert (found[2].baseline_score, found[2].variant_score) == (1.0, 0.5)


def test_an_answer_that_only_differs_is_no_example():
    variant = [dataclasses.replace(each, identical=False, similarity=0.1) for each in arm("w8a8", [[1.0]] * 5)]
    assert worst(Arms.of(Evidence(rows=(*arm("baseline", [[1.0]] * 5), *variant))), ["w8a8"], {}) == ()
