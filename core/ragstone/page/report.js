// The table of samples. Its rows hold records as results files do.
(() => {
  const bdi = (text) => make("bdi", null, text);
  const number = (value) => value.toFixed(3).replace("-", "\u2212");
  const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  const words = (text) => text.replaceAll("_", " ");

  // 0 is the worst value of the metric's scale, 1 the best.
  function share(value, metric) {
    const part = Math.min(1, Math.max(0, (value - metric.low) / (metric.high - metric.low)));
    return metric.up ? part : 1 - part;
  }
  const scored = (cell) => cell !== null && cell.value !== undefined;

  // One metric's draws: their mean, and the worst of them.
  function cellOf(records, metric) {
    const of = records.filter((each) => [each.metric, each.version, each.judge || ""].every((part, i) => part === metric.key[i]));
    if (!of.length) return null;
    const draws = of.filter((each) => each.status === "scored");
    if (!draws.length) return { record: of[0] };
    const record = draws.reduce((a, b) => (share(b.value, metric) < share(a.value, metric) ? b : a));
    const value = draws.reduce((sum, each) => sum + each.value, 0) / draws.length;
    return { record, value, draws: draws.length };
  }

  // The texts of a sample in the order in which they are read: place, name, text.
  function textsOf(sample) {
    const texts = [["user_input", "question", sample.user_input]];
    (sample.history || []).forEach((turn, i) => texts.push([`history ${i}`, turn.role, turn.content]));
    texts.push(["response", "answer", sample.response], ["reference", "reference", sample.reference]);
    (sample.retrieved_contexts || []).forEach((text, i) => texts.push([i, `context ${i + 1}`, text]));
    return texts.filter((each) => each[2] !== null && each[2] !== undefined);
  }

  for (const row of data.rows) {
    const first = row.records[0], metadata = (first.sample || {}).metadata || {};
    row.id = first.id;
    row.cells = data.metrics.map((metric) => cellOf(row.records, metric));
    row.texts = first.sample ? textsOf(first.sample) : [];
    row.suspected = [...new Map(row.records.flatMap((each) => each.suspected || []).map((each) => [JSON.stringify(each), each])).values()];
    row.filters = { tag: first.tags || [], "run name": first.run_name ? [first.run_name] : [], feedback: row.feedback ? [row.feedback[0]] : [] };
    for (const [name, value] of Object.entries(metadata)) {
      if (["string", "number", "boolean"].includes(typeof value) && value !== "") row.filters[name] = [String(value).slice(0, 100)];
    }
    row.facts = Object.entries({
      submitted: first.submitted_at && new Date(1000 * first.submitted_at).toISOString().slice(0, 16).replace("T", " "),
      "chosen by": first.chosen_by, "trace id": (first.origin || {}).trace_id, "run id": first.run_id, "run name": first.run_name,
      tags: (first.tags || []).join(", "), user: first.user_id, thread: first.thread_id,
      feedback: (row.feedback || []).join(" ").trim(), metadata: Object.keys(metadata).length ? JSON.stringify(metadata) : "",
    }).filter((fact) => fact[1]).map(([name, value]) => [name, value.slice(0, 2000)]);
    const why = row.cells.filter(Boolean).flatMap((cell) => [cell.record.reason, cell.record.detail, cell.record.cause]);
    row.all = [row.id, ...row.texts.map((text) => text[2]), ...why, ...row.facts.map((fact) => fact[1])].filter(Boolean).join("\n").toLowerCase();
  }

  // The controls.
  const controls = [];
  function control(label, element) {
    element.id = `control-${controls.length}`;
    controls.push(make("div", null, make("label", { for: element.id }, label), element));
    element.addEventListener("input", show);
    return element;
  }
  const choice = (label, options) => control(label, make("select", null, ...options.map(([value, text]) => make("option", { value }, text))));
  const failed = (cell) => cell !== null && cell.record.passed === false;
  const kinds = {
    all: ["all samples", () => true],
    failed: ["below the threshold", (row) => row.cells.some(failed)],
    unscored: ["unscored", (row) => row.cells.some((cell) => cell !== null && !scored(cell))],
    suspected: ["possible attack on the judge", (row) => row.suspected.length > 0],
    unanswerable: ["refused, and no answer in the contexts", (row) => row.unanswerable],
  };
  const orders = [["row", "order of the input"], ["low", "lowest score first"], ["id", "sample id"]];
  data.metrics.forEach((metric, i) => {
    orders.push([`${i}+`, `${metric.name}: lowest first`], [`${i}-`, `${metric.name}: highest first`]);
  });
  const find = control("Find text", make("input", { type: "search" }));
  const kindChoice = choice("Show", Object.entries(kinds).filter(([, [, of]]) => data.rows.some((row) => of(row))).map(([kind, [text]]) => [kind, text]));
  const values = {};
  for (const row of data.rows) {
    for (const [name, own] of Object.entries(row.filters)) own.forEach((value) => (values[name] ||= new Set()).add(value));
  }
  const filters = Object.entries(values).filter(([, of]) => of.size > 1 && of.size <= 50).map(([name, of]) => [
    name, choice(name, [["", "all"], ...[...of].sort().map((value) => [value, value])]),
  ]);
  const order = choice("Sort by", orders);
  order.value = "low";

  function matches(row) {
    return kinds[kindChoice.value][1](row)
      && filters.every(([name, each]) => !each.value || (row.filters[name] || []).includes(each.value))
      && row.all.includes(find.value.toLowerCase());
  }

  function sorted(rows) {
    const by = order.value;
    if (by === "row") return rows;
    if (by === "id") return rows.sort((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
    const sign = by.endsWith("-") ? -1 : 1;
    const least = (row) => Math.min(...row.cells.map((cell, i) => (
      scored(cell) && (by === "low" || i === parseInt(by, 10)) ? sign * share(cell.value, data.metrics[i]) : 9)));
    const keyed = rows.map((row) => [least(row), row]);
    return keyed.sort((a, b) => a[0] - b[0]).map((pair) => pair[1]);
  }

  // One row.
  function tdOf(cell, metric) {
    const shown = make("td", { class: "number" });
    if (scored(cell)) {
      shown.classList.add("heat");
      shown.style.setProperty("--share", `${Math.round(100 * share(cell.value, metric))}%`);
      shown.append(number(cell.value), failed(cell) ? " below" : "");
    } else {
      shown.append(make("span", { class: "soft" }, cell === null ? "\u2013" : words(cell.record.reason)));
    }
    return shown;
  }

  function rowOf(row) {
    const [question] = row.texts;
    const button = make("button", { type: "button", "aria-expanded": "false" }, bdi(row.id));
    const head = make("th", { scope: "row", class: "sample" }, button);
    if (question) head.append(make("div", { class: "question soft", dir: "auto" }, question[2].slice(0, 200)));
    if (row.suspected.length) head.append(make("span", { class: "word" }, "possible attack "));
    if (row.unanswerable) head.append(make("span", { class: "soft" }, "refused, and no answer in the contexts"));
    const line = make("tr", null, head, ...row.cells.map((cell, i) => tdOf(cell, data.metrics[i])));
    line.addEventListener("click", (event) => {
      if (!event.target.closest("button") && String(getSelection())) return;
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      if (open) line.after(make("tr", { class: "detail" }, make("td", { colspan: row.cells.length + 1 }, detailOf(row))));
      else line.nextSibling.remove();
    });
    return line;
  }

  // An opened row.
  function detailOf(row) {
    const marks = marksOf(row);
    const left = make("div", null, ...row.texts.map(([place, name, text]) => passageOf(name, text, marks[place] || [])));
    if (!row.texts.length) left.append(soft("The texts are not stored."));
    const right = make("div", null, ...row.cells.map((cell, i) => (cell ? outcomeOf(row, cell, data.metrics[i]) : "")));
    for (const each of row.suspected) {
      right.append(make("p", { class: "word" }, `Possible attack on the judge: ${words(each.kind)}, in ${each.field} ${each.start}\u2013${each.end}`));
    }
    for (const [name, value] of row.facts) right.append(make("p", { dir: "auto" }, make("span", { class: "soft" }, `${name}: `), value));
    return make("div", { class: "sides" }, left, right);
  }

  function quoted(row, [place, start, end, text]) {
    const found = row.texts.find((each) => each[0] === place);
    if (text !== undefined || !found) return text || "";
    return Array.from(found[2]).slice(start, end).join("");
  }

  function outcomeOf(row, cell, metric) {
    const { record } = cell;
    const parts = [make("h3", null, bdi(metric.name), " ", make("b", null, scored(cell) ? number(cell.value) : words(record.reason)))];
    if (cell.draws > 1) parts.push(soft(`The mean of ${cell.draws} draws. The worst is shown: ${number(record.value)}.`));
    const why = [record.status === "scored" ? record.reason : record.detail, record.cause].filter(Boolean).join(" ");
    if (why) parts.push(make("p", { dir: "auto" }, why));
    const items = (record.verdicts || []).map(([id, kind, word, lowers, evidence, given, probability]) => {
      const text = given || (evidence.length ? quoted(row, evidence[0]) : "");
      const notes = text ? [] : evidence.map(([place, start, end]) => `${place} ${start}\u2013${end}`);
      if (probability !== undefined) notes.unshift(`probability of the affirmative word ${probability.toFixed(2)}`);
      return make("li", null, bdi(`${kind} ${id}`), " ", make("span", { class: lowers ? "word" : "" }, bdi(word)),
        text ? ": " : "", text ? bdi(text) : "", notes.length ? make("span", { class: "soft" }, ` (${notes.join("; ")})`) : "");
    });
    const lowering = (record.verdicts || []).filter((verdict) => verdict[3]).length;
    if (lowering) parts.push(make("ul", null, ...items.slice(0, lowering)));
    const others = items.slice(lowering);
    if (others.length) {
      const title = count(others.length, "verdict") + (lowering ? " that cost nothing" : "");
      parts.push(make("details", null, make("summary", { class: "soft" }, title), make("ul", null, ...others)));
    }
    const shares = Object.entries(record.breakdown || {}).map(([name, part]) => `${name} ${number(part)}`).join(", ");
    parts.push(soft(bdi(shares)));
    return make("div", { class: "outcome" }, ...parts);
  }

  // By place, what to mark and why: the passages of verdicts that lowered a score, and what looks like an attack.
  function marksOf(row) {
    const marks = {};
    const add = (place, start, end, why) => { (marks[place] ||= []).push([start, end, why]); };
    for (const { record } of row.cells.filter(Boolean)) {
      for (const [id, kind, word, lowers, evidence] of record.verdicts || []) {
        if (lowers) evidence.forEach(([place, start, end]) => add(place, start, end, `${record.metric}: ${kind} ${id} ${word}`));
      }
    }
    for (const { field, chunk, start, end, kind } of row.suspected) {
      add(chunk === undefined ? field : field === "history" ? `history ${chunk}` : chunk, start, end, `possible attack: ${words(kind)}`);
    }
    return marks;
  }

  function passageOf(name, text, marks) {
    const shown = make("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": name });
    const letters = Array.from(text); // offsets count characters, not UTF-16 units
    const edges = [...new Set([...marks.flatMap((mark) => [mark[0], mark[1]]), letters.length])].sort((a, b) => a - b);
    let at = 0;
    for (const edge of edges) {
      const piece = letters.slice(at, edge).join("");
      const whys = new Set(marks.filter((mark) => mark[0] <= at && at < mark[1]).map((mark) => mark[2]));
      if (piece) shown.append(whys.size ? make("mark", { title: [...whys].join("; ") }, piece) : piece);
      at = Math.max(at, edge);
    }
    return make("div", { class: "passage" }, make("h3", null, name), shown);
  }

  // The table.
  const body = make("tbody", null);
  const heads = data.metrics.map((metric) => make("th", { scope: "col", class: "number" }, bdi(metric.name)));
  const header = make("tr", null, make("th", { scope: "col" }, "sample"), ...heads);
  const table = make("table", { class: "samples", "aria-label": "Samples by metric" }, make("thead", null, header), body);
  const frame = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Samples" }, table);
  const status = make("p", { class: "soft", role: "status" });

  function show() {
    const rows = sorted(data.rows.filter(matches));
    const some = data.total > data.rows.length
      ? ` The table holds ${data.rows.length.toLocaleString("en")} of ${count(data.total, "sample")}: the lowest, and others drawn at random.` : "";
    status.textContent = `${count(rows.length, "sample")} shown.${some}`;
    frame.scrollTop = 0;
    body.replaceChildren(...rows.map(rowOf));
  }

  const section = document.getElementById("samples");
  section.append(make("h2", null, "Samples"), soft("Open a row to see its texts and what lowered its scores."),
    make("div", { class: "controls" }, ...controls), status, frame);
  section.hidden = false;
  show();
})();
