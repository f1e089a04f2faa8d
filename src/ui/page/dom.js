// Makes and changes nodes of the document. All text reaches it by textContent: names and messages are data, whatever they
// contain.

export const $ = (id) => document.getElementById(id);

export function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Replaces the text of a node only if it differs: a selection in it survives. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
