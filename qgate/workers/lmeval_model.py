"""The model that lm-eval sees: no model, but a notebook. Part of the worker lmeval_run; touches nothing but tokenizer files.

It writes down what lm-eval asks, tokenised with the checkpoint's tokenizer as lm-eval's `hf` model does, and answers
from a table, or with an empty text and a probability of 1 where there is none yet.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import has_bos_prefix, normalize_gen_kwargs, postprocess_generated_text
from lm_eval.utils import handle_non_serializable, hash_string
from transformers import AutoTokenizer
from worker_frame import Refusal

SAMPLING = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0,
            "presence_penalty": 0.0, "frequency_penalty": 0.0}  # fmt: skip
"""What lm-eval leaves unsaid of sampling: greedy, and everything off."""


class Notebook(TemplateLM):
    """Notes every request in `asked`, by id; `answers` holds what to say to each, where there is anything yet."""

    def __init__(self, tokenizer: str, max_length: int, answers: dict[str, dict[str, Any]] | None = None) -> None:
        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(tokenizer)
        self.max_length = max_length
        self.answers = answers
        self.asked: dict[str, dict[str, Any]] = {}
        self.items: dict[tuple[str, int], str] = {}
        """(task, document's number) to `task:hash of the document`."""
        self.num_truncated = 0
        self._taken: Counter[str] = Counter()
        self._copies: Counter[str] = Counter()
        self._dialogues: dict[str, list[dict[str, str]]] = {}
        self._instances: list[Instance] = []

    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        return int(self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        """What stands in for an empty context."""
        begin = self.tokenizer.bos_token_id
        return self.eot_token_id if begin is None else int(begin)

    @property
    def tokenizer_name(self) -> str:
        """Names lm-eval's own cache of requests, which is not used."""
        return str(self.tokenizer.name_or_path).replace("/", "__")

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """As lm-eval's `hf` model: the tokenizer's own special tokens, unless the text opens with them already."""
        if add_special_tokens is None:
            if not has_bos_prefix(string, self.tokenizer.decode(self.prefix_token_id)):
                return list(self.tokenizer.encode(string))
            add_special_tokens = False
        return list(self.tokenizer.encode(string, add_special_tokens=add_special_tokens))

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The checkpoint's template; the turns are remembered for who reads the report."""
        text = self.tokenizer.apply_chat_template(
            chat_history, tokenize=False, add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
        )  # fmt: skip
        self._dialogues[text] = [{"role": turn["role"], "content": turn["content"]} for turn in chat_history]
        return str(text)

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """(log-probability, whether greedy decoding would say it) of each continuation."""
        self._instances = requests
        return super().loglikelihood(requests, disable_tqdm=True)

    def _loglikelihood_tokens(self, requests: list[Any], **kwargs: Any) -> list[tuple[float, bool]]:
        found = []
        for instance, ((context, continuation), prompt, ids) in zip(self._instances, requests, strict=True):
            room = self.max_length - 1 - len(ids)  # a server generates one token behind what it scores
            if not ids or room < 1:
                raise Refusal(f"task {instance.task_name}: the option {continuation[:40]!r} leaves no room for a prompt",
                              "raise lm_eval.max_length, or leave the task out")  # fmt: skip
            self.num_truncated += len(prompt) > room
            answer = self._turn(
                instance, "rank", messages=self._messages(context), prompt_ids=prompt[-room:],
                continuation=continuation, continuation_ids=ids,
            )  # fmt: skip
            found.append((0.0, False) if answer is None else (_number(answer["logprob"]), answer["is_greedy"]))
        return found

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Refused: the perplexity of a document is no score in [0, 1]."""
        raise Refusal(f"the task {requests[0].task_name} measures perplexity, which is no score of a document",
                      "leave it out; token_evidence compares likelihoods token by token")  # fmt: skip

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The text of each answer, cut where it reaches a stop."""
        return [self._generated(instance) for instance in requests]

    def _generated(self, instance: Instance) -> str:
        context, options = instance.args
        said = dict(normalize_gen_kwargs(options))
        stop, most = [text for text in said.pop("until", []) if text], int(said.pop("max_gen_toks"))
        greedy = not said.pop("do_sample", False)
        if unknown := sorted(said.keys() - SAMPLING.keys()):
            raise Refusal(f"task {instance.task_name}: generation_kwargs that no engine is told: {', '.join(unknown)}",
                          f"leave them out; known: until, max_gen_toks, do_sample, {', '.join(SAMPLING)}")  # fmt: skip
        room = self.max_length - most
        if room < 1:
            raise Refusal(f"task {instance.task_name}: max_gen_toks {most} leaves no room in {self.max_length} tokens",
                          "lower it: lm_eval.gen_kwargs: {max_gen_toks: …}")  # fmt: skip
        ids = self.tok_encode(context)
        self.num_truncated += len(ids) > room
        answer = self._turn(
            instance, "generate", messages=self._messages(context), prompt_ids=ids[-room:], stop=stop,
            sampling={**SAMPLING, **said, **({"temperature": 0.0} if greedy else {}), "max_tokens": most},
        )  # fmt: skip
        return "" if answer is None else postprocess_generated_text(answer["text"] or "", stop, None)

    def _messages(self, context: str) -> list[dict[str, str]]:
        return self._dialogues.get(context, [{"role": "user", "content": context}])

    def _turn(self, instance: Instance, kind: str, **asked: Any) -> dict[str, Any] | None:
        """Note a request and look up its answer; `item/0`, `item/1` and so on are those of one document, in order."""
        item = self._item(instance)
        name = f"{item}/{self._taken[item]}"
        self._taken[item] += 1
        sha256 = hashlib.sha256(json.dumps([kind, *instance.args], default=str).encode()).hexdigest()
        self.asked[name] = {"id": name, "item": item, "kind": kind, "args_sha256": sha256, **asked}
        if self.answers is None:
            return None
        answer = self.answers.get(name)
        if answer is None or answer["args_sha256"] != sha256:
            raise Refusal(f"task {instance.task_name} asks otherwise than when its requests were made",
                          "its data changed meanwhile: remove objects/lm_eval_tasks and run again")  # fmt: skip
        return answer

    def _item(self, instance: Instance) -> str:
        """`task:hash of the document`; a document that a task has twice is numbered."""
        place = (str(instance.task_name), int(instance.doc_id or 0))
        if place not in self.items:
            text = json.dumps(instance.doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
            stem = f"{place[0]}:{hash_string(text)[:16]}"
            self._copies[stem] += 1
            number = self._copies[stem]
            self.items[place] = f"{stem}-{number}" if number > 1 else stem
        return self.items[place]


def _number(value: float | None) -> float:
    return -math.inf if value is None else value
