// The chosen answer beside the baseline's: differences, defects where they begin, facts, and the request as curl.
const SHOWN_CHARACTERS = 12_000;
const PROMPT_CHARACTERS = 600; // of a longer prompt its beginning and, where the question mostly stands, its end
const ENDS = { length: "cut at the token limit", stop: "complete" };

class Detail {
  constructor(answers) {
    this.answers = answers;
    this.box = document.getElementById("detail");
    this.unpacked = null;
  }

  show(row) {
    this.box.scrollTop = 0;
    if (row < 0) {
      this.box.replaceChildren(make("p", "muted", "No answer passes these filters."));
      return;
    }
    const { answers } = this;
    const title = make("h3");
    appendVisible(title, oneLine(answers.requestId(row)));
    this.box.replaceChildren(title, this.chips(row), this.prompt(row), this.sides(row, SHOWN_CHARACTERS), this.tools(row), this.request(row));
  }

  chips(row) {
    const { answers } = this;
    const { rows } = answers;
    const pair = answers.pair(row);
    const chips = make("ul", "chips");
    const add = (text, className) => { const chip = make("li", className); appendVisible(chip, oneLine(text)); chips.append(chip); };
    for (const [word, , detail] of rows.defects[row]) {
      const more = answers.word(detail);
      add(answers.word(word).replaceAll("_", " ") + (more ? `: ${more}` : ""), "defect");
    }
    if (rows.identical[row] === 1) add("identical");
    else if (rows.div[row] >= 0) add(`differs from token ${rows.div[row]}`);
    if (rows.sim[row] !== null && rows.identical[row] !== 1) add(`${Math.round(rows.sim[row] * 100)} % similar`);
    add(`${answers.word(pair.kind)} · ${answers.word(pair.language)} · difficulty ${pair.difficulty}`);
    add(`temperature ${pair.temperature}`);
    for (const [key, value] of Object.entries(pair.slices)) add(`${key} ${value}`);
    if (pair.prompt_tokens !== null) add(`${pair.prompt_tokens} prompt tokens`);
    return chips;
  }

  prompt(row) {
    const box = make("div", "asked");
    this.requests().then(({ index, prompts }) => {
      const found = index[this.answers.requestId(row)];
      if (!found) return;
      const messages = prompts[found[0]];
      const { role, content } = messages[messages.length - 1];
      const text = Array.from(content);
      const cut = text.length > PROMPT_CHARACTERS;
      const shown = make("div", "said");
      shown.dir = "auto";
      appendVisible(shown, cut ? text.slice(0, PROMPT_CHARACTERS / 3).join("") : content);
      if (cut) {
        shown.append(make("span", "none", ` … ${(text.length - PROMPT_CHARACTERS).toLocaleString("en")} characters … `));
        appendVisible(shown, text.slice(-PROMPT_CHARACTERS * 2 / 3).join(""));
      }
      const title = make("h4");
      appendVisible(title, oneLine(`Prompt${messages.length > 1 ? ` · the last of ${messages.length} messages, from ${role}` : ""}`));
      box.replaceChildren(title, shown);
    });
    return box;
  }

  requests() {
    this.unpacked ??= unpack("data-requests");
    return this.unpacked;
  }

  sides(row, limit) {
    const { answers } = this;
    const base = answers.pair(row).base;
    const mine = answers.rows;
    const before = base ? answers.text(base.text) : null;
    const after = answers.text(mine.text[row]);
    const cut = Math.max(before?.length ?? 0, after?.length ?? 0) > limit;
    const parts = before !== null && after !== null
      ? compare(before.slice(0, limit), after.slice(0, limit))
      : { before: before === null ? null : [[before.slice(0, limit), 0]], after: after === null ? null : [[after.slice(0, limit), 0]] };
    const box = make("div");
    const pair = make("div", "pair");
    const own = { score: mine.score[row], tokens: mine.tokens[row], finish: mine.finish[row], status: mine.status[row], text: mine.text[row] };
    pair.append(
      this.side("Baseline", base, parts.before, "gone", base ? base.defects : []),
      this.side(answers.armName(row), own, parts.after, "new", mine.defects[row]),
    );
    box.append(pair);
    if (before !== null && after !== null && before !== after) {
      const key = make("p", "muted small legend");
      key.append(make("mark", "gone", "only in the baseline's"), " ", make("mark", "new", "only in the variant's"));
      box.append(key);
    }
    if (cut) {
      const more = make("button", "quiet", `Show all ${Math.max(before?.length ?? 0, after?.length ?? 0).toLocaleString("en")} characters`);
      more.type = "button";
      more.addEventListener("click", () => box.replaceWith(this.sides(row, Infinity)));
      const tools = make("div", "tools");
      tools.append(more);
      box.append(tools);
    }
    return box;
  }

  side(name, facts, parts, className, hits) {
    const { answers } = this;
    const box = make("div");
    const said = facts ? `score ${score(facts.score)} · ${facts.tokens ?? "—"} tokens · ${ending(answers.word(facts.finish) ?? answers.word(facts.status).split(":")[0])}` : "not there";
    const title = make("h4");
    appendVisible(title, oneLine(`${name} · ${said}`));
    const text = make("div", "said");
    text.dir = "auto";
    if (parts === null) {
      const none = make("span", "none");
      appendVisible(none, oneLine(facts ? `no answer (${answers.word(facts.status)})` : "the baseline has no answer"));
      text.append(none);
    }
    else if (!parts.length || (parts.length === 1 && parts[0][0] === "")) text.append(make("span", "none", "empty"));
    else this.fill(text, parts, className, hits);
    box.append(title, text);
    if (facts && facts.text >= 0 && answers.length(facts.text) > answers.text(facts.text).length) {
      const whole = answers.length(facts.text).toLocaleString("en");
      box.append(make("p", "muted small", `Cut here: the answer has ${whole} characters; answers.parquet holds them all.`));
    }
    return box;
  }

  // Writes the runs as text; a flag stands where each defect begins. Offsets count code points, as Python does.
  fill(parent, parts, className, hits) {
    const flags = hits.filter((hit) => hit[1] > 0).map((hit) => [hit[1], this.answers.word(hit[0])]).sort((a, b) => a[0] - b[0]);
    let offset = 0;
    for (const [text, changed] of parts) {
      const target = changed ? make("mark", className) : parent;
      let rest = flags.length ? Array.from(text) : text;
      while (flags.length && flags[0][0] < offset + rest.length) {
        const cut = Math.max(0, flags[0][0] - offset);
        appendVisible(target, rest.slice(0, cut).join(""));
        target.append(make("span", "flag", flags.shift()[1].replaceAll("_", " ")));
        rest = rest.slice(cut);
        offset += cut;
      }
      appendVisible(target, typeof rest === "string" ? rest : rest.join(""));
      offset += rest.length;
      if (changed) parent.append(target);
    }
  }

  tools(row) {
    const tools = make("div", "tools");
    const add = (label, text) => {
      const button = make("button", "quiet", label);
      button.type = "button";
      button.addEventListener("click", async () => {
        const done = await copy(await text());
        button.textContent = done ? "Copied" : "Could not copy";
        setTimeout(() => { button.textContent = label; }, 1500);
      });
      tools.append(button);
    };
    add("Copy link", async () => `${location.href.split("#")[0]}#${encodeURIComponent(this.answers.key(row))}`);
    add("Copy as curl", async () => (await this.curl(row)) ?? "");
    return tools;
  }

  request(row) {
    const box = make("details");
    box.append(make("summary", "", "Whole request as curl"));
    box.addEventListener("toggle", async () => {
      if (!box.open || box.childElementCount > 1) return;
      const command = await this.curl(row);
      if (command === null) {
        box.append(make("p", "muted", "This request is not in the file."));
        return;
      }
      const code = make("pre", "code");
      code.tabIndex = 0;
      appendVisible(code, command);
      box.append(code);
    });
    return box;
  }

  async curl(row) {
    const { index, prompts, samplings } = await this.requests();
    const found = index[this.answers.requestId(row)];
    if (!found) return null;
    const [prompt, sampling, seed] = found;
    const model = this.answers.arms[this.answers.rows.arm[row]][0];
    const body = { model, messages: prompts[prompt], ...samplings[sampling], seed };
    return `curl -s http://localhost:8000/v1/chat/completions \\\n  -H 'Content-Type: application/json' \\\n  -d '${shellJson(body)}'`;
  }
}

function ending(word) {
  return ENDS[word] ?? word;
}

// JSON for single quotes: the quote itself, and whatever acts or hides, as \u escapes, so that pasting is safe.
function shellJson(value) {
  const escaped = (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0");
  return JSON.stringify(value, null, 1).replace(/['\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/g, (unit) =>
    escaped(unit));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
