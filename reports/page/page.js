"use strict";
// What the parts of the page share. Each part is called with a root: the document, or a section of it
// in which something is new. What it has done before it leaves as it is.
const petlab = {};
globalThis.petlab = petlab;

// An element with attributes (functions: what hears an event) and children; texts are texts.
petlab.element = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};
petlab.parsed = (id) => JSON.parse(document.getElementById(id).textContent);
