// A report: alone, against another one, of live traffic, corrected by labels. Its numbers, then its samples.

const { metrics } = data;
const corrected = data.also.flatMap((each) => each.corrected || []);
const against = data.also.find((each) => each.metrics);
const HUES = [200, 35, 280, 330, 60, 240, 15, 175, 300, 100]; // a green mark would look like praise
metrics.forEach((metric, i) => { metric.hue = HUES[i % HUES.length]; });

// --- Numbers on a scale. Neither these functions nor those of the next part touch the document.

const scaleOf = (low, high, from, to) => (value) => (
  from + (to - from) * Math.min(1, Math.max(0, (value - low) / (high - low))));

// 0 is the worst value of the metric's scale, 1 the best.
const shareOf = (value, { low, high, up }) => scaleOf(low, high, up ? 0 : 1, up ? 1 : 0)(value);
const heat = (value, metric) => `--share:${Math.round(100 * shareOf(value, metric))}%`;
const INTERVAL = "95 % interval ";
const reachIn = (low, high, text) => (low === null ? "" : `, ${INTERVAL}${text(low)} to ${text(high)}`);

// The points of a line of means over time, and of the band of their intervals.
function timePaths({ time, low, high }) {
  const x = scaleOf(time[0][0], time.at(-1)[0], 4, 296), y = scaleOf(low, high, 56, 4);
  const path = (points) => points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const known = time.filter((point) => point[3] !== null);
  const [above, below] = [4, 3].map((end) => known.map((point) => [point[0], point[end]]));
  return { line: path(time.map((point) => [point[0], point[2]])), band: path([...above, ...below.reverse()]) };
}

// --- What a row holds, and which rows are chosen

const scored = (record) => Boolean(record) && record.value !== null;
const sameKey = (a, b) => JSON.stringify(a.key) === JSON.stringify(b.key);
const failed = (record) => record?.passed === false;
const moved = (change) => Math.abs(change ?? 0) > 1e-9;

// The rows stand on the page as JSON, gzipped, in base64: the texts of many are longer than a page may be.
async function unpacked() {
  const packed = atob(document.getElementById("rows").textContent), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i += 1) bytes[i] = packed.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

// A row's cells are its outcomes in the order of the metrics. Its changes are those of their values since the other
// report: more than 0 where it is better.
function readRows({ rows, texts, keys, kinds, old }) {
  const before = new Map(Object.entries(old)), seen = new Map();
  const columns = keys.map((key) => metrics.findIndex((metric) => sameKey(metric, { key })));
  const oldColumns = metrics.map((metric) => (against?.metrics || []).findIndex((each) => sameKey(each, metric)));
  return rows.map(([own, [id, n, facts, unanswerable, records], sample, feedback]) => {
    const text = (i) => (i ?? null) === null ? "" : texts[own[i]];
    const cells = metrics.map(() => undefined), nth = seen.get(id) || 0;
    for (const [key, value, passed, reason, more, verdicts] of records) {
      const all = () => verdicts.map(([kind, name, passages, given]) => (
        [name, ...kinds[kind], passages, text(given)])).sort((a, b) => b[3] - a[3]);
      cells[columns[key]] = {
        value: value && Number(value), passed, reason: text(reason), more: text(more), verdicts: all,
      };
    }
    seen.set(id, nth + 1);
    const [values, response] = before.get(id)?.[nth] || [[], null];
    const was = oldColumns.map((column) => values[column] ?? null);
    const changes = cells.map((record, i) => (
      was[i] === null || !scored(record) ? null : (metrics[i].up ? 1 : -1) * (record.value - was[i])));
    const known = { ...facts, id, key: String(n), metadata: sample?.metadata || {}, feedback, unanswerable };
    const answerBefore = response === null ? "" : texts[response], slices = slicesOf(known);
    return { ...known, texts: textsOf(sample || {}, text), slices, cells, was, changes, answerBefore };
  });
}

function textsOf(sample, text) {
  const turns = (sample.history || []).map(([role, at], i) => [`history ${i}`, role, text(at)]);
  const contexts = (sample.retrieved_contexts || []).map((at, i) => [i, `context ${i + 1}`, text(at)]);
  const single = (field, name) => (sample[field] === undefined ? [] : [[field, name, text(sample[field])]]);
  const ids = (field, name) => (sample[field] ? [[field, name, sample[field].join(", ")]] : []);
  return [...single("user_input", "question"), ...turns, ...single("response", "answer"),
    ...single("reference", "reference"), ...contexts,
    ...ids("reference_ids", "sources that should be retrieved"), ...ids("retrieved_ids", "sources")];
}

// By what a row can be chosen, and its values of that.
function slicesOf({ tags = [], run_name: ran, feedback, metadata }) {
  const name = ran || metadata.run_name, names = name ? [String(name)] : [];
  const found = new Map([["tag", tags], ["run name", names], ["feedback", feedback ? [feedback[0]] : []]]);
  for (const [key, value] of Object.entries(metadata)) {
    const plain = ["string", "number", "boolean"].includes(typeof value) && value !== "";
    if (!plain || key === "run_name") continue;
    found.set(found.has(key) ? `metadata.${key}` : key, [String(value).slice(0, 100)]);
  }
  return found;
}

// The values of each slice.
function valuesOf(rows) {
  const values = new Map();
  for (const { slices } of rows) {
    for (const [name, own] of slices) {
      if (!values.has(name)) values.set(name, new Set());
      own.forEach((value) => values.get(name).add(value));
    }
  }
  return values;
}

function factsOf({ metadata, feedback, tags = [], ...row }) {
  const submitted = row.submitted_at && new Date(1000 * row.submitted_at).toISOString();
  return Object.entries({
    submitted: submitted && submitted.slice(0, 16).replace("T", " "),
    "chosen by": row.chosen_by, "trace id": row.origin?.trace_id, "run id": row.run_id,
    "run name": row.run_name, tags: tags.join(", "), user: row.user_id, thread: row.thread_id,
    feedback: (feedback || []).join(" ").trim(),
    metadata: Object.keys(metadata).length ? JSON.stringify(metadata) : "",
  }).filter(([, value]) => value).map(([name, value]) => [name, value.slice(0, 2000)]);
}

// All that a search looks through. It takes time and memory, so it is put together when first searched for.
function wordsOf(row) {
  const why = row.cells.filter(Boolean).flatMap(({ reason, more }) => [reason, more]);
  const texts = [row.id, ...row.texts.map((text) => text[2]), ...why, ...factsOf(row).map((fact) => fact[1])];
  row.words ??= texts.filter(Boolean).join("\n").toLowerCase();
  return row.words;
}

// What two texts have in common at their beginning and end, and between them what has gone and what has come.
function difference(before, now) {
  const a = before.split(/(?<=\s)/), b = now.split(/(?<=\s)/);
  const most = Math.min(a.length, b.length);
  let first = 0, last = 0;
  while (first < most && a[first] === b[first]) first += 1;
  while (last < most - first && a.at(-1 - last) === b.at(-1 - last)) last += 1;
  const text = (pieces, from, to) => pieces.slice(from, to).join("");
  return { begin: text(a, 0, first), gone: text(a, first, a.length - last), come: text(b, first, b.length - last),
    end: text(a, a.length - last) };
}

// What can be chosen, "" being the first choice. All of it stands in the address.
const KINDS = {
  "": ["all samples", () => true],
  failed: ["below the threshold", (row) => row.cells.some(failed)],
  unscored: ["unscored", (row) => row.cells.some((record) => record && !scored(record))],
  unanswerable: ["no answer, and none in the contexts", (row) => row.unanswerable],
  ...Object.fromEntries(metrics.flatMap(({ name }, i) => [-1, 1].map((sign) => {
    const which = `${name}: ${sign < 0 ? "regressed" : "improved"}`;
    return [which, [which, ({ changes }) => moved(changes[i]) && sign * changes[i] > 0]];
  }))),
};
const ORDERS = [
  ["", "worst score first"], ["row", "order of the input"], ["id", "sample id"],
  ...metrics.flatMap(({ name }, i) => [
    ...(against ? [[`change${i}`, `${name}: largest loss first`]] : []),
    [`${i}+`, `${name}: worst first`], [`${i}-`, `${name}: best first`]]),
];

// The rows that `choice` chooses, in its order.
function chosenRows(rows, choice) {
  const find = (choice.get("find") || "").toLowerCase(), by = choice.get("sort") || "";
  const [, isKind] = KINDS[choice.get("show") || ""];
  const slices = [...choice].filter(([name, value]) => name.startsWith("by.") && value);
  const found = rows.filter((row) => (
    isKind(row) && slices.every(([name, value]) => row.slices.get(name.slice(3))?.includes(value))
      && (!find || wordsOf(row).includes(find))));
  if (by === "row") return found;
  if (by === "id") return found.sort((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
  return found.map((row) => [rankOf(row, by), row]).sort((a, b) => a[0] - b[0]).map(([, row]) => row);
}

function rankOf({ cells, changes }, by) {
  if (by.startsWith("change")) return changes[by.slice(6)] ?? Infinity;
  if (by === "") return Math.min(...cells.map((record, i) => (scored(record) ? shareOf(record.value, metrics[i]) : 9)));
  const i = parseInt(by, 10), sign = by.endsWith("-") === metrics[i].up ? -1 : 1;
  return scored(cells[i]) ? sign * cells[i].value : Infinity;
}

// By text, what to mark in it and why: `here`, and the passages of verdicts that lowered a score.
function marksOf({ cells, texts }, here) {
  const marks = new Map(texts.map(([field]) => [field, []]));
  const add = ([field, start, end], mark) => marks.get(field)?.push({ start, end, ...mark });
  here.forEach((passage) => add(passage, { here: true, hue: 50 }));
  cells.forEach((record, i) => (record?.verdicts() || []).forEach(([id, kind, word, lowers, evidence], v) => {
    const { name, hue } = metrics[i], title = `${name}: ${words(kind)} ${id} ${words(word)}`;
    if (lowers) evidence.forEach((passage) => add(passage, { hue, title, to: `verdict-${i}-${v}` }));
  }));
  return marks;
}

function quoted(row, [field, start, end, text]) {
  const found = row.texts.find((each) => each[0] === field);
  return text !== undefined || !found ? text || "" : part(found[2], start, end);
}

// --- Charts

const swatch = ({ hue }) => make("span.swatch", { style: `--hue:${hue}` });
const line = (x1, y1, x2, y2, name) => draw("line", { x1, y1, x2, y2, class: name });
const chart = (width, height, name, label, ...shapes) => draw("svg", {
  viewBox: `0 0 ${width} ${height}`, class: name,
  ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
}, ...shapes);

// A mean on its interval.
const reachOf = (x, y, r, mean, [low, high]) => [
  low !== null && line(x(low), y, x(high), y, "reach"), draw("circle", { cx: x(mean), cy: y, r })];

// A difference with its interval, and the line at 0.
function forest({ difference: mean, low, high }, all) {
  if (mean === null) return soft("No sample has a score in both.");
  const values = all.flatMap((each) => [each.difference, each.low, each.high]);
  const far = Math.max(0.05, ...values.map((value) => Math.abs(value || 0)));
  const name = `difference ${signed(mean)}${reachIn(low, high, signed)}`;
  return make("div", null, chart(200, 24, "forest", name, line(100, 2, 100, 22, "zero"),
    reachOf(scaleOf(-far, far, 5, 195), 12, 4, mean, [low, high])), soft(name));
}

// The mean over time, with its intervals: the scale stands left of it, its first and last date below.
function timeline(metric) {
  const { time = [], unit, low, high } = metric;
  if (time.length < 2) return "";
  const precise = ["minute", "hour"].includes(unit); // the day and time, or the date alone
  const [from, to] = [time[0], time.at(-1)].map(([, date]) => (precise ? date.slice(5, 16) : date.slice(0, 10)));
  const labels = (...texts) => make("div", null, texts.map((text) => make("span", null, text)));
  const paths = timePaths(metric);
  return make("div.line.soft", null, labels(number(high, 2), number(low, 2)),
    chart(300, 60, null, `${metric.name} per ${unit}, from ${from} to ${to} (UTC)`,
      line(4, 4, 296, 4, "zero"), line(4, 56, 296, 56, "zero"),
      draw("polygon", { points: paths.band, class: "band" }), draw("polyline", { points: paths.line })),
    labels(from, `per ${unit}`, to));
}

// --- The numbers

function alsoOf(also, rows) {
  const table = also.rows.length > 0 && tableOf(also.title, also.head, also.rows);
  if (table) table.querySelector("caption").hidden = true; // the card has this title
  if (also !== against) return card(bdi(also.title), null, table, listed(also.remarks));
  const sides = also.metrics.map((metric) => make("div.against", null,
    make("h3", null, bdi(metric.name)),
    make("p", null, make("b.better", null, `better ${whole(metric.better)}`), `, same ${whole(metric.same)}, `,
      make("b.worse", null, `worse ${whole(metric.worse)}`)),
    forest(metric, also.metrics), movedOf(metric, rows)));
  return card(bdi(also.title), null, make("div.sides", null, sides), listed(also.remarks),
    folded("All numbers", table));
}

// The samples that moved most, as links to their rows.
function movedOf({ moved }, rows) {
  const link = (row, id) => (rows.some(({ key }) => key === String(row))
    ? make("a.link", { href: `#open=${row}` }, bdi(id)) : bdi(id));
  return moved.length > 0 && soft("moved most: ", moved.map(([row, id, was, value], i) => (
    make("span", null, i > 0 && ", ", link(row, id), ` ${number(was)} \u2192 ${number(value)}`))));
}

function scores() {
  if (!metrics.length) return card("Scores", null, listed(data.remarks));
  return card("Scores", { id: "scores" }, make("div.scores", null, metrics.map(scoreOf)), listed(data.remarks),
    folded("All numbers", tableOf("Mean score by metric", data.table.head, data.table.rows)),
    folded("How to read it", data.notes.map((note) => soft(note))));
}

// The mean that stands large: the judge's, or what people would say where labels tell it.
function meanOf(metric) {
  const byLabels = corrected.find((each) => sameKey(each, metric));
  if (byLabels?.mean === undefined) return { ...metric, ends: metric.interval ? INTERVAL + metric.ends : metric.ends };
  const { mean, low, high, whose } = byLabels;
  const ends = low === null ? whose : `${whose} \u00b7 ${INTERVAL}${number(low)} ${DASH} ${number(high)}`;
  return { mean, interval: [low, high], ends, judge: `the judge says ${number(metric.mean)} (${metric.ends})` };
}

function scoreOf(metric) {
  const { name, low, high, unscored, bins } = metric, { mean, interval, ends, judge } = meanOf(metric);
  const known = mean !== null, why = unscored.map(([reason, n]) => `${whole(n)} ${reason}`).join(", ");
  return make("article.score", null,
    make("h3", null, swatch(metric), bdi(name)),
    sentence(metric.question),
    known ? make("p.mean.heat", { style: heat(mean, metric) }, number(mean))
      : make("p.mean", null, DASH),
    known && chart(100, 8, "bar", `${number(mean)} on a scale from ${low} to ${high}`, line(2, 4, 98, 4, "zero"),
      reachOf(scaleOf(low, high, 2, 98), 4, 2.5, mean, interval || [null])),
    soft(ends), soft([judge, metric.scored].filter(Boolean).join(" \u00b7 ")),
    why && make("p.word", null, `unscored: ${why}`),
    timeline(metric),
    metric.facts.map((fact) => soft(bdi(fact))),
    folded("More", soft(bdi(metric.apart)), bins.length > 0 && binsOf(name, bins)));
}

function binsOf(name, bins) {
  const bar = (share) => chart(100, 10, "bar", null, draw("rect", { width: 100 * share, height: 10 }));
  return tableOf(`Distribution of ${name}`, ["from", "bar", "share"],
    bins.map(([from, share]) => [from, bar(share), `${number(100 * share, 1)} %`]), 2);
}

// One matrix for each facet: a row a value, a column a metric.
function slices() {
  const cell = (mean, i) => {
    if (mean === null) return DASH;
    const [value, n, low, high] = mean;
    const title = `${count(n, "sample")}${reachIn(low, high, number)}`;
    return make("td.number.heat", { style: heat(value, metrics[i]), title },
      number(value), make("span.soft", null, ` n ${whole(n)}`));
  };
  const matrix = ({ title, note, rows, more }) => [
    tableOf(`By ${title}`, [title, ...metrics.map(({ name }) => name)],
      rows.map(([value, means]) => [make("th", { scope: "row" }, bdi(value)), ...means.map(cell)])),
    note && soft(note), more > 0 && soft(`and ${count(more, "value")} more`),
  ];
  return data.slices.length > 0 && card("Slices", { id: "slices" },
    corrected.length > 0 && soft("By the judge alone."), data.slices.flatMap(matrix));
}

// --- The table of samples

function controlsOf(rows) {
  const form = make("form.controls");
  const control = (name, label, element) => {
    const id = `control-${form.length}`;
    form.append(make("div", null, make("label", { for: id }, bdi(label)), fill(element, { id, name }, [])));
  };
  const choice = (name, label, options) => (
    control(name, label, make("select", null, options.map(([value, text]) => make("option", { value }, text)))));
  const kinds = Object.entries(KINDS).filter(([, [, isKind]]) => rows.some(isKind));
  control("find", "Find text", make("input", { type: "search" }));
  choice("show", "Show", kinds.map(([name, [text]]) => [name, text]));
  for (const [name, values] of valuesOf(rows)) {
    if (values.size < 2 || values.size > 50) continue;
    choice(`by.${name}`, name, [["", "all"], ...[...values].sort().map((value) => [value, value])]);
  }
  choice("sort", "Sort by", ORDERS);
  const box = (value) => make("input", { type: "checkbox", name: "hide", value });
  const hide = ({ name }) => make("div", null, make("label", null, box(name), " ", bdi(name)));
  form.append(folded("Hide columns", metrics.map(hide)));
  return form;
}

const arrowOf = (change) => (change > 0 ? ["better", "\u25b2"] : ["worse", "\u25bc"]);

function cellOf(record, change, metric) {
  if (!scored(record)) {
    return make("td.number", null, make("span.soft", null, record ? words(record.reason) : DASH));
  }
  const [name, arrow] = arrowOf(change);
  return make("td.number.heat", { style: heat(record.value, metric) },
    number(record.value), failed(record) && " below",
    moved(change) && make("span", { class: name }, ` ${arrow}\u202f${number(Math.abs(change))}`));
}

class Samples {
  constructor(packed) {
    const rows = readRows(packed);
    this.total = packed.total;
    this.rows = rows;
    this.open = null;
    this.form = controlsOf(rows);
    this.status = make("p.soft", { role: "status" });
    this.header = make("tr");
    this.body = make("tbody");
    this.table = make("table.samples", { "aria-label": "Samples by metric" },
      make("thead", null, this.header), this.body);
    this.frame = scrolling("Samples", this.table, "region");
    this.section = card("Samples", { id: "samples" },
      soft("Open a sample to see its texts and what lowered its scores."), this.form, this.status, this.frame);
    this.detail = make("section.card", { id: "sample", hidden: true, "aria-label": "The open sample" });
    this.rowHeight = 3.5 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.listen();
  }

  listen() {
    this.form.addEventListener("input", () => this.choose());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.frame.addEventListener("scroll", () => this.drawRows(), { passive: true });
    addEventListener("beforeprint", () => this.drawRows(true));
    addEventListener("hashchange", () => this.follow());
    requestAnimationFrame(() => this.follow());
    document.addEventListener("keydown", (event) => {
      if (!this.open || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
      const at = this.chosen.indexOf(this.open);
      const next = { j: this.chosen[at + 1], k: this.chosen[at - 1], Escape: null }[event.key];
      if (next !== undefined) this.view(next);
    });
  }

  get choice() {
    return new URLSearchParams(new FormData(this.form));
  }

  // Writes into the address what is chosen and open.
  note() {
    const choice = new URLSearchParams([...this.choice].filter(([, value]) => value));
    if (this.open) choice.set("open", this.open.key);
    const address = choice.size ? `#${choice}` : location.pathname + location.search;
    if (location.protocol !== "about:") history.replaceState(null, "", address);
  }

  // Reads it from there.
  follow() {
    const choice = new URLSearchParams(location.hash.slice(1));
    for (const element of this.form.elements) {
      if (element.type === "checkbox") element.checked = choice.getAll(element.name).includes(element.value);
      else element.value = choice.get(element.name) || "";
    }
    this.show();
    const row = this.rows.find(({ key }) => key === choice.get("open")) || null;
    if (row !== this.open) this.view(row);
  }

  choose() {
    this.note();
    this.show();
  }

  show() {
    const { rows, choice } = this, hidden = choice.getAll("hide");
    this.chosen = chosenRows(rows, choice);
    this.columns = [...metrics.keys()].filter((i) => !hidden.includes(metrics[i].name));
    this.status.textContent = `${count(this.chosen.length, "sample")} shown.${this.total > rows.length
      ? ` The page holds ${whole(rows.length)} of ${count(this.total, "sample")}: the lowest.` : ""}`;
    this.header.replaceChildren(make("th", { scope: "col", class: "sample" }, "sample"),
      ...this.columns.map((i) => this.headingOf(i, choice.get("sort"))));
    this.table.setAttribute("aria-rowcount", this.chosen.length + 1);
    this.frame.scrollTop = 0;
    this.drawn = "";
    this.drawRows();
  }

  headingOf(i, by) {
    const sort = { [`${i}+`]: "ascending", [`${i}-`]: "descending" }[by];
    const heading = button(bdi(metrics[i].name), () => {
      this.form.elements.sort.value = sort === "ascending" ? `${i}-` : `${i}+`;
      this.choose();
    });
    return make("th", { scope: "col", class: "number", "aria-sort": sort }, heading);
  }

  // Rows are drawn when they are seen: those above and below are space.
  drawRows(all = false) {
    const { chosen, frame, body, rowHeight } = this;
    const seen = Math.ceil(Math.max(frame.clientHeight, 600) / rowHeight);
    const first = all ? 0 : Math.max(0, Math.floor(frame.scrollTop / rowHeight) - 15);
    const last = all ? chosen.length : Math.min(chosen.length, first + seen + 30);
    if (this.drawn === `${first} ${last}`) return;
    this.drawn = `${first} ${last}`;
    const focused = body.contains(document.activeElement) && document.activeElement.dataset.row;
    const space = (n) => (n > 0 ? [make("tr", { "aria-hidden": "true" }, make("td",
      { colspan: this.columns.length + 1, class: "space", style: `height:${n * rowHeight}px` }))] : []);
    const rows = chosen.slice(first, last).map((row, i) => this.rowOf(row, first + i));
    body.replaceChildren(...space(first), ...rows, ...space(chosen.length - last));
    this.buttonOf(focused)?.focus({ preventScroll: true });
  }

  buttonOf(key) {
    return [...this.body.querySelectorAll("button")].find((each) => each.dataset.row === key);
  }

  rowOf(row, at) {
    const current = row === this.open && "true";
    const name = button(bdi(row.id), () => this.view(row), { "data-row": row.key, "aria-current": current });
    const [question] = row.texts;
    const says = row.unanswerable ? KINDS.unanswerable[0] : question?.[2].slice(0, 200);
    const line = make("tr", { "aria-rowindex": at + 2, style: `height:${this.rowHeight}px` },
      make("th", { scope: "row", class: "sample" }, name, make("div.question.soft", { dir: "auto" }, says)),
      this.columns.map((i) => cellOf(row.cells[i], row.changes[i], metrics[i])));
    line.addEventListener("click", (event) => {
      if (!event.target.closest("button") && !String(getSelection())) this.view(row);
    });
    return line;
  }

  // Opens a sample; null closes the open one.
  view(row) {
    const before = this.open;
    this.open = row;
    this.note();
    this.body.querySelectorAll("button").forEach((each) => (
      each.toggleAttribute("aria-current", each.dataset.row === row?.key)));
    this.detail.hidden = row === null;
    if (row === null) {
      (this.buttonOf(before.key) || this.frame).focus();
      return;
    }
    const at = this.chosen.indexOf(row);
    const step = (label, n) => {
      const next = at < 0 ? undefined : this.chosen[at + n];
      return button(label, () => this.view(next), { disabled: !next });
    };
    const close = button("close", () => {
      this.view(null);
      this.section.scrollIntoView();
    });
    this.detail.replaceChildren(
      make("div.choices", null, step("previous", -1), step("next", 1), close),
      ...detailOf(row));
    this.detail.querySelector("h2").focus({ preventScroll: true });
    this.detail.scrollIntoView({ block: "start" });
  }
}

// --- An open sample

function detailOf(row) {
  const texts = make("div"), see = (passages) => drawTexts(texts, row, passages);
  const fact = ([name, value]) => make("p", { dir: "auto" }, make("span.soft", null, bdi(name), ": "), value);
  const outcomes = row.cells.map((record, i) => record && outcomeOf(row, record, i, see));
  see([]);
  return [make("h2", { tabindex: -1 }, "Sample ", bdi(row.id)), soft("Keys: j next, k previous, Esc closes."),
    make("div.sides", null, texts, make("div", null, outcomes, factsOf(row).map(fact)))];
}

function drawTexts(element, row, here) {
  const marks = marksOf(row, here);
  const passages = row.texts.flatMap(([field, name, text]) => [
    passageOf(name, marked(text, marks.get(field))), ...(field === "response" ? answersOf(text, row) : [])]);
  element.replaceChildren(...passages);
  if (!passages.length) element.append(soft("The texts are not stored."));
  element.querySelector("mark.here")?.scrollIntoView({ block: "center" });
}

// The answer before, with what has gone and what has come.
function answersOf(now, { answerBefore }) {
  if (!answerBefore || answerBefore === now) return [];
  const { begin, gone, come, end } = difference(answerBefore, now);
  return [passageOf("answer before, and what changed",
    [begin, gone && make("del", null, gone), come && make("ins", null, come), end])];
}

function outcomeOf(row, record, i, see) {
  const metric = metrics[i], verdicts = record.verdicts();
  const why = [scored(record) && record.reason, record.more].filter(Boolean).join(" ");
  const items = verdicts.map((verdict, v) => verdictOf(row, verdict, `verdict-${i}-${v}`, see));
  const lowering = verdicts.filter(([, , , lowers]) => lowers).length, others = items.length - lowering;
  const list = (from, to) => make("ul.verdicts", null, items.slice(from, to));
  return make("div.outcome", null,
    make("h3", null, swatch(metric), bdi(metric.name), " ", make("b", null, valueOf(record, row, i))),
    metric.question && soft(bdi(metric.question)),
    sentence(why),
    lowering > 0 && list(0, lowering),
    others > 0 && folded(count(others, "verdict") + (lowering ? " that cost nothing" : ""), list(lowering)));
}

// A value; after a change both, and which is better.
function valueOf(record, { was, changes }, i) {
  if (!scored(record)) return words(record.reason);
  if (!moved(changes[i])) return number(record.value);
  const [name, arrow] = arrowOf(changes[i]);
  return [`${number(was[i])} \u2192 ${number(record.value)} `, make("span", { class: name }, `${arrow} ${name}`)];
}

function verdictOf(row, [id, kind, word, lowers, evidence, given], name, see) {
  const text = given || (evidence.length ? quoted(row, evidence[0]) : "");
  return make("li", { id: name, tabindex: -1 }, bdi(`${words(kind)} ${id}`), " ",
    make("span", { class: lowers ? "word" : "", title: meanings.get(word) }, bdi(words(word))),
    text && ": ", text && bdi(text), " ",
    evidence.length > 0 && row.texts.length > 0 && button("show it", () => see(evidence), { class: "link" }));
}

// --- The page

async function report() {
  const alarms = data.also.flatMap((each) => each.alarms || []);
  const packed = await unpacked();
  const table = packed.rows.length > 0 && new Samples(packed);
  main.replaceChildren();
  fill(main, null, [
    make("h1", null, bdi(data.title)),
    make("p.conclusion", { dir: "auto" }, data.conclusion),
    soft(data.facts.flatMap((fact, i) => [i > 0 && " \u00b7 ", bdi(fact)])),
    alarms.length > 0 && card("Alarm", { class: "card alarm" }, listed(alarms)),
    data.also.map((also) => alsoOf(also, table ? table.rows : [])), scores(),
    table && [table.section, table.detail], slices(),
    data.bad_rows.length > 0 && card("Rows that held no sample", null,
      tableOf("By line of the input, from 1", ["line", "why"], data.bad_rows, 2)),
  ]);
}

report();
