"""Writes general.jsonl, the calibration texts that come with qgate: `python generate.py`, always the very same bytes.

written.txt holds texts written for this file (chats and prose, code, logs, tables; English, Chinese and a few others);
the rest is put together here from words.json. Everything is fictional. None of it comes from the evaluation sets, which
tests/unit/evalsets/test_calibration_is_apart.py checks.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SEED = 20_310_417
NUM_TEXTS = 256
WORDS: dict[str, Any] = json.loads((HERE / "words.json").read_text(encoding="utf-8"))
ROLES = {"S": "system", "U": "user", "A": "assistant"}
Entry = dict[str, Any]
Rng = random.Random


def chat(*turns: str) -> Entry:
    """A conversation that begins with the user."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]}


def written() -> list[Entry]:
    """The texts of written.txt: blocks that begin with `=== chat` (turns `U: `, `A: `, `S: `) or `=== text`."""
    entries: list[Entry] = []
    source = (HERE / "written.txt").read_text(encoding="utf-8")
    for kind, body in re.findall(r"^=== (chat|text)\n(.*?)(?=^=== |\Z)", source, re.MULTILINE | re.DOTALL):
        if kind == "text":
            entries.append({"text": body.rstrip("\n")})
        else:
            turns = re.findall(r"^([SUA]): (.*?)(?=^[SUA]: |\Z)", body, re.MULTILINE | re.DOTALL)
            entries.append({"messages": [{"role": ROLES[who], "content": said.rstrip("\n")} for who, said in turns]})
    return entries


def two(rng: Rng, words: str) -> list[str]:
    """Two different words of a list."""
    return rng.sample(WORDS[words], 2)


def purchase_en(rng: Rng) -> Entry:
    """A word problem and its working."""
    who, goods = rng.choice(WORDS["people_en"]), two(rng, "goods_en")
    n, m, p, q = rng.randint(2, 9), rng.randint(2, 9), rng.randint(3, 19), rng.randint(3, 19)
    paid = -(-(n * p + m * q) // 50) * 50
    return chat(
        f"{who} buys {n} {goods[0]} at {p} crowns each and {m} {goods[1]} at {q} crowns each, and pays with {paid} crowns. "
        "How much change is there? Show the steps.",
        f"{goods[0].capitalize()}: {n} × {p} = {n * p} crowns.\n{goods[1].capitalize()}: {m} × {q} = {m * q} crowns.\n"
        f"Together: {n * p} + {m * q} = {n * p + m * q} crowns.\n"
        f"Change: {paid} − {n * p + m * q} = {paid - n * p - m * q} crowns.",
    )


def purchase_zh(rng: Rng) -> Entry:
    """The same in Chinese, with a discount."""
    who, goods = rng.choice(WORDS["people_zh"]), two(rng, "goods_zh")
    n, m, p, q = rng.randint(2, 9), rng.randint(2, 9), 10 * rng.randint(1, 6), 10 * rng.randint(1, 6)
    total = n * p + m * q
    return chat(
        f"{who}买了{n}件{goods[0]},每件{p}元,又买了{m}件{goods[1]},每件{q}元。店家打九折,一共要付多少钱?",
        f"先算原价:{n}×{p}={n * p}元,{m}×{q}={m * q}元,合计{total}元。打九折就是乘以0.9,"
        f"{total}×0.9={total * 9 // 10}元。所以一共要付{total * 9 // 10}元。",
    )


def table(rng: Rng) -> Entry:
    """A Markdown table and a question that needs it."""
    towns = rng.sample(WORDS["towns_en"], 5)
    goods = rng.choice(WORDS["goods_en"])
    sold = {town: rng.randint(12, 980) for town in towns}
    rows = "\n".join(f"| {town} | {num} | {rng.randint(1, 40)} |" for town, num in sold.items())
    best, least = max(sold, key=sold.__getitem__), min(sold, key=sold.__getitem__)
    return chat(
        f"Here are last month's sales of {goods}.\n\n| town | sold | returned |\n| --- | --- | --- |\n{rows}\n\n"
        "Which town sold most, which least, and how far apart are they?",
        f"{best} sold most ({sold[best]}) and {least} least ({sold[least]}). The difference is {sold[best] - sold[least]}.",
    )


def extraction(rng: Rng) -> Entry:
    """A sentence to be turned into JSON."""
    who, town, trade = (rng.choice(WORDS[key]) for key in ("people_en", "towns_en", "trades_en"))
    age, year = rng.randint(19, 83), rng.randint(1961, 2029)
    record = {"name": who, "age": age, "town": town, "trade": trade, "since": year, "apprentices": None}
    return chat(
        f'Extract a JSON object with name, age, town, trade, since and apprentices (null if unknown): "{who}, now {age}, '
        f'has worked as a {trade} in {town} since {year}."',
        json.dumps(record, indent=2),
    )


def log(rng: Rng) -> Entry:
    """Lines of a server's log."""
    second, lines = rng.randint(0, 80_000), []
    for _ in range(rng.randint(8, 16)):
        second += rng.randint(1, 90)
        stamp = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{rng.randint(0, 999):03d}"
        level, said = rng.choice([
            ("INFO", f"GET /items/{rng.randint(1, 9999)} 200 {rng.randint(2, 300)}ms"),
            ("INFO", f"user={rng.randint(100, 999)} signed in from 10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.7"),
            ("WARN", f"pool is {rng.randint(80, 99)}% full, {rng.randint(1, 30)} waiting"),
            ("ERROR", f"write to shard {rng.randint(0, 15)} failed: EIO, attempt {rng.randint(1, 3)}/3"),
            ("DEBUG", f"cache {rng.choice(['hit', 'miss'])} key={rng.getrandbits(48):012x}"),
        ])  # fmt: skip
        lines.append(f"{stamp} {level:5} [{rng.choice(['api', 'auth', 'store', 'mail'])}] {said}")
    return {"text": "\n".join(lines)}


def code(rng: Rng) -> Entry:
    """A small function asked for and written, with a test."""
    noun, key, value = (w.replace(" ", "_") for w in rng.sample(WORDS["nouns"], 3))
    limit = rng.randint(2, 60)
    how = rng.choice(["total", "largest", "mean"])
    name = f"{how}_{value}"
    body = {
        "total": "sum(values)",
        "largest": "max(values, default=0)",
        "mean": "sum(values) / len(values) if values else 0.0",
    }[how]
    return chat(
        f"Write a Python function {name}(rows) that looks at the rows (dictionaries) whose '{key}' is above {limit} and "
        f"returns the {how} of their '{value}'. Add a doctest about a {noun}.",
        f'```python\ndef {name}(rows):\n    """The {how} {value} of rows with {key} above {limit}.\n\n'
        f'    >>> {name}([{{"name": "{noun}", "{key}": {limit + 1}, "{value}": 4}}])\n    {"4.0" if how == "mean" else 4}\n'
        f'    """\n    values = [row["{value}"] for row in rows if row["{key}"] > {limit}]\n    return {body}\n```',
    )


def support_en(rng: Rng) -> Entry:
    """A call to a help desk."""
    who, agent = two(rng, "people_en")
    device, fault, days = rng.choice(WORDS["devices_en"]), rng.choice(WORDS["faults_en"]), rng.randint(3, 400)
    covered = days <= 365
    return chat(
        f"Hello, this is {who}. The {device} I bought {days} days ago {fault}. Can you help?",
        f"Hello {who}, {agent} speaking. I'm sorry about the {device}. Before we send anything anywhere: please unplug it, "
        "wait two minutes, and try another socket. Does anything change?",
        f"No, it still {fault}.",
        (f"Then it needs a repair. You bought it {days} days ago, so it is "
         + ("within the one-year guarantee and costs you nothing. I'll e-mail you a label; put it in the original box."
            if covered else "just out of the one-year guarantee. An inspection costs 18 crowns, credited if you repair it.")),
        "How long will that take?",
        f"About {rng.randint(4, 12)} working days from the day it arrives. You'll get a message when it is on the bench.",
    )  # fmt: skip


def support_zh(rng: Rng) -> Entry:
    """The same in Chinese."""
    device, fault = rng.choice(WORDS["devices_zh"]), rng.choice(WORDS["faults_zh"])
    number = f"{rng.choice('ABCDK')}{rng.randint(100_000, 999_999)}"
    return chat(
        f"你好,我买的{device}{fault},订单号是{number},可以换货吗?",
        f"您好,很抱歉给您带来不便。已查到订单{number},仍在七天换货期内。请问包装和配件都还在吗?",
        "都在,就是外面的纸箱有点破。",
        f"纸箱破损不影响换货。快递员明天上午会上门取走旧的{device},新的同时发出,预计{rng.choice('二三四')}天内送达。",
        "好的,麻烦请他来之前打个电话。",
        "没问题,已经备注好了,祝您生活愉快。",
    )


def story_en(rng: Rng) -> Entry:
    """A short tale."""
    who, other = two(rng, "people_en")
    town, trade, weather, find = (rng.choice(WORDS[k]) for k in ("towns_en", "trades_en", "weather_en", "finds_en"))
    facts = " ".join(rng.sample(WORDS["facts_en"], 2))
    return {
        "text": f"In the year of {weather}, {who} came to {town} to learn from the {trade}. {facts} None of this had been in "
        f"the letter. On the {rng.choice(['second', 'fourth', 'ninth'])} evening, while clearing a shelf, {who} found {find}. "
        f'"Put it back," said {other}, without turning round. "It has waited for somebody else all these years, and it would '
        f'be rude to hurry it now." So it went back on the shelf, behind the {rng.choice(WORDS["goods_en"])}, and neither of '
        "them mentioned it again until the spring, when it was gone."
    }


def story_zh(rng: Rng) -> Entry:
    """A short tale in Chinese."""
    who, other = two(rng, "people_zh")
    town, trade, weather, find = (rng.choice(WORDS[k]) for k in ("towns_zh", "trades_zh", "weather_zh", "finds_zh"))
    facts = "".join(rng.sample(WORDS["facts_zh"], 2))
    return {
        "text": f"那一年,{weather}之后,{who}来到{town},跟着一位{trade}学手艺。{facts}这些事,信里都没有提过。某天傍晚收拾架子,"
        f"{who}翻出了{find}。{other}头也不回地说:“放回去吧,它等的不是你。”于是它又回到了架子上,排在{rng.choice(WORDS['goods_zh'])}"
        "后面,谁也没有再提起,直到来年开春,人们发现它不见了。"
    }


def report_en(rng: Rng) -> Entry:
    """A long text: a town described fact by fact, with figures."""
    town, neighbour = two(rng, "towns_en")
    people, boats = rng.randint(800, 90_000), rng.randint(3, 700)
    parts = [
        f"{town} is a town of {people:,} inhabitants, {rng.randint(4, 70)} km from {neighbour}. It has {boats} registered boats, "
        f"{rng.randint(1, 9)} schools and one bakery that is open on Sundays. {fact}"
        if number == 0 else fact
        for number, fact in enumerate(rng.sample(WORDS["facts_en"], 8))
    ]  # fmt: skip
    goods, trade = rng.choice(WORDS["goods_en"]), rng.choice(WORDS["trades_en"])
    parts.append(
        f"Its exports are {goods}: {rng.randint(10, 99)} % go to {neighbour}, the rest by sea. The last {trade} retired in "
        f"{rng.randint(1975, 2028)} and has been training successors ever since."
    )
    return {"text": "\n\n".join(" ".join(parts[i : i + 3]) for i in range(0, len(parts), 3))}


def report_zh(rng: Rng) -> Entry:
    """The same in Chinese."""
    town, neighbour = two(rng, "towns_zh")
    facts = rng.sample(WORDS["facts_zh"], 7)
    head = f"{town}距{neighbour}{rng.randint(4, 70)}公里,人口{rng.randint(800, 90_000)}人,在册船只{rng.randint(3, 700)}艘。"
    tail = f"当地的{rng.choice(WORDS['goods_zh'])}远近闻名,其中{rng.choice('三四五六七')}成销往{neighbour},其余由水路运出。"
    return {"text": "\n\n".join([head + "".join(facts[:3]), "".join(facts[3:]), tail])}


def translation(rng: Rng) -> Entry:
    """Three sentences, one way or the other."""
    pairs = rng.sample(WORDS["phrases"], 3)
    if rng.random() < 0.5:
        return chat("请翻译成英文:\n" + "\n".join(p[1] for p in pairs), "\n".join(p[0] for p in pairs))
    return chat("Translate into Chinese:\n" + "\n".join(p[0] for p in pairs), "\n".join(p[1] for p in pairs))


def words_task(rng: Rng) -> Entry:
    """A small task about a list of words."""
    words = rng.sample(WORDS["nouns"], rng.randint(5, 9))
    shown = ", ".join(words)
    tasks: list[tuple[str, str]] = [
        (f"Sort these words alphabetically: {shown}.", ", ".join(sorted(words))),
        (f"Write these words in capitals, one a line: {shown}.", "\n".join(word.upper() for word in words)),
        (f"Which of these words has the most letters? {shown}", f"{max(words, key=len)} ({max(map(len, words))} letters)"),
        (f"Reverse the order of this list: {shown}.", ", ".join(reversed(words))),
        (f"Number these and give the length of each: {shown}.",
         "\n".join(f"{i}. {word} ({len(word)})" for i, word in enumerate(words, 1))),
    ]  # fmt: skip
    return chat(*rng.choice(tasks))


def csv(rng: Rng) -> Entry:
    """Rows of a file."""
    lines = ["id,name,town,item,quantity,unit_price"]
    for number in range(rng.randint(8, 14)):
        who, town, item = (rng.choice(WORDS[key]) for key in ("people_en", "towns_en", "goods_en"))
        lines.append(f"{1000 + number},{who},{town},{item},{rng.randint(1, 40)},{rng.randint(100, 9999) / 100:.2f}")
    return {"text": "\n".join(lines)}


FAMILIES: tuple[Callable[[Rng], Entry], ...] = (
    purchase_en, purchase_zh, table, extraction, log, code, support_en, support_zh, story_en, story_zh, report_en,
    report_zh, translation, words_task, csv,
)  # fmt: skip


def texts() -> list[Entry]:
    """All texts, shuffled."""
    rng = random.Random(SEED)
    entries = written()
    seen = {json.dumps(entry) for entry in entries}
    while len(entries) < NUM_TEXTS:
        entry = FAMILIES[len(entries) % len(FAMILIES)](rng)
        if (key := json.dumps(entry)) not in seen:
            seen.add(key)
            entries.append(entry)
    rng.shuffle(entries)
    return entries


def main() -> None:
    """Write general.jsonl beside this file."""
    lines = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in texts())
    (HERE / "general.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
