// Elements, made of names and texts. The promise: what comes from the server becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

// `attributes` that are functions listen to the event of their name; false and null leave an attribute out.
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Writes only what has changed: a selection or a screen reader's place in the text is kept.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

// A name as it is shown: what would hide in it, or turn the text around, is spelled out.
export function shown(name) {
  return String(name).replace(INVISIBLE, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// A path with a name in it. A browser takes `.` and `..` for steps in the path, however they are written.
export function path(prefix, name, rest = "") {
  if (name === "." || name === "..") throw new Error("A browser can't ask for a name of dots only.");
  return prefix + encodeURIComponent(name) + rest;
}
