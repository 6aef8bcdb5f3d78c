// Unpacks the embedded answers, filters them and orders them. Touches no markup.
async function unpack(id) {
  const source = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(source.length);
  for (let index = 0; index < source.length; index += 1) bytes[index] = source.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

class Answers {
  constructor(data, facts) {
    Object.assign(this, data);
    this.facts = facts;
    this.count = this.rows.arm.length;
    this.folded = new Array(this.texts.length);
    this.pairIds = this.pairs.map((pair) => [this.word(pair.evalset), pair.item, this.word(pair.profile), pair.seed].join("/"));
    this.defectWords = this.rows.defects.map((hits) => hits.map((hit) => hit[0]));
  }

  armName(row) {
    const [name, replicate] = this.arms[this.rows.arm[row]];
    if (name === "baseline") return `baseline again #${replicate}`;
    return replicate ? `${name} again #${replicate}` : name;
  }

  isMain(row) {
    const [name, replicate] = this.arms[this.rows.arm[row]];
    return name !== "baseline" && replicate === 0;
  }

  pair(row) { return this.pairs[this.rows.pair[row]]; }
  word(place) { return place < 0 ? null : this.words[place]; }
  text(place) { return place < 0 ? null : this.texts[place][0]; }
  length(place) { return place < 0 ? 0 : this.texts[place][1]; }

  requestId(row) { return this.pairIds[this.rows.pair[row]]; }
  key(row) { return `${this.armName(row)}|${this.requestId(row)}`; }

  lost(row) {
    const before = this.pair(row).base?.score;
    const after = this.rows.score[row];
    return before === null || before === undefined || after === null ? (after === null ? 2 : 0) : before - after;
  }

  foldedText(place) {
    if (place < 0) return "";
    if (this.folded[place] === undefined) this.folded[place] = this.texts[place][0].toLowerCase();
    return this.folded[place];
  }

  // Rows that pass every filter; null filters let everything pass. `arm` null means all but repeats.
  select(filter) {
    const wanted = filter.text.toLowerCase();
    const found = [];
    for (let row = 0; row < this.count; row += 1) {
      if (filter.arm === null ? !this.isMain(row) : this.armName(row) !== filter.arm) continue;
      const pair = this.pair(row);
      if (filter.evalset !== null && pair.evalset !== filter.evalset) continue;
      if (filter.profile !== null && pair.profile !== filter.profile) continue;
      if (filter.language !== null && pair.language !== filter.language) continue;
      if (filter.kind !== null && pair.kind !== filter.kind) continue;
      if (!this.hasDefect(row, filter.defect)) continue;
      if (wanted && !pair.item.toLowerCase().includes(wanted) && !this.foldedText(this.rows.text[row]).includes(wanted)) continue;
      found.push(row);
    }
    return this.ordered(found, filter.order);
  }

  hasDefect(row, defect) {
    if (defect === null) return true;
    if (defect === "any") return this.defectWords[row].length > 0;
    if (defect === "none") return this.defectWords[row].length === 0;
    if (defect === "missing") return this.rows.text[row] < 0;
    if (defect === "different") return this.rows.identical[row] !== 1;
    return this.defectWords[row].includes(defect);
  }

  ordered(found, order) {
    const last = (value) => (value === null || value < 0 ? Infinity : value);
    const orders = {
      lost: (a, b) => this.lost(b) - this.lost(a),
      distance: (a, b) => (this.rows.sim[a] ?? -1) - (this.rows.sim[b] ?? -1),
      early: (a, b) => { const x = last(this.rows.div[a]); const y = last(this.rows.div[b]); return x === y ? 0 : x - y; },
      item: (a, b) => { const x = this.requestId(a); const y = this.requestId(b); return x < y ? -1 : x > y ? 1 : 0; },
    };
    return orders[order] ? found.sort((a, b) => orders[order](a, b) || a - b) : found;
  }
}
