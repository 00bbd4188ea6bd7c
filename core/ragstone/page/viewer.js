"use strict";
// Shows what a page's JSON holds: a report (alone, against another one, of live traffic), or samples to label.
// Every text from outside becomes a text node or an attribute's value, never markup, and is the key of a Map only: an
// object knows "constructor", too.
const data = JSON.parse(document.getElementById("data").textContent);
const meanings = new Map(Object.entries(data.meanings));
const main = document.querySelector("main");

// --- Elements ---------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== false && value !== undefined) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== ""));
  return element;
}
const make = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
const bdi = (text) => make("bdi", null, text);
const soft = (...children) => make("p", { class: "soft" }, ...children);
const card = (title, attributes, ...children) => make("section", { class: "card", ...attributes }, make("h2", null, title), ...children);
const folded = (title, ...children) => make("details", null, make("summary", { class: "soft" }, title), ...children);
const listed = (sentences) => (sentences.length ? make("ul", null, sentences.map((each) => make("li", { dir: "auto" }, each))) : "");

function button(label, run, attributes) {
  const made = make("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", run);
  return made;
}

// A table that scrolls where it is too wide. The first `texts` columns hold text.
function tableOf(caption, head, rows, texts = 1) {
  const kind = (i) => (i < texts ? "text" : "number");
  const cell = (content, i) => make("td", { class: kind(i) }, typeof content === "string" ? bdi(content) : content);
  const inner = make("table", null, make("caption", null, bdi(caption)),
    make("thead", null, make("tr", null, head.map((name, i) => make("th", { scope: "col", class: kind(i) }, bdi(name))))),
    make("tbody", null, rows.map((row) => make("tr", null, row.map(cell)))));
  return make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption }, inner);
}

// --- Words and numbers ------------------------------------------------------------------------------------------

const number = (value, digits = 3) => value.toFixed(digits).replace("-", "\u2212");
const signed = (value) => (value > 0 ? "+" : "") + number(value);
const whole = (n) => n.toLocaleString("en");
const count = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;
const words = (text) => text.replaceAll("_", " ");
const characters = (text) => Array.from(text); // offsets count characters, not UTF-16 units

// A text with marks: [start, end, attributes, run] each; where several overlap, the first one's.
function marked(text, marks) {
  const letters = characters(text), pieces = [];
  const edges = [...new Set([...marks.flatMap((mark) => [mark[0], mark[1]]), letters.length])].sort((a, b) => a - b);
  let at = 0;
  for (const edge of edges) {
    const piece = letters.slice(at, edge).join("");
    const over = marks.filter((mark) => mark[0] <= at && at < mark[1]);
    if (piece) pieces.push(over.length ? markOf(piece, over) : piece);
    at = Math.max(at, edge);
  }
  return pieces;
}

function markOf(piece, over) {
  const [, , attributes, run] = over[0];
  const title = [...new Set(over.map((mark) => mark[2].title).filter(Boolean))].join("; ");
  const here = over.some((mark) => mark[2].class) ? "here" : null;
  const made = make("mark", { ...attributes, title, class: here, role: run && "button", tabindex: run && 0 }, piece);
  if (run) {
    made.addEventListener("click", run);
    made.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); run(); } });
  }
  return made;
}

function passageOf(name, pieces) {
  const text = make("div", { class: "text", dir: "auto", tabindex: 0, role: "region", "aria-label": name }, pieces);
  return make("div", { class: "passage" }, make("h3", null, bdi(name)), text);
}

function save(name, lines) {
  const content = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type: "application/jsonl" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// What a browser keeps of a page; not all of them do.
function keep(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* the download is all there is */ }
}
function kept(key) {
  try { return JSON.parse(localStorage.getItem(key)); } catch { return null; }
}

// --- A report ---------------------------------------------------------------------------------------------------

function report() {
  const { metrics } = data;
  const HUES = [200, 35, 280, 330, 60, 240, 15, 175, 300, 100]; // a green mark would look like praise
  metrics.forEach((metric, i) => { metric.hue = HUES[i % HUES.length]; });
  const against = data.also.find((each) => each.old), old = new Map(Object.entries(against ? against.old : {}));
  const alarms = data.also.flatMap((each) => each.alarms || []);

  // 0 is the worst value of the metric's scale, 1 the best.
  function share(value, metric) {
    const part = Math.min(1, Math.max(0, (value - metric.low) / (metric.high - metric.low)));
    return metric.up ? part : 1 - part;
  }
  function heat(element, value, metric) {
    element.classList.add("heat");
    element.style.setProperty("--share", `${Math.round(100 * share(value, metric))}%`);
    return element;
  }

  main.replaceChildren();
  fill(main, null, [
    make("h1", null, bdi(data.title)),
    make("p", { class: "conclusion", dir: "auto" }, data.conclusion),
    soft(data.facts.map((fact, i) => [i ? " \u00b7 " : "", bdi(fact)]).flat()),
    alarms.length ? card("Alarm", { class: "card alarm" }, listed(alarms)) : "",
    data.also.map(alsoOf), scores(), samples(), slices(),
    data.bad_rows.length ? card("Rows that held no sample", {}, tableOf("By line of the input, from 1", ["line", "why"], data.bad_rows, 2)) : "",
  ]);

  // --- its numbers

  function alsoOf(each) {
    const table = each.rows.length ? tableOf(each.title, each.head, each.rows) : "";
    if (table) table.querySelector("caption").hidden = true; // the card has this title
    if (each !== against) return card(bdi(each.title), {}, table, listed(each.remarks));
    const plots = each.metrics.map((metric) => make("div", { class: "against" },
      make("h3", null, bdi(metric.name)),
      make("p", null, make("b", { class: "better" }, `better ${whole(metric.better)}`), `, same ${whole(metric.same)}, `,
        make("b", { class: "worse" }, `worse ${whole(metric.worse)}`)),
      forest(metric, each.metrics)));
    return card(bdi(each.title), {}, make("div", { class: "sides" }, plots), listed(each.remarks), folded("All numbers", table));
  }

  // A difference with its interval, and the line at 0.
  function forest(metric, all) {
    if (metric.difference === null) return soft("No sample has a score in both.");
    const far = Math.max(0.05, ...all.flatMap((each) => [each.difference, each.low, each.high]).map((value) => Math.abs(value || 0)));
    const x = (value) => 100 + (95 * value) / far;
    const name = `difference ${signed(metric.difference)}${metric.low === null ? "" : `, 95 % interval ${signed(metric.low)} to ${signed(metric.high)}`}`;
    return make("div", null, draw("svg", { viewBox: "0 0 200 24", class: "forest", role: "img", "aria-label": name },
      draw("line", { x1: 100, x2: 100, y1: 2, y2: 22, class: "zero" }),
      metric.low === null ? "" : draw("line", { x1: x(metric.low), x2: x(metric.high), y1: 12, y2: 12, class: "reach" }),
      draw("circle", { cx: x(metric.difference), cy: 12, r: 4 })), soft(name));
  }

  function scores() {
    if (!metrics.length) return card("Scores", {}, listed(data.remarks));
    const { head, rows } = data.table;
    return card("Scores", { id: "scores" }, make("div", { class: "scores" }, metrics.map(scoreOf)), listed(data.remarks),
      folded("All numbers", tableOf("Mean score by metric", head, rows)), folded("How to read it", data.notes.map((note) => soft(note))));
  }

  function scoreOf(metric) {
    const mean = make("p", { class: "mean" }, metric.mean === null ? "\u2013" : number(metric.mean));
    return make("article", { class: "score" },
      make("h3", null, make("span", { class: "swatch", style: `--hue:${metric.hue}` }), bdi(metric.name)),
      metric.question ? make("p", { dir: "auto" }, metric.question) : "",
      metric.mean === null ? mean : heat(mean, metric.mean, metric),
      metric.mean === null ? "" : reachOf(metric),
      soft(metric.interval ? `95 % interval ${metric.ends}` : metric.ends, ` \u00b7 ${metric.scored}`),
      metric.unscored.length ? make("p", { class: "word" }, `unscored: ${metric.unscored.map(([why, n]) => `${whole(n)} ${why}`).join(", ")}`) : "",
      lineOf(metric),
      metric.facts.map((fact) => soft(bdi(fact))),
      metric.bins.length ? folded("Distribution of scores", tableOf(`Distribution of ${metric.name}`, ["from", "bar", "share"],
        metric.bins.map(([from, part]) => [from, barOf(part), `${number(100 * part, 1)} %`]), 2)) : "");
  }

  function barOf(part) {
    return draw("svg", { viewBox: "0 0 100 10", class: "bar", "aria-hidden": "true" }, draw("rect", { width: 100 * part, height: 10 }));
  }

  // The mean and its interval on the metric's scale.
  function reachOf(metric) {
    const x = (value) => 2 + (96 * (Math.min(metric.high, Math.max(metric.low, value)) - metric.low)) / (metric.high - metric.low);
    const [low, high] = metric.interval || [metric.mean, metric.mean];
    return draw("svg", { viewBox: "0 0 100 8", class: "bar", role: "img", "aria-label": `${number(metric.mean)} on a scale from ${metric.low} to ${metric.high}` },
      draw("line", { x1: 2, x2: 98, y1: 4, y2: 4, class: "zero" }), draw("line", { x1: x(low), x2: x(high), y1: 4, y2: 4, class: "reach" }),
      draw("circle", { cx: x(metric.mean), cy: 4, r: 2.5 }));
  }

  // The mean over time, with its intervals: the scale stands left of it, its first and last date below.
  function lineOf(metric) {
    const points = metric.time || [];
    if (points.length < 2) return "";
    const first = points[0][0], span = points[points.length - 1][0] - first;
    const x = (at) => 4 + (292 * (at - first)) / span;
    const y = (value) => 56 - (52 * (Math.min(metric.high, Math.max(metric.low, value)) - metric.low)) / (metric.high - metric.low);
    const known = points.filter((point) => point[3] !== null);
    const band = [...known.map((point) => [point[0], point[4]]), ...known.map((point) => [point[0], point[3]]).reverse()];
    const path = (of) => of.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const part = ["minute", "hour"].includes(metric.unit) ? [5, 16] : [0, 10]; // the day and time, or the date alone
    const [from, to] = [points[0], points[points.length - 1]].map((point) => point[1].slice(...part));
    const grid = [4, 56].map((height) => draw("line", { x1: 4, x2: 296, y1: height, y2: height, class: "zero" }));
    const line = draw("svg", { viewBox: "0 0 300 60", role: "img", "aria-label": `${metric.name} per ${metric.unit}, from ${from} to ${to} (UTC)` },
      grid, draw("polygon", { points: path(band), class: "band" }), draw("polyline", { points: path(points.map((point) => [point[0], point[2]])) }));
    const labels = (...texts) => make("div", null, texts.map((text) => make("span", null, text)));
    return make("div", { class: "line soft" }, labels(number(metric.high, 2), number(metric.low, 2)), line, labels(from, `per ${metric.unit}`, to));
  }

  // One matrix for each facet: a row a value, a column a metric.
  function slices() {
    if (!data.slices.length) return "";
    const parts = data.slices.map(({ title, note, rows, more }) => {
      const cells = rows.map(([value, means]) => make("tr", null, make("th", { scope: "row" }, bdi(value)), means.map((mean, i) => {
        if (mean === null) return make("td", { class: "number" }, "\u2013");
        return heat(make("td", { class: "number", title: `${count(mean[1], "sample")}${mean[2] === null ? "" : `, 95 % interval ${number(mean[2])} to ${number(mean[3])}`}` },
          number(mean[0]), make("span", { class: "soft" }, ` n ${whole(mean[1])}`)), mean[0], metrics[i]);
      })));
      const head = make("tr", null, make("th", { scope: "col" }, bdi(title)), metrics.map((metric) => make("th", { scope: "col", class: "number" }, bdi(metric.name))));
      const inner = make("table", null, make("caption", null, "By ", bdi(title)), make("thead", null, head), make("tbody", null, cells));
      return [make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `By ${title}` }, inner), note ? soft(note) : "", more ? soft(`and ${count(more, "value")} more`) : ""];
    });
    return card("Slices", { id: "slices" }, parts.flat());
  }

  // --- its samples

  function samples() {
    if (!data.rows.length) return "";
    const rows = data.rows;
    const seen = new Map();
    for (const row of rows) {
      const [first] = row.records;
      row.id = first.id;
      row.place = String(first.row);
      row.texts = first.sample ? textsOf(first.sample) : [];
      row.cells = metrics.map((metric) => {
        const record = row.records.find((each) => isOf(each, metric));
        return record ? { record, value: record.value } : null;
      });
      row.slices = slicesOf(row, first);
      if (against) {
        const before = old.get(row.id) || [], n = seen.get(row.id) || 0;
        seen.set(row.id, n + 1);
        row.before = before[n] || null;
        row.changes = metrics.map((metric, i) => change(row, metric, i));
      }
    }

    function change(row, metric, i) {
      const at = against.metrics.findIndex((each) => JSON.stringify(each.key) === JSON.stringify(metric.key));
      const was = row.before && at >= 0 ? row.before.values[at] : null;
      return was === null || !scored(row.cells[i]) ? null : (metric.up ? 1 : -1) * (row.cells[i].value - was);
    }

    // What can be chosen, "" being the first choice. All of it stands in the address.
    const failed = (cell) => cell !== null && cell.record.passed === false;
    const changed = (sign) => (row) => row.changes !== undefined && row.changes.some((each) => each !== null && sign * each > 1e-9);
    const kinds = {
      "": ["all samples", () => true],
      failed: ["below the threshold", (row) => row.cells.some(failed)],
      unscored: ["unscored", (row) => row.cells.some((cell) => cell !== null && !scored(cell))],
      regressed: ["regressed", changed(-1)],
      improved: ["improved", changed(1)],
      unanswerable: ["refused, and no answer in the contexts", (row) => row.unanswerable],
    };
    const orders = { "": "worst score first", row: "order of the input", id: "sample id" };
    if (against) orders.change = "largest loss first";
    metrics.forEach((metric, i) => { orders[`${i}+`] = `${metric.name}: worst first`; orders[`${i}-`] = `${metric.name}: best first`; });
    const values = new Map();
    for (const row of rows) {
      for (const [name, own] of row.slices) {
        if (!values.has(name)) values.set(name, new Set());
        own.forEach((value) => values.get(name).add(value));
      }
    }

    const form = make("form", { class: "controls" });
    function control(name, label, element) {
      const id = `control-${form.length}`;
      form.append(make("div", null, make("label", { for: id }, bdi(label)), fill(element, { id, name }, [])));
    }
    const choice = (name, label, options) => control(name, label, make("select", null, options.map(([value, text]) => make("option", { value }, text))));
    const filters = [...values.keys()].filter((name) => values.get(name).size > 1 && values.get(name).size <= 50);
    control("find", "Find text", make("input", { type: "search" }));
    choice("show", "Show", Object.entries(kinds).filter(([, [, of]]) => rows.some(of)).map(([name, [text]]) => [name, text]));
    for (const name of filters) choice(`by.${name}`, name, [["", "all"], ...[...values.get(name)].sort().map((value) => [value, value])]);
    choice("sort", "Sort by", Object.entries(orders));
    form.append(folded("Hide columns", metrics.map(({ name }) => (
      make("div", null, make("label", null, make("input", { type: "checkbox", name: "hide", value: name }), " ", bdi(name)))))));
    form.addEventListener("input", () => { note(); show(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    const chosen = (name) => form.elements[name].value;

    const status = make("p", { class: "soft", role: "status" });
    const body = make("tbody", null);
    const header = make("tr", null);
    const table = make("table", { class: "samples", "aria-label": "Samples by metric" }, make("thead", null, header), body);
    const frame = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Samples" }, table);
    const detail = make("section", { class: "card", id: "sample", hidden: true, "aria-label": "The open sample" });
    const section = card("Samples", { id: "samples" }, soft("Open a sample to see its texts and what lowered its scores."),
      form, status, frame);
    const ROW = 3.5 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    let shown = [], columns = [], window_ = [-1, -1], open = null;

    function note() {
      const said = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
      if (open) said.set("open", open.place);
      if (location.protocol !== "about:") history.replaceState(null, "", said.size ? `#${said}` : location.pathname + location.search);
    }
    function follow() {
      const said = new URLSearchParams(location.hash.slice(1));
      for (const element of form.elements) {
        if (element.type === "checkbox") element.checked = said.getAll(element.name).includes(element.value);
        else element.value = said.get(element.name) || "";
      }
      show();
      const row = rows.find((each) => each.place === said.get("open")) || null;
      if (row !== open) view(row);
    }

    function matches(row) {
      return kinds[chosen("show")][1](row)
        && filters.every((name) => !chosen(`by.${name}`) || (row.slices.get(name) || []).includes(chosen(`by.${name}`)))
        && (!chosen("find") || wordsOf(row).includes(chosen("find").toLowerCase()));
    }
    function sorted(of) {
      const by = chosen("sort");
      if (by === "row") return of;
      if (by === "id") return of.sort((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
      const sign = by.endsWith("-") ? -1 : 1;
      const one = parseInt(by, 10);
      const least = (row) => {
        if (by === "change") return Math.min(...row.changes.map((each) => (each === null ? Infinity : each)));
        if (by !== "") return scored(row.cells[one]) ? sign * (metrics[one].up ? 1 : -1) * row.cells[one].value : Infinity;
        return Math.min(...row.cells.map((cell, i) => (scored(cell) ? share(cell.value, metrics[i]) : 9)));
      };
      return of.map((row) => [least(row), row]).sort((a, b) => a[0] - b[0]).map((pair) => pair[1]);
    }

    function show() {
      shown = sorted(rows.filter(matches));
      const some = data.total > rows.length ? ` The page holds ${whole(rows.length)} of ${count(data.total, "sample")}: the lowest.` : "";
      status.textContent = `${count(shown.length, "sample")} shown.${some}`;
      const hidden = new FormData(form).getAll("hide");
      columns = metrics.map((_, i) => i).filter((i) => !hidden.includes(metrics[i].name));
      header.replaceChildren(make("th", { scope: "col", class: "sample" }, "sample"), ...columns.map((i) => {
        const sort = { [`${i}+`]: "ascending", [`${i}-`]: "descending" }[chosen("sort")];
        return make("th", { scope: "col", class: "number", "aria-sort": sort }, button(bdi(metrics[i].name), () => {
          form.elements.sort.value = sort === "ascending" ? `${i}-` : `${i}+`;
          note();
          show();
        }));
      }));
      table.setAttribute("aria-rowcount", shown.length + 1);
      frame.scrollTop = 0;
      window_ = [-1, -1];
      drawRows();
    }

    // Rows are drawn when they are seen: those above and below are space.
    function drawRows(all = false) {
      const first = all ? 0 : Math.max(0, Math.floor(frame.scrollTop / ROW) - 15);
      const last = all ? shown.length : Math.min(shown.length, first + Math.ceil(Math.max(frame.clientHeight, 600) / ROW) + 30);
      if (first === window_[0] && last === window_[1]) return;
      window_ = [first, last];
      const focused = body.contains(document.activeElement) && document.activeElement.dataset.place;
      const space = (n) => (n > 0 ? make("tr", { "aria-hidden": "true" }, make("td", { colspan: columns.length + 1, class: "space", style: `height:${n * ROW}px` })) : "");
      body.replaceChildren(...[space(first), ...shown.slice(first, last).map((row, i) => rowOf(row, first + i)), space(shown.length - last)].filter(Boolean));
      const again = focused && [...body.querySelectorAll("button")].find((each) => each.dataset.place === focused);
      if (again) again.focus({ preventScroll: true });
    }
    frame.addEventListener("scroll", () => drawRows(), { passive: true });
    addEventListener("beforeprint", () => drawRows(true));
    addEventListener("hashchange", follow);

    function rowOf(row, at) {
      const [question] = row.texts;
      const head = make("th", { scope: "row", class: "sample" },
        button(bdi(row.id), () => view(row), { "data-place": row.place, "aria-current": row === open ? "true" : null }),
        make("div", { class: "question soft", dir: "auto" },
          row.unanswerable ? "refused, and no answer in the contexts" : question ? question[2].slice(0, 200) : ""));
      const line = make("tr", { "aria-rowindex": at + 2, style: `height:${ROW}px` }, head, columns.map((i) => tdOf(row, i)));
      line.addEventListener("click", (event) => { if (!event.target.closest("button") && !String(getSelection())) view(row); });
      return line;
    }
    function tdOf(row, i) {
      const cell = row.cells[i], made = make("td", { class: "number" });
      if (!scored(cell)) {
        made.append(make("span", { class: "soft" }, cell === null ? "\u2013" : words(cell.record.reason)));
        return made;
      }
      const moved = row.changes && Math.abs(row.changes[i]) > 1e-9 && row.changes[i];
      made.append(number(cell.value), failed(cell) ? " below" : "");
      if (moved) made.append(make("span", { class: moved > 0 ? "better" : "worse" }, ` ${moved > 0 ? "\u25b2" : "\u25bc"}\u202f${number(Math.abs(moved))}`));
      return heat(made, cell.value, metrics[i]);
    }

    // --- an open sample

    function view(row) {
      const before = open;
      open = row;
      note();
      body.querySelectorAll("button").forEach((each) => { each.toggleAttribute("aria-current", row !== null && each.dataset.place === row.place); });
      detail.hidden = row === null;
      if (row === null) {
        const again = before && [...body.querySelectorAll("button")].find((each) => each.dataset.place === before.place);
        (again || frame).focus();
        return;
      }
      const at = shown.indexOf(row);
      const step = (n) => button(n < 0 ? "previous" : "next", () => view(shown[at + n]), { disabled: at < 0 || !shown[at + n] });
      const texts = make("div", null), outcomes = make("div", null);
      const drawTexts = (here) => {
        const marks = marksOf(row, here);
        texts.replaceChildren(...row.texts.map(([place, name, text]) => passageOf(name, marked(text, marks.get(place)))), ...answersOf(row));
        if (!row.texts.length) texts.append(soft("The texts are not stored."));
        const found = here && texts.querySelector("mark.here");
        if (found) found.scrollIntoView({ block: "center" });
      };
      outcomes.append(...row.cells.map((cell, i) => (cell ? outcomeOf(row, cell, i, drawTexts) : "")).filter(Boolean));
      for (const [name, value] of factsOf(row)) outcomes.append(make("p", { dir: "auto" }, make("span", { class: "soft" }, bdi(name), ": "), value));
      const title = make("h2", { tabindex: -1 }, "Sample ", bdi(row.id));
      detail.replaceChildren(make("div", { class: "choices" }, step(-1), step(1), button("close", () => {
        view(null);
        section.scrollIntoView();
      })), title, soft("Keys: j next, k previous, Esc closes."), make("div", { class: "sides" }, texts, outcomes));
      drawTexts(null);
      title.focus({ preventScroll: true });
      detail.scrollIntoView({ block: "start" });
    }
    document.addEventListener("keydown", (event) => {
      if (open === null || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
      const at = shown.indexOf(open), next = { j: shown[at + 1], k: shown[at - 1], Escape: null }[event.key];
      if (next !== undefined) view(next);
    });

    // By place, what to mark and why: the passages of verdicts that lowered a score.
    function marksOf(row, here) {
      const marks = new Map(row.texts.map(([place]) => [place, []]));
      const add = (place, start, end, title, hue, id) => {
        const attributes = { title, style: `--hue:${hue}` };
        marks.get(place)?.push([start, end, attributes, () => {
          const item = document.getElementById(id);
          item.closest("details")?.setAttribute("open", "");
          item.focus();
          item.scrollIntoView({ block: "center" });
        }]);
      };
      for (const [place, start, end] of here || []) marks.get(place)?.push([start, end, { class: "here", style: "--hue:50" }]);
      row.cells.forEach((cell, i) => {
        (cell && cell.record.verdicts ? cell.record.verdicts : []).forEach(([id, kind_, word, lowers, evidence], v) => {
          if (lowers) evidence.forEach(([place, start, end]) => add(place, start, end, `${metrics[i].name}: ${words(kind_)} ${id} ${words(word)}`, metrics[i].hue, `verdict-${i}-${v}`));
        });
      });
      return marks;
    }

    function outcomeOf(row, cell, i, drawTexts) {
      const metric = metrics[i], { record } = cell;
      const parts = [make("h3", null, make("span", { class: "swatch", style: `--hue:${metric.hue}` }), bdi(metric.name), " ", make("b", null, scored(cell) ? number(cell.value) : words(record.reason)))];
      if (metric.question) parts.push(soft(bdi(metric.question)));
      const why = [record.status === "scored" ? record.reason : record.detail, record.cause].filter(Boolean).join(" ");
      if (why) parts.push(make("p", { dir: "auto" }, why));
      const items = (record.verdicts || []).map((verdict, v) => verdictOf(row, verdict, `verdict-${i}-${v}`, drawTexts));
      const lowering = (record.verdicts || []).filter((verdict) => verdict[3]).length;
      if (lowering) parts.push(make("ul", { class: "verdicts" }, items.slice(0, lowering)));
      if (items.length > lowering) {
        parts.push(folded(count(items.length - lowering, "verdict") + (lowering ? " that cost nothing" : ""), make("ul", { class: "verdicts" }, items.slice(lowering))));
      }
      return make("div", { class: "outcome" }, parts);
    }

    function verdictOf(row, [id, kind_, word, lowers, evidence, given], name, drawTexts) {
      const text = given || (evidence.length ? quoted(row, evidence[0]) : "");
      const see = evidence.length && row.texts.length ? button("show it", () => drawTexts(evidence), { class: "link" }) : "";
      return make("li", { id: name, tabindex: -1 },
        bdi(`${words(kind_)} ${id}`), " ", make("span", { class: lowers ? "word" : "", title: meanings.get(word) }, bdi(words(word))),
        text ? ": " : "", text ? bdi(text) : "", " ", see);
    }

    requestAnimationFrame(follow);
    return [section, detail];
  }

  // --- what a row holds

  function textsOf(sample) {
    const texts = [["user_input", "question", sample.user_input]];
    (sample.history || []).forEach((turn, i) => texts.push([`history ${i}`, turn.role, turn.content]));
    texts.push(["response", "answer", sample.response], ["reference", "reference", sample.reference]);
    (sample.retrieved_contexts || []).forEach((text, i) => texts.push([i, `context ${i + 1}`, text]));
    return texts.filter((each) => each[2] !== null && each[2] !== undefined);
  }
  function scored(cell) {
    return cell !== null && cell.value !== undefined;
  }
  function isOf(record, { key: [name, version, judge, setup] }) {
    return record.metric === name && record.version === version && (record.judge || "") === judge && (record.setup || "") === setup;
  }
  function slicesOf(row, first) {
    const found = new Map([["tag", first.tags || []], ["run name", first.run_name ? [first.run_name] : []], ["feedback", row.feedback ? [row.feedback[0]] : []]]);
    for (const [name, value] of Object.entries((first.sample || {}).metadata || {})) {
      if (["string", "number", "boolean"].includes(typeof value) && value !== "") found.set(found.has(name) ? `metadata.${name}` : name, [String(value).slice(0, 100)]);
    }
    return found;
  }
  function factsOf(row) {
    const [first] = row.records, metadata = (first.sample || {}).metadata || {};
    return Object.entries({
      submitted: first.submitted_at && new Date(1000 * first.submitted_at).toISOString().slice(0, 16).replace("T", " "),
      "chosen by": first.chosen_by, "trace id": (first.origin || {}).trace_id, "run id": first.run_id, "run name": first.run_name,
      tags: (first.tags || []).join(", "), user: first.user_id, thread: first.thread_id,
      feedback: (row.feedback || []).join(" ").trim(), metadata: Object.keys(metadata).length ? JSON.stringify(metadata) : "",
    }).filter((fact) => fact[1]).map(([name, value]) => [name, value.slice(0, 2000)]);
  }
  // All that a search looks through; made when first searched for.
  function wordsOf(row) {
    if (row.words === undefined) {
      const why = row.cells.filter(Boolean).flatMap((cell) => [cell.record.reason, cell.record.detail, cell.record.cause]);
      row.words = [row.id, ...row.texts.map((text) => text[2]), ...why, ...factsOf(row).map((fact) => fact[1])].filter(Boolean).join("\n").toLowerCase();
    }
    return row.words;
  }
  function quoted(row, [place, start, end, text]) {
    const found = row.texts.find((each) => each[0] === place);
    return text !== undefined || !found ? text || "" : characters(found[2]).slice(start, end).join("");
  }
  // The answer before, with what has gone and what has come.
  function answersOf(row) {
    const now = row.texts.find((text) => text[0] === "response"), before = row.before && row.before.response;
    if (!before || !now || before === now[2]) return [];
    return [passageOf("answer before, and what changed", difference(before, now[2]))];
  }
}

// What two texts have in common at their beginning and end, and between them what has gone and what has come.
function difference(before, now) {
  const a = before.split(/(?<=\s)/), b = now.split(/(?<=\s)/);
  const most = Math.min(a.length, b.length);
  let first = 0, last = 0;
  while (first < most && a[first] === b[first]) first += 1;
  while (last < most - first && a[a.length - 1 - last] === b[b.length - 1 - last]) last += 1;
  const gone = a.slice(first, a.length - last).join(""), come = b.slice(first, b.length - last).join("");
  return [a.slice(0, first).join(""), gone && make("del", null, gone), come && make("ins", null, come), a.slice(a.length - last).join("")];
}

// --- Samples to label ---------------------------------------------------------------------------------------------

function labels() {
  const SCORES = [0, 0.25, 0.5, 0.75, 1];
  const total = data.samples.length;
  const anyItems = data.samples.some((sample) => sample.items.length);

  function keyed(key, label, run, { shortcut = null, pressed = null, disabled = false } = {}) {
    const made = button(label, run, { "data-key": key, "aria-pressed": pressed === null ? null : String(pressed), disabled });
    if (shortcut !== null) made.append(make("kbd", { "aria-hidden": "true" }, shortcut));
    return made;
  }

  // What the person said.
  const fresh = () => ({ answers: {}, score: null, missing: false, done: null });
  const key = `ragstone-label-${data.digest}`;
  const state = kept(key) || { byItems: true, samples: data.samples.map(fresh) };
  let current = 0;

  const place = () => state.samples.findIndex((said) => said.done === null);
  const byItems = (sample) => state.byItems && sample.items.length > 0;
  const answered = (sample, said) => (byItems(sample) ? Object.keys(said.answers).length === sample.items.length : said.score !== null);
  const act = (change) => () => {
    if (place() >= 0) change(data.samples[place()], state.samples[place()]);
    keep(key, state);
    show();
  };

  const lock = act((sample, said) => {
    if (!answered(sample, said)) return;
    said.done = byItems(sample) ? "items" : "score";
    current = 0;
  });
  const skip = act((sample, said) => {
    said.done = "skipped";
    current = 0;
  });
  // Opens the sample before again, with what was said of it.
  function back() {
    const last = (place() < 0 ? total : place()) - 1;
    if (last < 0) return;
    state.samples[last].done = null;
    current = 0;
    keep(key, state);
    show();
  }
  const backButton = () => keyed("back", "back", back, { shortcut: "\u2190", disabled: place() === 0 });
  const toggleMissing = act((sample, said) => {
    if (byItems(sample) && judgeMade(sample)) said.missing = !said.missing;
  });
  const chooseWay = (way) => act(() => {
    state.byItems = way;
    current = 0;
  });
  const move = (step) => act((sample) => {
    current = Math.min(Math.max(current + step, 0), Math.max(sample.items.length - 1, 0));
  });
  const setScore = (value) => act((sample, said) => {
    said.score = value;
  });
  const answer = (i, word) => act((sample, said) => {
    said.answers[i] = word;
    const open = (from) => sample.items.findIndex((_, at) => at >= from && said.answers[at] === undefined);
    current = [open(i), open(0), i].find((at) => at >= 0);
  });

  const judgeMade = (sample) => sample.items.some((item) => data.kinds[item.kind].origin === "judge");

  function itemOf(item, i, said) {
    const kind = data.kinds[item.kind];
    const choices = kind.choices.map((word, at) => (
      keyed(`${i}:${word}`, words(word), answer(i, word), { shortcut: i === current ? at + 1 : null, pressed: said.answers[i] === word })));
    const name = `${words(item.kind)} ${item.item}`;
    const meant = i === current ? kind.choices.filter((word) => meanings.has(word)) : [];
    return make("li", { "aria-current": i === current ? "step" : null, "data-item": i },
      make("p", { dir: "auto" }, item.text),
      item.text === kind.question ? null : soft(bdi(kind.question)),
      make("div", { class: "choices", role: "group", "aria-label": name }, ...choices),
      meant.map((word) => soft(`${words(word)}: ${meanings.get(word)}`)));
  }

  function scoreOf(said) {
    const input = make("input", { type: "number", min: "0", max: "1", step: "any", id: "other", "data-key": "other", value: said.score });
    input.addEventListener("change", () => {
      const value = input.value === "" ? null : Number(input.value);
      if (input.checkValidity()) setScore(value)();
      else input.reportValidity();
    });
    const choices = SCORES.map((value, at) => (
      keyed(`score:${value}`, String(value), setScore(value), { shortcut: at + 1, pressed: said.score === value })));
    return make("div", null,
      soft("One score for the whole sample: 1 is the best, 0 the worst."),
      make("div", { class: "choices", role: "group", "aria-label": "score" }, ...choices),
      make("div", { class: "choices" }, make("label", { for: "other" }, "or any number from 0 to 1"), input));
  }

  function textOf([field, chunk, name, text], marks) {
    const inside = marks.filter((mark) => mark[0] === field && mark[1] === chunk);
    return passageOf(name, marked(text, inside.map(([, , start, end]) => [start, end, { style: "--hue:50" }])));
  }

  function sampleOf(sample, said) {
    const items = byItems(sample);
    const marks = items ? sample.items[current].at || [] : [];
    const texts = sample.texts.map((text) => textOf(text, marks));
    const ways = anyItems && sample.items.length
      ? make("div", { class: "choices", role: "group", "aria-label": "what to label" },
        keyed("way:items", "each item", chooseWay(true), { pressed: items }),
        keyed("way:score", "one score", chooseWay(false), { pressed: !items })) : null;
    const missing = items && judgeMade(sample)
      ? keyed("missing", "something is missing", toggleMissing, { shortcut: "m", pressed: said.missing }) : null;
    const whole = answered(sample, said);
    const actions = make("div", { class: "choices" }, missing, backButton(),
      keyed("skip", "skip this sample", skip, { shortcut: "s" }),
      keyed("lock", "lock and go on", lock, { shortcut: "\u2192", disabled: !whole }));
    const list = items ? make("ol", { class: "labels" }, ...sample.items.map((item, i) => itemOf(item, i, said))) : scoreOf(said);
    const left = make("section", { class: "card" }, make("h2", null, "Sample ", bdi(sample.of.id)), ...texts);
    const right = make("section", { class: "card" }, make("h2", null, "Your labels"), ways, list, actions);
    return make("div", { class: "labelled" }, left, right);
  }

  function linesOf(sample, said) {
    const base = { ragstone_label: 1, ...sample.of, draw: sample.draw };
    const whole = { ...base, kind: "score", item: null, text: null };
    if (said.done === "skipped") return [{ ...whole, answer: null, skipped: true }];
    if (said.done === "score") return [{ ...whole, answer: said.score }];
    return sample.items.map(({ kind, item, text }, i) => (
      { ...base, kind, item, text, answer: said.answers[i], missing: said.missing }));
  }

  function download() {
    const lines = data.samples.flatMap((sample, i) => (state.samples[i].done === null ? [] : linesOf(sample, state.samples[i])));
    save("labels.jsonl", lines);
  }

  const status = make("p", { role: "status" });
  const progress = make("progress", { max: total, "aria-label": "labelled samples" });
  const save_ = keyed("download", "download labels", download);
  const help = ["Keys: the digit on a button answers; \u2191 and \u2193 move; s skips; \u2192 locks and goes on.",
    "\u2190 goes back: the sample before is open again.",
    "Only locked and skipped samples are downloaded."].join(" ");
  const panel = make("div");
  main.replaceChildren(make("h1", null, "Label ", bdi(data.metric)), make("div", { class: "choices" }, progress, save_), status, soft(help), panel);

  function show() {
    const focused = document.activeElement && document.activeElement.dataset.key;
    const at = place();
    const done = state.samples.filter((said) => said.done !== null);
    const skipped = done.filter((said) => said.done === "skipped").length;
    progress.value = done.length;
    save_.disabled = done.length === 0;
    const end = at < 0 ? " All samples are done: download your labels." : "";
    status.textContent = `${done.length} of ${total} samples done${skipped ? `, ${skipped} skipped` : ""}.${end}`;
    const last = [soft("Then: ", make("code", null, "ragstone correct RESULTS --labels labels.jsonl")), make("div", { class: "choices" }, backButton())];
    panel.replaceChildren(...(at < 0 ? last : [sampleOf(data.samples[at], state.samples[at])]));
    const again = focused && [...main.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused);
    if (again) again.focus({ preventScroll: true });
    const here = panel.querySelector("[aria-current]");
    if (here) here.scrollIntoView({ block: "nearest" });
    const mark = panel.querySelector("mark");
    if (mark) mark.parentNode.scrollTop = mark.offsetTop - mark.parentNode.offsetTop - 40;
  }

  const KEYS = { s: skip, m: toggleMissing, ArrowUp: move(-1), ArrowDown: move(1), ArrowRight: lock, ArrowLeft: back, Backspace: back };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
    if (place() < 0) {
      if (KEYS[event.key] === back) back();
      return;
    }
    const sample = data.samples[place()];
    const vertical = event.key === "ArrowUp" || event.key === "ArrowDown";
    if (vertical && (!byItems(sample) || event.target.closest(".text"))) return; // they scroll
    const n = "123456789".indexOf(event.key);
    let run = KEYS[event.key];
    if (n >= 0 && event.key.length === 1) {
      const choice = byItems(sample) ? data.kinds[sample.items[current].kind].choices[n] : undefined;
      if (choice) run = answer(current, choice);
      else if (!byItems(sample) && n < SCORES.length) run = setScore(SCORES[n]);
    }
    if (!run) return;
    event.preventDefault();
    run();
  });
  show();
}

(data.view === "labels" ? labels : report)();
