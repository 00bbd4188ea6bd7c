// The table of samples.
(() => {
  const lowered = data.texts.map((text) => text.toLowerCase());
  const BATCH = 100;

  const bdi = (text) => make("bdi", null, text);
  const number = (value) => value.toFixed(3).replace("-", "\u2212");
  const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  const textOf = (row, field) => {
    const found = (row.texts || []).find(([slot]) => slot === field);
    return found ? data.texts[found[2]] : "";
  };

  // 0 is the worst value of the metric's scale, 1 the best.
  function share(value, metric) {
    const part = Math.min(1, Math.max(0, (value - metric.low) / (metric.high - metric.low)));
    return metric.up ? part : 1 - part;
  }
  const scored = (cell) => cell !== null && cell.value !== undefined;

  // The controls.
  const controls = [];
  function control(label, element) {
    element.id = `control-${controls.length}`;
    controls.push(make("div", null, make("label", { for: element.id }, label), element));
    element.addEventListener("input", show);
    return element;
  }
  function choice(label, options) {
    const items = options.map(([value, text]) => make("option", { value }, text));
    return control(label, make("select", null, ...items));
  }
  const cells = data.rows.flatMap((row) => row.cells).filter((cell) => cell !== null);
  const kinds = [
    ["all", "all samples", true],
    ["failed", "below the threshold", cells.some((cell) => cell.failed)],
    ["unscored", "unscored", cells.some((cell) => cell.unscored)],
    ["suspected", "possible attack on the judge", data.rows.some((row) => row.suspected.length)],
    ["unanswerable", "refused, and no answer in the contexts", data.rows.some((row) => row.unanswerable)],
  ];
  const orders = [["row", "order of the input"], ["low", "lowest score first"], ["id", "sample id"]];
  data.metrics.forEach((metric, i) => {
    orders.push([`${i}+`, `${metric.name}: lowest first`], [`${i}-`, `${metric.name}: highest first`]);
  });
  const find = control("Find text", make("input", { type: "search" }));
  const metricChoice = choice("Metric", [["", "all metrics"], ...data.metrics.map((metric, i) => [i, metric.name])]);
  const kindChoice = choice("Show", kinds.filter((kind) => kind[2]));
  const below = control("Score below", make("input", { type: "number", step: "0.05", placeholder: "any" }));
  const filters = Object.entries(data.filters).map(([name, values]) => [
    name, choice(name, [["", "all"], ...values.map((value) => [value, value])]),
  ]);
  const order = choice("Sort by", orders);
  order.value = "low";

  function matches(row, hits, columns) {
    const shown = columns.map((i) => row.cells[i]).filter((cell) => cell !== null);
    const kind = kindChoice.value;
    if (kind === "failed" && !shown.some((cell) => cell.failed)) return false;
    if (kind === "unscored" && !shown.some((cell) => cell.unscored)) return false;
    if (kind === "suspected" && !row.suspected.length) return false;
    if (kind === "unanswerable" && !row.unanswerable) return false;
    const limit = below.value === "" ? null : Number(below.value);
    if (limit !== null && !shown.some((cell) => scored(cell) && cell.value < limit)) return false;
    if (!filters.every(([name, each]) => !each.value || row.filters[name].includes(each.value))) return false;
    if (hits === null) return true;
    const texts = [...(row.texts || []).map((text) => text[2]), ...shown.map((cell) => cell.why)];
    const words = [row.id, ...row.facts.map((fact) => fact[1])];
    return texts.some((i) => hits[i]) || words.some((word) => word.toLowerCase().includes(find.value.toLowerCase()));
  }

  function sorted(rows, columns) {
    const by = order.value;
    if (by === "row") return rows;
    if (by === "id") return [...rows].sort((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
    const chosen = by === "low" ? columns : [parseInt(by, 10)];
    const sign = by.endsWith("-") ? -1 : 1;
    const least = (row) => Math.min(...chosen.map((i) => (
      scored(row.cells[i]) ? sign * share(row.cells[i].value, data.metrics[i]) : Infinity)));
    const keyed = rows.map((row) => [least(row), row]);
    return keyed.sort((a, b) => (a[0] === b[0] ? 0 : a[0] - b[0])).map((pair) => pair[1]);
  }

  // One row.
  function cellOf(cell, metric) {
    const shown = make("td", { role: "cell", "data-label": metric.name, class: "number" });
    if (scored(cell)) {
      const part = share(cell.value, metric);
      shown.classList.add("heat", part < 0.5 ? "low" : "high");
      shown.style.setProperty("--share", `${Math.round(200 * (part < 0.5 ? part : part - 0.5))}%`);
      shown.append(number(cell.value));
      if (cell.failed) shown.append(make("span", { class: "failed", title: "below the threshold" }, " below"));
    } else {
      shown.append(make("span", { class: "soft" }, cell === null ? "\u2013" : cell.unscored.replaceAll("_", " ")));
    }
    return shown;
  }

  function rowOf(row, columns) {
    const question = textOf(row, "user_input");
    const button = make("button", { type: "button", "aria-expanded": "false" }, bdi(row.id));
    const head = make("th", { role: "rowheader", scope: "row", class: "sample" }, button);
    if (question) head.append(make("div", { class: "question", dir: "auto" }, question.slice(0, 200)));
    if (row.suspected.length) head.append(make("span", { class: "word" }, "possible attack "));
    if (row.unanswerable) head.append(make("span", { class: "soft" }, "refused, and no answer in the contexts"));
    const line = make("tr", { role: "row" }, head, ...columns.map((i) => cellOf(row.cells[i], data.metrics[i])));
    line.addEventListener("click", (event) => {
      if (!event.target.closest("button") && (event.target.closest("a") || String(getSelection()))) return;
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      if (open) {
        const all = make("td", { role: "cell", colspan: columns.length + 1 }, detailOf(row, columns));
        line.after(make("tr", { role: "row", class: "detail" }, all));
      } else {
        line.nextSibling.remove();
      }
    });
    return line;
  }

  // An opened row.
  function detailOf(row, columns) {
    const marks = marksOf(row, columns);
    const passages = (row.texts || []).map(([slot, name, i]) => [slot, passageOf(name, data.texts[i], marks[slot] || [])]);
    const turns = passages.filter(([slot]) => slot.startsWith("history")).map((pair) => pair[1]);
    const left = make("div", null);
    let folded = false;
    for (const [slot, passage] of passages) {
      if (!slot.startsWith("history")) left.append(passage);
      else if (!folded) {
        folded = true;
        left.append(make("details", null, make("summary", { class: "soft" }, `history (${count(turns.length, "turn")})`), ...turns));
      }
    }
    if (!passages.length) left.append(soft("The texts are not stored."));
    const quality = (i) => (scored(row.cells[i]) ? share(row.cells[i].value, data.metrics[i]) : -1);
    const outcomes = columns.filter((i) => row.cells[i] !== null).sort((a, b) => quality(a) - quality(b));
    const right = make("div", null, ...outcomes.map((i) => outcomeOf(row, row.cells[i], data.metrics[i])));
    for (const [kind, field, start, end] of row.suspected) {
      right.append(make("p", null, make("span", { class: "word" }, "Possible attack on the judge"), `: ${kind}, in ${field} ${start}\u2013${end}`));
    }
    if (row.facts.length) {
      right.append(make("dl", { class: "facts" }, ...row.facts.map(([name, value]) => (
        make("div", null, make("dt", null, name), make("dd", { dir: "auto" }, value))))));
    }
    return make("div", { class: "sides" }, left, right);
  }

  const quoted = (row, [field, start, end]) => Array.from(textOf(row, field)).slice(start, end).join("");

  function outcomeOf(row, cell, metric) {
    const value = scored(cell) ? number(cell.value) : cell.unscored.replaceAll("_", " ");
    const parts = [make("h3", null, bdi(metric.name), " ", make("b", null, value))];
    if (scored(cell) && cell.draws[0] > 1) {
      parts.push(soft(`The mean of ${cell.draws[0]} draws. The worst is shown: ${number(cell.draws[1])}.`));
    }
    if (data.texts[cell.why]) parts.push(make("p", { dir: "auto" }, data.texts[cell.why]));
    const items = (cell.verdicts || []).map(([name, word, i, lowers, probability, evidence]) => {
      const text = i === null ? quoted(row, evidence[0]) : data.texts[i];
      const places = text ? "" : evidence.map((span) => `${span[0]} ${span[1]}\u2013${span[2]}`).join(", ");
      const notes = [probability, places].filter(Boolean).join("; ");
      return make("li", null, bdi(name), " ", make("span", { class: lowers ? "word" : "word plain" }, bdi(word)),
        text ? ": " : "", text ? bdi(text) : "", notes ? make("span", { class: "soft" }, ` (${notes})`) : "");
    });
    const lowering = (cell.verdicts || []).filter((verdict) => verdict[3]).length;
    if (lowering) parts.push(make("ul", { class: "items" }, ...items.slice(0, lowering)));
    const others = items.slice(lowering);
    if (others.length) {
      const title = lowering ? `${count(others.length, "verdict")} that cost nothing` : count(others.length, "verdict");
      parts.push(make("details", null, make("summary", { class: "soft" }, title), make("ul", { class: "items" }, ...others)));
    }
    if (cell.more) parts.push(soft(`${count(cell.more, "further verdict")} not shown.`));
    const shares = (cell.parts || []).map(([name, part]) => `${name} ${number(part)}`).join(", ");
    if (shares) parts.push(soft(bdi(shares)));
    parts.push(soft(cell.cost));
    return make("div", { class: "outcome" }, ...parts);
  }

  // By text, what to mark and why: the passages of verdicts that lowered a score, and what looks like an attack.
  function marksOf(row, columns) {
    const marks = {};
    const add = (span, why) => { (marks[span[0]] ||= []).push([span[1], span[2], why]); };
    for (const i of columns) {
      for (const [name, word, , lowers, , evidence] of (row.cells[i] && row.cells[i].verdicts) || []) {
        if (lowers) evidence.forEach((span) => add(span, `${data.metrics[i].name}: ${name} ${word}`));
      }
    }
    row.suspected.forEach(([kind, ...span]) => add(span, `possible attack: ${kind}`));
    return marks;
  }

  function passageOf(name, text, marks) {
    const shown = make("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": name });
    const letters = marks.length ? Array.from(text) : []; // offsets count characters, not UTF-16 units
    const edges = [...new Set(marks.flatMap((mark) => [mark[0], mark[1]]))].sort((a, b) => a - b);
    let at = 0;
    for (const edge of edges.filter((each) => each > 0).concat(letters.length)) {
      const piece = letters.slice(at, edge).join("");
      const whys = new Set(marks.filter((mark) => mark[0] <= at && at < mark[1]).map((mark) => mark[2]));
      if (piece) shown.append(whys.size ? make("mark", { title: [...whys].join("; ") }, piece) : piece);
      at = Math.max(at, edge);
    }
    if (!marks.length) shown.append(text);
    return make("div", { class: "passage" }, make("h3", null, name), shown);
  }

  // The table.
  const body = make("tbody", { role: "rowgroup" });
  const header = make("tr", { role: "row" });
  const table = make("table", { role: "table", class: "samples", "aria-label": "Samples by metric" },
    make("thead", { role: "rowgroup" }, header), body);
  const end = make("div", { class: "end" });
  const frame = make("div", { class: "scroll frame", tabindex: "0", role: "region", "aria-label": "Samples" }, table, end);
  const status = make("p", { class: "soft", role: "status" });
  let left = [];
  let columns = [];

  function draw(most) {
    body.append(...left.splice(0, most).map((row) => rowOf(row, columns)));
  }

  function show() {
    columns = data.metrics.map((_, i) => i).filter((i) => metricChoice.value === "" || Number(metricChoice.value) === i);
    const query = find.value.toLowerCase();
    const hits = query === "" ? null : lowered.map((text) => text.includes(query));
    left = sorted(data.rows.filter((row) => matches(row, hits, columns)), columns);
    const some = data.total > data.rows.length
      ? ` The table holds ${data.rows.length.toLocaleString("en")} of ${count(data.total, "sample")}: the lowest, and others drawn at random.` : "";
    status.textContent = `${count(left.length, "sample")} shown.${some}`;
    header.replaceChildren(make("th", { role: "columnheader", scope: "col" }, "sample"), ...columns.map((i) => {
      const down = order.value === `${i}-`;
      const sort = order.value === `${i}+` ? "ascending" : down ? "descending" : "none";
      const button = make("button", { type: "button", title: "Sort" }, bdi(data.metrics[i].name));
      button.addEventListener("click", () => {
        order.value = sort === "ascending" ? `${i}-` : `${i}+`;
        show();
        header.children[columns.indexOf(i) + 1].firstChild.focus();
      });
      return make("th", { role: "columnheader", scope: "col", class: "number", "aria-sort": sort }, button);
    }));
    frame.classList.toggle("tall", left.length > 20);
    frame.scrollTop = 0;
    body.replaceChildren();
    draw(BATCH);
  }

  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) draw(BATCH);
  }, { root: frame, rootMargin: "1000px" }).observe(end);

  const section = document.getElementById("samples");
  section.append(make("h2", null, "Samples"), soft("Open a row to see its texts and what lowered its scores."),
    make("div", { class: "controls" }, ...controls), status, frame);
  section.hidden = false;
  show();
})();
