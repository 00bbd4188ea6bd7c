// The page of labels.
(() => {
  const root = document.getElementById("label");
  const KEY = `ragstone-label-${data.digest}`;
  const SCORES = [0, 0.25, 0.5, 0.75, 1];
  const total = data.samples.length;
  const anyItems = data.samples.some((sample) => sample.items.length);

  function button(key, label, run, { shortcut = null, pressed = null, disabled = false } = {}) {
    const hint = shortcut === null ? null : make("kbd", { "aria-hidden": "true" }, shortcut);
    const shown = make("button", {
      type: "button", "data-key": key, "aria-pressed": pressed === null ? null : String(pressed), disabled,
    }, label, hint);
    shown.addEventListener("click", run);
    return shown;
  }

  // What the person said. `order` has the items in the order in which they were answered, for undoing.
  const fresh = () => ({ answers: {}, order: [], score: null, missing: false, done: null });
  let state = { byItems: true, samples: data.samples.map(fresh) };
  let kept = true;
  let current = 0;
  try {
    state = JSON.parse(localStorage.getItem(KEY)) || state;
  } catch {
    kept = false;
  }
  function save() {
    try {
      localStorage.setItem(KEY, JSON.stringify(state));
    } catch {
      kept = false;
    }
  }

  const place = () => state.samples.findIndex((said) => said.done === null);
  const byItems = (sample) => state.byItems && sample.items.length > 0;
  const answered = (sample, said) => (byItems(sample) ? said.order.length === sample.items.length : said.score !== null);
  const act = (change) => () => {
    if (place() >= 0) change(data.samples[place()], state.samples[place()]);
    save();
    draw();
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
  // Opens the sample before again, with what was said of it; not where the judge's verdicts could have been read.
  function back() {
    const last = (place() < 0 ? total : place()) - 1;
    if (data.shown || last < 0) return;
    state.samples[last].done = null;
    current = 0;
    save();
    draw();
  }
  const backButton = () => button("back", "back", back, { shortcut: "\u2190", disabled: place() === 0 });
  const undo = act((sample, said) => {
    if (!byItems(sample)) {
      said.score = null;
    } else if (said.order.length) {
      current = said.order.pop();
      delete said.answers[current];
    }
  });
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
    said.order = [...said.order.filter((each) => each !== i), i];
    said.answers[i] = word;
    const next = sample.items.findIndex((_, at) => at > i && said.answers[at] === undefined);
    const first = sample.items.findIndex((_, at) => said.answers[at] === undefined);
    current = next >= 0 ? next : first >= 0 ? first : i;
  });

  const judgeMade = (sample) => sample.items.some((item) => data.kinds[item.kind].origin === "judge");

  // With the judge's verdict shown, it comes first.
  function choicesOf(item) {
    const { choices } = data.kinds[item.kind];
    const shown = (word) => word.replaceAll("_", " ");
    if (!choices.includes(item.verdict)) return choices.map((word) => [word, shown(word)]);
    const others = choices.filter((word) => word !== item.verdict).map((word) => [word, `wrong: ${shown(word)}`]);
    return [[item.verdict, `right: ${shown(item.verdict)}`], ...others];
  }

  function itemOf(item, i, said) {
    const kind = data.kinds[item.kind];
    const choices = choicesOf(item).map(([word, label], at) => (
      button(`${i}:${word}`, label, answer(i, word), { shortcut: i === current ? at + 1 : null, pressed: said.answers[i] === word })));
    const name = `${item.kind.replaceAll("_", " ")} ${item.item}`;
    return make("li", { "aria-current": i === current ? "step" : null, "data-item": i },
      item.text === "" ? null : make("p", { dir: "auto" }, item.text),
      soft(make("bdi", null, kind.question)),
      make("div", { class: "choices", role: "group", "aria-label": name }, ...choices));
  }

  function scoreOf(said) {
    const input = make("input", { type: "number", min: "0", max: "1", step: "any", id: "other", "data-key": "other", value: said.score });
    input.addEventListener("change", () => {
      const value = input.value === "" ? null : Number(input.value);
      if (input.checkValidity()) setScore(value)();
      else input.reportValidity();
    });
    const choices = SCORES.map((value, at) => (
      button(`score:${value}`, String(value), setScore(value), { shortcut: at + 1, pressed: said.score === value })));
    return make("div", null,
      soft("One score for the whole sample: 1 is the best, 0 the worst."),
      make("div", { class: "choices", role: "group", "aria-label": "score" }, ...choices),
      make("div", { class: "choices" }, make("label", { for: "other" }, "or any number from 0 to 1"), input));
  }

  function passageOf([field, chunk, name, text], marks) {
    const characters = Array.from(text); // places count characters, not UTF-16 units
    const inside = marks.filter((mark) => mark[0] === field && mark[1] === chunk);
    const pieces = [];
    let at = 0;
    for (const [, , start, end] of inside) {
      pieces.push(characters.slice(at, start).join(""), make("mark", null, characters.slice(start, end).join("")));
      at = end;
    }
    pieces.push(characters.slice(at).join(""));
    const shown = make("div", { class: "text", dir: "auto", tabindex: "0", role: "region", "aria-label": name }, ...pieces);
    return make("div", { class: "passage" }, make("h3", null, name), shown);
  }

  function sampleOf(sample, said) {
    const items = byItems(sample);
    const marks = items ? sample.items[current].at || [] : [];
    const texts = sample.texts.map((text) => passageOf(text, marks));
    const ways = anyItems && sample.items.length
      ? make("div", { class: "choices", role: "group", "aria-label": "what to label" },
        button("way:items", "each item", chooseWay(true), { pressed: items }),
        button("way:score", "one score", chooseWay(false), { pressed: !items })) : null;
    const judged = sample.score === undefined ? null : make("p", null, `The judge's score: ${sample.score.toFixed(3)}`);
    const missing = items && judgeMade(sample)
      ? button("missing", "something is missing", toggleMissing, { shortcut: "m", pressed: said.missing }) : null;
    const whole = answered(sample, said);
    const actions = make("div", { class: "choices" }, missing, data.shown ? null : backButton(),
      button("undo", "undo", undo, { shortcut: "u", disabled: items ? !said.order.length : said.score === null }),
      button("skip", "skip this sample", skip, { shortcut: "s" }),
      button("lock", "lock and go on", lock, { shortcut: "\u2192", disabled: !whole }));
    const list = items ? make("ol", { class: "labels" }, ...sample.items.map((item, i) => itemOf(item, i, said))) : scoreOf(said);
    const left = make("section", { class: "card" }, make("h2", null, "Sample ", make("bdi", null, sample.of.id)), ...texts);
    const right = make("section", { class: "card" }, make("h2", null, "Your labels"), ways, judged, list, actions);
    return make("div", { class: "labelled" }, left, right);
  }

  function linesOf(sample, said) {
    const base = { ragstone_label: 1, ...sample.of, verdicts_shown: data.shown, draw: sample.draw };
    const whole = { ...base, kind: "score", item: null, text: null };
    if (said.done === "skipped") return [{ ...whole, answer: null, skipped: true }];
    if (said.done === "score") return [{ ...whole, answer: said.score }];
    return sample.items.map(({ kind, item, text }, i) => (
      { ...base, kind, item, text, answer: said.answers[i], missing: said.missing }));
  }

  function download() {
    const lines = data.samples.flatMap((sample, i) => (state.samples[i].done === null ? [] : linesOf(sample, state.samples[i])));
    const content = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const link = make("a", { download: "labels.jsonl", href: URL.createObjectURL(new Blob([content], { type: "application/jsonl" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  const status = make("p", { role: "status" });
  const progress = make("progress", { max: total, "aria-label": "labelled samples" });
  const save_ = button("download", "download labels", download);
  const help = "Keys: 1, 2, 3 answer; \u2191 and \u2193 move; u undoes; \u2192 locks and goes on. "
    + (data.shown ? "A locked sample stays as it is." : "\u2190 goes back: the sample before is open again.")
    + " Only locked and skipped samples are downloaded.";
  const panel = make("div");
  root.replaceChildren(make("div", { class: "choices" }, progress, save_), status, soft(help), panel);

  function draw() {
    const focused = document.activeElement && document.activeElement.dataset.key;
    const at = place();
    const done = state.samples.filter((said) => said.done !== null);
    const skipped = done.filter((said) => said.done === "skipped").length;
    progress.value = done.length;
    save_.disabled = done.length === 0;
    const lost = kept ? "" : " This browser keeps nothing: download before you close the page.";
    const end = at < 0 ? " All samples are done: download your labels." : "";
    status.textContent = `${done.length} of ${total} samples done${skipped ? `, ${skipped} skipped` : ""}.${end}${lost}`;
    const last = data.shown ? [] : [make("div", { class: "choices" }, backButton())];
    panel.replaceChildren(...(at < 0 ? last : [sampleOf(data.samples[at], state.samples[at])]));
    const again = focused && [...root.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused);
    if (again) again.focus({ preventScroll: true });
    const here = panel.querySelector("[aria-current]");
    if (here) here.scrollIntoView({ block: "nearest" });
    const mark = panel.querySelector("mark");
    if (mark) mark.parentNode.scrollTop = mark.offsetTop - mark.parentNode.offsetTop - 40;
  }

  const KEYS = { u: undo, s: skip, m: toggleMissing, ArrowUp: move(-1), ArrowDown: move(1), ArrowRight: lock, ArrowLeft: back, Backspace: back };
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
      const choice = byItems(sample) ? choicesOf(sample.items[current])[n] : undefined;
      if (choice) run = answer(current, choice[0]);
      else if (!byItems(sample) && n < SCORES.length) run = setScore(SCORES[n]);
    }
    if (!run) return;
    event.preventDefault();
    run();
  });
  draw();
})();
