"use strict";
// What the pages' scripts share. Every text from outside becomes a text node or an attribute's value, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}
const soft = (...children) => make("p", { class: "soft" }, ...children);
