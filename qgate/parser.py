"""argparse's parser, kinder: an example in each verb's help, the near word beside a mistyped one. Touches nothing."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

from qgate.errors import ExitCode
from qgate.wording import did_you_mean

EXAMPLES = {
    "run": "recipe.yaml --results /data/qgate",
    "plan": "recipe.yaml --gpu-memory 80GiB --gpus 2",
    "show": "chat-7b-20261129-101500",
    "compare": "chat-7b-20261101-090000 chat-7b-20261129-101500",
    "init": "recipe.yaml",
    "schema": "--quantizer llmcompressor",
    "verify": "models/chat-7b-awq --evidence evidence.intoto.json --tier public-chat --max-age 30d",
    "promote": "models/chat-7b-awq --evidence evidence.intoto.json --tier public-chat --out policy.yaml",
    "sign": "results/runs/chat-7b-20261129-101500/evidence.intoto.json --key release.pem",
    "env build": "vllm llmcompressor",
    "env list": "",
    "env remove": "autogptq-cpu",
    "evalset list": "",
    "evalset verify": "sets/support",
    "evalset show": "long-text@1",
    "evalset stats": "instruction@1",
    "evalset lock": "sets/support",
    "evalset new": "sets/support --from asked.csv --map prompt=question --map answer=reply --scorer exact",
    "repro": "garbage.yaml",
    "repro new": "garbage.yaml --curl request.sh --answer answer.json --candidate models/chat-7b-awq --seen 3/10",
    "inspect": "models/chat-7b-awq --baseline models/chat-7b",
    "scan": "answers.jsonl",
    "doctor": "",
    "selftest": "--runs 200 --out selftest",
}


class Parser(argparse.ArgumentParser):
    """A verb's, a group's or the command's."""

    def calls(self, target: str | None) -> None:
        """What it stands for: `module:function` below qgate.commands; None where it takes another word to be a verb."""
        self.set_defaults(target=target and f"qgate.commands.{target}", parser=self)
        if example := EXAMPLES.get(self.prog.removeprefix("qgate ")):
            self.epilog = f"example: {self.prog} {example}"
            self.formatter_class = argparse.RawDescriptionHelpFormatter

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """What the words mean. Without a verb, ends with the help and the code of a mistake: no job passes because the
        variable that held the verb was empty."""
        arguments, unknown = self.parse_known_args(words)
        called: Parser = arguments.parser
        if unknown:
            near = did_you_mean(unknown[0].partition("=")[0], re.findall(r"--[a-z-]+", called.format_usage()))
            called.error(f"unrecognized arguments: {' '.join(unknown)}" + (f"; {near}" if near else ""))
        if arguments.target is None:
            called.exit(ExitCode.USER_ERROR, called.format_help())
        return arguments

    def error(self, message: str) -> NoReturn:
        """End with the usage and the message. By itself argparse names the near choice only from Python 3.14."""
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            near = did_you_mean(choice[1], [known.strip("'") for known in choice[2].split(", ")])
            message += f"; {near}" if near else ""
        super().error(message)
