// The list of answers: only the rows in view exist, so ten thousand scroll as ten do.
const ROW_HEIGHT = 58;
const MARGIN_ROWS = 6;

class List {
  constructor(answers, onChoose) {
    this.answers = answers;
    this.onChoose = onChoose;
    this.box = document.getElementById("list");
    this.inner = document.getElementById("rows");
    this.found = [];
    this.chosen = -1;
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.inner.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.choose(Number(row.dataset.place));
    });
    addEventListener("resize", () => this.draw());
  }

  show(found, place) {
    this.found = found;
    this.inner.style.height = `${found.length * ROW_HEIGHT}px`;
    this.chosen = -1;
    this.box.scrollTop = 0;
    if (found.length) this.choose(Math.max(0, place));
    else { this.draw(); this.onChoose(-1); }
  }

  choose(place) {
    this.chosen = Math.min(Math.max(place, 0), this.found.length - 1);
    const top = this.chosen * ROW_HEIGHT;
    const bottom = top + ROW_HEIGHT - this.box.clientHeight;
    if (this.box.scrollTop > top) this.box.scrollTop = top;
    else if (this.box.scrollTop < bottom) this.box.scrollTop = bottom;
    this.draw();
    this.onChoose(this.found[this.chosen]);
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW_HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.found.length, End: this.found.length };
    if (!(event.key in steps) || !this.found.length) return;
    event.preventDefault();
    this.choose(this.chosen + steps[event.key]);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_HEIGHT) - MARGIN_ROWS);
    const last = Math.min(this.found.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW_HEIGHT) + MARGIN_ROWS);
    const rows = [];
    for (let place = first; place < last; place += 1) rows.push(this.row(place));
    this.inner.replaceChildren(...rows);
    if (this.chosen >= first && this.chosen < last) this.box.setAttribute("aria-activedescendant", `row-${this.chosen}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  row(place) {
    const row = this.found[place];
    const { answers } = this;
    const pair = answers.pair(row);
    const element = make("div", "row");
    element.id = `row-${place}`;
    element.dataset.place = place;
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", String(place === this.chosen));
    element.setAttribute("aria-posinset", place + 1);
    element.setAttribute("aria-setsize", this.found.length);
    element.style.top = `${place * ROW_HEIGHT}px`;
    const head = make("div", "first");
    const swatch = make("i", "swatch");
    swatch.style.background = answers.facts.colours[answers.arms[answers.rows.arm[row]][0]] || "var(--v0)";
    const name = make("span", "id");
    appendVisible(name, oneLine(pair.item));
    head.append(swatch, name, make("span", "score", `${score(pair.base?.score)} → ${score(answers.rows.score[row])}`));
    const foot = make("div", "second");
    const defects = [...new Set(answers.defectWords[row])].map((word) => answers.word(word).replaceAll("_", " "));
    if (answers.rows.text[row] < 0) defects.unshift("no answer");
    if (defects.length) foot.append(make("span", "defect", defects.join(", ")));
    foot.append(make("span", "", `${answers.armName(row)} · ${answers.word(pair.evalset)} · ${answers.word(pair.profile)} · ${answers.word(pair.language)}`));
    element.append(head, foot);
    return element;
  }
}

function score(value) {
  return value === null || value === undefined ? "—" : String(Math.round(value * 100) / 100);
}
