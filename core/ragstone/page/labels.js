// Samples to label: a person answers the judge's questions about items, or gives one score. The browser keeps what was
// said, and downloads it as a file of labels.

const SCORES = [0, 0.25, 0.5, 0.75, 1];
const STORED = `ragstone-label-${data.digest}`;

// --- What was said. These functions do not touch the document.

const unsaid = () => ({ answers: {}, score: null, missing: false, done: null });
const listedByJudge = (sample) => sample.items.some(({ kind }) => data.kinds[kind].origin === "judge");

// The next item without an answer, from the beginning again; the one itself where all have one.
function nextItem(sample, { answers }, from) {
  const open = [...sample.items.keys()].filter((i) => answers[i] === undefined);
  return open.find((i) => i >= from) ?? open[0] ?? from;
}

// What was said of a sample, as lines of a file of labels.
function linesOf(sample, { done, score, answers, missing }) {
  const label = { ragstone_label: 1, ...sample.of, draw: sample.draw };
  const whole = { ...label, kind: "score", item: null, text: null };
  if (done === null) return [];
  if (done === "skipped") return [{ ...whole, answer: null, skipped: true }];
  if (done === "score") return [{ ...whole, answer: score }];
  return sample.items.map(({ kind, item, text }, i) => ({ ...label, kind, item, text, answer: answers[i], missing }));
}

// --- What the browser keeps, where it does, and what it downloads

function keep(value) {
  try { localStorage.setItem(STORED, JSON.stringify(value)); } catch { /* the download is all there is */ }
}
function kept() {
  try { return JSON.parse(localStorage.getItem(STORED)); } catch { return null; }
}
function download(name, lines) {
  const content = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const href = URL.createObjectURL(new Blob([content], { type: "application/jsonl" }));
  make("a", { download: name, href }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

// --- The page

const choices = (label, ...children) => (
  make("div.choices", { role: label && "group", "aria-label": label }, ...children));

// A button that keeps the focus when all is drawn again. `shortcut` is its key on the keyboard.
function keyed(key, label, run, { shortcut, ...attributes } = {}) {
  const hint = shortcut && make("kbd", { "aria-hidden": "true" }, shortcut);
  return button([label, hint], run, { "data-key": key, ...attributes });
}

class Labels {
  constructor(samples) {
    this.samples = samples;
    this.state = kept() || { byItems: true, samples: samples.map(unsaid) };
    this.current = 0;
    this.status = make("p", { role: "status" });
    this.progress = make("progress", { max: samples.length, "aria-label": "labelled samples" });
    this.saver = keyed("download", "download labels", () => (
      download("labels.jsonl", samples.flatMap((sample, i) => linesOf(sample, this.state.samples[i])))));
    this.panel = make("div");
    document.addEventListener("keydown", (event) => this.press(event));
  }

  // The first sample that is not done, and what was said of it.
  get at() {
    return this.state.samples.findIndex(({ done }) => done === null);
  }

  get sample() {
    return this.samples[this.at];
  }

  get said() {
    return this.state.samples[this.at];
  }

  get byItems() {
    return this.state.byItems && this.sample.items.length > 0;
  }

  get answered() {
    const { said, sample } = this;
    return this.byItems ? Object.keys(said.answers).length === sample.items.length : said.score !== null;
  }

  // --- What a person does

  changed() {
    keep(this.state);
    this.show();
  }

  answer(i, word) {
    this.said.answers[i] = word;
    this.current = nextItem(this.sample, this.said, i);
    this.changed();
  }

  score(value) {
    this.said.score = value;
    this.changed();
  }

  move(step) {
    this.current = Math.min(Math.max(this.current + step, 0), Math.max(this.sample.items.length - 1, 0));
    this.changed();
  }

  toggleMissing() {
    if (this.byItems && listedByJudge(this.sample)) this.said.missing = !this.said.missing;
    this.changed();
  }

  label(byItems) {
    this.state.byItems = byItems;
    this.current = 0;
    this.changed();
  }

  finish(done) {
    this.said.done = done;
    this.current = 0;
    this.changed();
  }

  lock() {
    if (this.answered) this.finish(this.byItems ? "items" : "score");
  }

  // Opens the sample before again, with what was said of it.
  back() {
    const last = (this.at < 0 ? this.samples.length : this.at) - 1;
    if (last < 0) return;
    this.state.samples[last].done = null;
    this.current = 0;
    this.changed();
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
    const run = this.actionOf(event.key);
    const scrolls = ["ArrowUp", "ArrowDown"].includes(event.key) && event.target.closest(".text");
    if (!run || scrolls) return;
    event.preventDefault();
    run();
  }

  actionOf(key) {
    if (key === "ArrowLeft" || key === "Backspace") return () => this.back();
    if (this.at < 0) return null;
    if (/^[1-9]$/.test(key)) return this.choiceOf(key - 1);
    return {
      s: () => this.finish("skipped"), m: () => this.toggleMissing(), ArrowRight: () => this.lock(),
      ArrowUp: this.byItems && (() => this.move(-1)), ArrowDown: this.byItems && (() => this.move(1)),
    }[key];
  }

  choiceOf(n) {
    if (!this.byItems) return n < SCORES.length && (() => this.score(SCORES[n]));
    const word = data.kinds[this.sample.items[this.current].kind].choices[n];
    return word && (() => this.answer(this.current, word));
  }

  // --- What stands on the page

  show() {
    const focused = document.activeElement?.dataset.key, { samples } = this.state;
    const done = samples.filter((said) => said.done !== null).length;
    const skipped = samples.filter((said) => said.done === "skipped").length;
    this.progress.value = done;
    this.saver.disabled = done === 0;
    this.status.textContent = `${done} of ${samples.length} samples done${skipped ? `, ${skipped} skipped` : ""}.${
      this.at < 0 ? " All samples are done: download your labels." : ""}`;
    this.panel.replaceChildren(...(this.at < 0 ? this.end() : [this.open()]));
    const again = [...main.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused);
    again?.focus({ preventScroll: true });
    this.panel.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    const mark = this.panel.querySelector("mark");
    if (mark) mark.parentNode.scrollTop = mark.offsetTop - mark.parentNode.offsetTop - 40;
  }

  end() {
    return [soft("Then: ", make("code", null, data.then)),
      choices(null, this.backButton())];
  }

  backButton() {
    return keyed("back", "back", () => this.back(), { shortcut: "\u2190", disabled: this.at === 0 });
  }

  open() {
    const { sample, said, byItems } = this;
    const marks = byItems ? sample.items[this.current].at || [] : [];
    const left = card(["Sample ", bdi(sample.of.id)], null, sample.texts.map((text) => textOf(text, marks)));
    const missing = byItems && listedByJudge(sample) && keyed("missing", "something is missing",
      () => this.toggleMissing(), { shortcut: "m", "aria-pressed": String(said.missing) });
    const right = card("Your labels", null, sample.items.length > 0 && this.ways(),
      byItems ? make("ol.labels", null, sample.items.map((item, i) => this.itemOf(item, i))) : this.scoreOf(),
      choices(null, missing, this.backButton(),
        keyed("skip", "skip this sample", () => this.finish("skipped"), { shortcut: "s" }),
        keyed("lock", "lock and go on", () => this.lock(), { shortcut: "\u2192", disabled: !this.answered })));
    return make("div.labelled", null, left, right);
  }

  ways() {
    const way = (key, label, byItems) => (
      keyed(key, label, () => this.label(byItems), { "aria-pressed": String(this.byItems === byItems) }));
    return make("div", null,
      choices("what to label", way("way:items", "each item", true), way("way:score", "one score", false)),
      soft("Only \u201cone score\u201d tells what people would say of the sample; items tell where the judge errs."));
  }

  itemOf({ kind, item, text }, i) {
    const { choices: all, question } = data.kinds[kind], current = i === this.current;
    const answers = all.map((word, n) => keyed(`${i}:${word}`, words(word), () => this.answer(i, word),
      { shortcut: current && n + 1, "aria-pressed": String(this.said.answers[i] === word) }));
    const meant = all.filter((word) => current && meanings.has(word));
    return make("li", { "aria-current": current && "step", "data-item": i },
      sentence(text), text !== question && soft(bdi(question)), choices(`${words(kind)} ${item}`, answers),
      meant.map((word) => soft(`${words(word)}: ${meanings.get(word)}`)));
  }

  scoreOf() {
    const { score } = this.said;
    const other = { id: "other", "data-key": "other" }, range = { type: "number", min: "0", max: "1", step: "any" };
    const input = make("input", { ...other, ...range, value: score });
    input.addEventListener("change", () => {
      if (input.reportValidity()) this.score(input.value === "" ? null : Number(input.value));
    });
    const all = SCORES.map((value, n) => keyed(`score:${value}`, String(value), () => this.score(value),
      { shortcut: n + 1, "aria-pressed": String(score === value) }));
    return make("div", null, soft("One score for the whole sample: 1 is the best, 0 the worst."), choices("score", all),
      choices(null, make("label", { for: "other" }, "or any number from 0 to 1"), input));
  }
}

function textOf([field, chunk, name, text], marks) {
  const inside = marks.filter((mark) => mark[0] === field && mark[1] === chunk);
  return passageOf(name, marked(text, inside.map(([, , start, end]) => ({ start, end, hue: 50 }))));
}

function label() {
  const page = new Labels(data.samples);
  const help = ["Keys: the digit on a button answers; \u2191 and \u2193 move; s skips; \u2192 locks and goes on.",
    "\u2190 goes back: the sample before is open again.", "Only locked and skipped samples are downloaded."].join(" ");
  main.replaceChildren(make("h1", null, "Label ", bdi(data.metric)), choices(null, page.progress, page.saver),
    page.status, soft(help), page.panel);
  page.show();
}

label();
