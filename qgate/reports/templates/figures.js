// Draws the charts with Vega-Lite; colours are CSS variables, so the theme needs no second drawing.
const TEXT = { labelColor: "var(--muted)", titleColor: "var(--ink)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600 };
const CHART_CONFIG = {
  background: null,
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: { ...TEXT, gridColor: "var(--line)", domainColor: "var(--line)", tickColor: "var(--line)", titlePadding: 8, labelOverlap: true },
  axisX: { grid: false },
  axisY: { tickCount: 5 },
  legend: { ...TEXT, symbolStrokeWidth: 2 },
  header: { labelColor: "var(--ink)", labelFontWeight: 600 },
  text: { color: "var(--ink)" },
};

async function drawChart(figure) {
  const box = figure.querySelector(".plot");
  const spec = JSON.parse(figure.querySelector(".spec").textContent);
  if (spec.facet) {
    figure.classList.add("wide");
    spec.columns = Math.max(1, Math.floor((box.clientWidth - 50) / (spec.spec.width + 20)));
  }
  const legend = { ...CHART_CONFIG.legend, columns: Math.max(1, Math.floor(box.clientWidth / 150)) };
  const compiled = vegaLite.compile(spec, { config: { ...CHART_CONFIG, legend }, logger: vega.logger(vega.Error) }).spec;
  const runtime = vega.parse(compiled, null, { ast: true });
  const view = new vega.View(runtime, { renderer: "svg", container: box, expr: vega.expressionInterpreter, hover: true, logLevel: vega.Error });
  await view.runAsync();
  if (!spec.facet) new ResizeObserver(() => { view.width(Math.max(120, box.clientWidth - chartPadding(view))).runAsync(); }).observe(box);
}

function chartPadding(view) {
  const padding = view.padding();
  return (padding.left ?? padding) + (padding.right ?? padding);
}

// Draws what is open, one chart whenever the browser is idle; the rest when its fold is opened.
function startCharts() {
  const waiting = [...document.querySelectorAll("figure.chart")].filter((figure) => !figure.closest("details:not([open])"));
  drawAll(waiting, () => { root.dataset.charts = "drawn"; });
  document.querySelectorAll("details.more").forEach((fold) => {
    fold.addEventListener("toggle", () => drawAll([...fold.querySelectorAll("figure.chart")], () => {}), { once: true });
  });
}

function drawAll(waiting, done) {
  const later = window.requestIdleCallback || ((call) => setTimeout(call, 20));
  const next = () => {
    const figure = waiting.shift();
    if (!figure) { done(); return; }
    drawChart(figure).catch((error) => {
      figure.querySelector(".plot").append(make("p", "muted", "This chart could not be drawn; its figures are below."));
      console.error(error);
    }).finally(() => later(next));
  };
  later(next);
}
