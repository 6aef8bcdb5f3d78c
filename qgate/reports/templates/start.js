// Wires the page once it is there: theme at once, then the answers, then the charts.
const ALL = "";

function option(value, label) {
  const element = make("option", "", label);
  element.value = value;
  return element;
}

function fillFilters(answers) {
  const places = (name) => [...new Set(answers.pairs.map((pair) => pair[name]))].sort((a, b) => (answers.word(a) < answers.word(b) ? -1 : 1));
  for (const name of ["evalset", "profile", "language", "kind"]) {
    document.getElementById(`f-${name}`).replaceChildren(option(ALL, "all"), ...places(name).map((place) => option(place, answers.word(place))));
  }
  const arms = [...new Set(Array.from({ length: answers.count }, (_, row) => answers.armName(row)))].sort();
  document.getElementById("f-arm").replaceChildren(option(ALL, "all variants"), ...arms.map((name) => option(name, name)));
  const defects = [...new Set(answers.defectWords.flat())].sort((a, b) => (answers.word(a) < answers.word(b) ? -1 : 1));
  document.getElementById("f-defect").replaceChildren(
    option(ALL, "any answer"), option("any", "any defect"), option("none", "no defect"), option("missing", "no answer"), option("different", "not identical"),
    ...defects.map((place) => option(place, answers.word(place).replaceAll("_", " "))),
  );
}

function readFilter() {
  const value = (name) => document.getElementById(`f-${name}`).value;
  const place = (name) => (value(name) === ALL ? null : Number(value(name)));
  const defect = value("defect");
  return {
    arm: value("arm") === ALL ? null : value("arm"),
    evalset: place("evalset"),
    profile: place("profile"),
    language: place("language"),
    kind: place("kind"),
    defect: defect === ALL ? null : /^\d+$/.test(defect) ? Number(defect) : defect,
    order: value("order"),
    text: value("text").trim(),
  };
}

async function startAnswers() {
  const count = document.getElementById("count");
  if (!("DecompressionStream" in window)) {
    count.textContent = "This browser cannot unpack the answers (DecompressionStream); use a version of 2023 or later.";
    return;
  }
  const answers = new Answers(await unpack("data-answers"), JSON.parse(document.getElementById("data-facts").textContent));
  const detail = new Detail(answers);
  const list = new List(answers, (row) => detail.show(row ?? -1));
  const form = document.getElementById("filters");
  const apply = (wantedKey) => {
    const began = performance.now();
    const found = answers.select(readFilter());
    list.show(found, wantedKey ? found.findIndex((row) => answers.key(row) === wantedKey) : 0);
    count.textContent = `${found.length.toLocaleString("en")} of ${answers.count.toLocaleString("en")} answers${readFilter().arm === null ? "; second runs can be chosen under Variant" : ""}`;
    root.dataset.filterMs = (performance.now() - began).toFixed(1);
  };
  fillFilters(answers);
  form.addEventListener("input", () => apply());
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  document.getElementById("browser").hidden = false;
  const open = () => followLink(answers, apply);
  addEventListener("hashchange", open);
  open();
  root.dataset.answers = "ready";
}

// A link like report.html#gptq|instruction/x/warm/3 opens that answer, whatever the filters are.
function followLink(answers, apply) {
  let wanted = "";
  try { wanted = decodeURIComponent(location.hash.slice(1)); } catch { /* not one of our links */ }
  const isLink = wanted.includes("|");
  if (isLink) {
    for (const field of document.getElementById("filters").elements) if (field.id !== "f-order") field.value = ALL;
    document.getElementById("f-arm").value = wanted.split("|")[0];
    document.getElementById("answers").scrollIntoView();
  }
  if (isLink || root.dataset.answers !== "ready") apply(isLink ? wanted : undefined);
}

// On a phone the criteria of ten variants are a long way down: only what did not pass starts open.
function foldOnPhones() {
  if (!matchMedia("(max-width: 760px)").matches) return;
  document.querySelectorAll("details.tier.pass").forEach((part) => { part.open = false; });
}

startTheme();
addEventListener("DOMContentLoaded", () => {
  foldOnPhones();
  const later = window.requestIdleCallback || ((call) => setTimeout(call, 20));
  later(() => startAnswers().catch((error) => {
    document.getElementById("count").textContent = "The answers in this file could not be unpacked.";
    console.error(error);
  }).finally(startCharts));
});
addEventListener("beforeprint", () => document.querySelectorAll("details.tier, details.fold:not(.more)").forEach((part) => { part.open = true; }));
