"use strict";
// What both views stand on: the page's data, words and numbers, elements, texts with marks.
// Every text from outside becomes a text node or an attribute's value, never markup, and is the key of a Map only: an
// object knows "constructor", too.

const data = JSON.parse(document.getElementById("data").textContent);
const meanings = new Map(Object.entries(data.meanings));
const main = document.querySelector("main");

// --- Words and numbers. They do not touch the document.

const number = (value, digits = 3) => value.toFixed(digits).replace("-", "\u2212");
const signed = (value) => (value > 0 ? "+" : "") + number(value);
const whole = (n) => n.toLocaleString("en");
const count = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;
const DASH = "\u2013";
const words = (text) => text.replaceAll("_", " ");

// Part of a text. Offsets count characters, not UTF-16 units.
const part = (text, start, end) => Array.from(text).slice(start, end).join("");

// A text cut where marks begin and end: each piece with the marks over it.
function piecesOf(text, marks) {
  const edges = [0, Array.from(text).length, ...marks.flatMap(({ start, end }) => [start, end])];
  const cuts = [...new Set(edges)].sort((a, b) => a - b);
  const pieces = cuts.slice(1).map((cut, i) => [
    part(text, cuts[i], cut), marks.filter(({ start, end }) => start <= cuts[i] && cuts[i] < end),
  ]);
  return pieces.filter(([piece]) => piece);
}

// --- Elements

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== false && value !== undefined) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter(Boolean));
  return element;
}

// An element by its name and classes: "p.soft".
function make(selector, attributes, ...children) {
  const [name, ...classes] = selector.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

const draw = (name, attributes, ...children) => (
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children));
const bdi = (text) => make("bdi", null, text);
const soft = (...children) => make("p.soft", null, ...children);
const sentence = (text) => text && make("p", { dir: "auto" }, text);
const card = (title, attributes, ...children) => (
  make("section.card", attributes, make("h2", null, title), ...children));
const folded = (title, ...children) => make("details", null, make("summary.soft", null, title), ...children);
const listed = (sentences) => (
  sentences.length > 0 && make("ul", null, sentences.map((each) => make("li", { dir: "auto" }, each))));

function button(label, run, attributes) {
  const element = make("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", run);
  return element;
}

// What is wider than the screen scrolls.
const scrolling = (label, table, role = "group") => (
  make("div.scroll", { tabindex: 0, role, "aria-label": label }, table));

// A table. The first `texts` columns hold text; a cell is text, what stands in it, or a whole td or th.
function tableOf(caption, head, rows, texts = 1) {
  const kind = (i) => (i < texts ? "text" : "number");
  const heading = (name, i) => make("th", { scope: "col", class: kind(i) }, bdi(name));
  const cell = (content, i) => (
    /^t[dh]$/.test(content.localName) ? content
      : make("td", { class: kind(i) }, typeof content === "string" ? bdi(content) : content));
  return scrolling(caption, make("table", null,
    make("caption", null, bdi(caption)),
    make("thead", null, make("tr", null, head.map(heading))),
    make("tbody", null, rows.map((row) => make("tr", null, row.map(cell))))));
}

// A text in which marks stand: { start, end, hue, title, here, to }. Where several overlap the first one counts; `to`
// is the id of the element to which it leads.
const marked = (text, marks) => (
  piecesOf(text, marks).map(([piece, over]) => (over.length ? markOf(piece, over) : piece)));

function markOf(piece, over) {
  const [{ hue, to }] = over;
  const title = [...new Set(over.map((mark) => mark.title).filter(Boolean))].join("; ");
  const attributes = { style: `--hue:${hue}`, title, class: over.some((mark) => mark.here) && "here" };
  if (to === undefined) return make("mark", attributes, piece);
  const element = make("mark", { ...attributes, role: "button", tabindex: 0 }, piece);
  element.addEventListener("click", () => leadTo(to));
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    leadTo(to);
  });
  return element;
}

function leadTo(id) {
  const element = document.getElementById(id);
  element.closest("details")?.setAttribute("open", "");
  element.focus();
  element.scrollIntoView({ block: "center" });
}

function passageOf(name, pieces) {
  const text = make("div.text", { dir: "auto", tabindex: 0, role: "region", "aria-label": name }, pieces);
  return make("div.passage", null, make("h3", null, bdi(name)), text);
}
