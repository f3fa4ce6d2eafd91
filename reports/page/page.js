"use strict";
// Functions shared by the parts of the page. Each part is called with a root: the document, or a
// section with new content. It must skip elements that it has already processed.
const petlab = {};
globalThis.petlab = petlab;

// Creates an element with attributes (functions become event listeners) and children (strings
// become text).
petlab.element = (name, attributes, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};
petlab.parsed = (id) => JSON.parse(document.getElementById(id).textContent);
