// Model text becomes text nodes, never markup; characters that act or hide are shown by their number.
const ACTING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\uFFFD]/u;
const HARMLESS = new Set(["\n", "\t", "\u200C", "\u200D"]);
const NAMES = { "\u0000": "NUL", "\u001B": "ESC", "\r": "CR", "\u200E": "LRM", "\u200F": "RLM", "\u202D": "LRO", "\u202E": "RLO" };

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function appendVisible(parent, text) {
  if (!ACTING.test(text)) {
    if (text) parent.append(text);
    return;
  }
  let plain = "";
  for (const character of text) {
    if (HARMLESS.has(character) || !ACTING.test(character)) {
      plain += character;
      continue;
    }
    if (plain) parent.append(plain);
    plain = "";
    const number = "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    const chip = make("span", "ctl", NAMES[character] || number);
    chip.title = number;
    parent.append(chip);
  }
  if (plain) parent.append(plain);
}

function oneLine(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
}
