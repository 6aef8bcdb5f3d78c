// Word-level differences: what of `before` is gone and what of `after` is new, as runs of [text, changed].
const WORDS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]|[\p{L}\p{M}\p{N}_'’]+|\s+|[^]/gu;
const WINDOW = 900; // words compared at once: a table of 900 × 900 takes about 5 ms

function wordsOf(text) {
  return text.match(WORDS) || [];
}

function commonStart(a, b) {
  let count = 0;
  while (count < a.length && count < b.length && a[count] === b[count]) count += 1;
  return count;
}

function commonEnd(a, b, start) {
  let count = 0;
  const most = Math.min(a.length, b.length) - start;
  while (count < most && a[a.length - 1 - count] === b[b.length - 1 - count]) count += 1;
  return count;
}

// The longest common subsequence of a and b as blocks [start in a, start in b, length] (dynamic programming).
function commonBlocks(a, b) {
  const width = b.length + 1;
  const table = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = a[i] === b[j]
        ? table[(i + 1) * width + j + 1] + 1
        : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const blocks = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      const last = blocks[blocks.length - 1];
      if (last && last[0] + last[2] === i && last[1] + last[2] === j) last[2] += 1;
      else blocks.push([i, j, 1]);
      i += 1;
      j += 1;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return blocks;
}

// Drops blocks that are shorter than the changes on both their sides: a shared "the" says nothing.
function meaningful(blocks, a, b) {
  const size = (words, from, to) => { let sum = 0; for (let at = from; at < to; at += 1) sum += words[at].trim().length; return sum; };
  const end = [a.length, b.length, 0];
  let kept = blocks;
  for (let before = -1; before !== kept.length;) {
    before = kept.length;
    const last = [0, 0, 0];
    const next = [];
    kept.forEach((block, at) => {
      const left = next[next.length - 1] || last;
      const right = kept[at + 1] || end;
      const own = size(a, block[0], block[0] + block[2]);
      const gapLeft = Math.max(size(a, left[0] + left[2], block[0]), size(b, left[1] + left[2], block[1]));
      const gapRight = Math.max(size(a, block[0] + block[2], right[0]), size(b, block[1] + block[2], right[1]));
      if (own > Math.min(gapLeft, gapRight)) next.push(block);
    });
    kept = next;
  }
  return kept;
}

function runs(words, same) {
  const found = [];
  words.forEach((word, index) => {
    const state = same[index] ? 0 : 1;
    if (found.length && found[found.length - 1][1] === state) found[found.length - 1][0] += word;
    else found.push([word, state]);
  });
  return found;
}

function compare(before, after) {
  const a = wordsOf(before);
  const b = wordsOf(after);
  const start = commonStart(a, b);
  const end = commonEnd(a, b, start);
  const sameA = new Uint8Array(a.length).fill(1, 0, start).fill(1, a.length - end);
  const sameB = new Uint8Array(b.length).fill(1, 0, start).fill(1, b.length - end);
  const middleA = a.slice(start, a.length - end);
  const middleB = b.slice(start, b.length - end);
  for (let at = 0; at < middleA.length && at < middleB.length; at += WINDOW) {
    const partA = middleA.slice(at, at + WINDOW);
    const partB = middleB.slice(at, at + WINDOW);
    for (const [i, j, length] of meaningful(commonBlocks(partA, partB), partA, partB)) {
      sameA.fill(1, start + at + i, start + at + i + length);
      sameB.fill(1, start + at + j, start + at + j + length);
    }
  }
  return { before: runs(a, sameA), after: runs(b, sameB) };
}
