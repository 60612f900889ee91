// dom.js - makes elements, and changes a page into a newer one without losing focus or scroll.

const SVG = 'http://www.w3.org/2000/svg';
const HANDLERS = ['onclick', 'oninput', 'onchange', 'onsubmit', 'onkeydown', 'ontoggle', 'onmousemove', 'onmouseleave'];

function add(parent, child) {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) child.forEach((c) => add(parent, c));
  else parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  add(element, children);
  return element;
}

// h('a', {href: '#/'}, 'text', [more]): text always becomes a text node, so nothing in it is markup.
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const keyOf = (node) => (node.nodeType === 1 && (node.getAttribute('data-k') || node.id)) || null;

function syncAttributes(old, next) {
  for (const { name } of [...old.attributes])
    if (!next.hasAttribute(name) && !(old.nodeName === 'DETAILS' && name === 'open')) old.removeAttribute(name);
  for (const { name, value } of [...next.attributes])
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of HANDLERS) if (old[name] !== next[name]) old[name] = next[name];
}

// A value that a person is typing, or has chosen, stays.
function syncInput(old, next, valueBefore) {
  if (old.nodeName === 'INPUT' && (old.type === 'checkbox' || old.type === 'radio')) old.checked = next.checked;
  else if (document.activeElement !== old && valueBefore !== next.defaultValue) old.value = next.value;
}

// Changes `old` into `next`. Elements with the same data-k or id stay the same element.
export function morph(old, next) {
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName || keyOf(old) !== keyOf(next)) {
    old.replaceWith(next);
    return;
  }
  if (old.nodeType !== 1) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  const valueBefore = old.defaultValue;
  syncAttributes(old, next);
  if (old.nodeName === 'INPUT' || old.nodeName === 'TEXTAREA') {
    syncInput(old, next, valueBefore);
    if (old.nodeName === 'TEXTAREA') return;
  }
  if (old.hasAttribute('data-keep')) return; // its children are not the page's
  morphChildren(old, next);
  if (old.nodeName === 'SELECT' && document.activeElement !== old) old.value = next.value;
}

export function morphChildren(old, next) {
  const keyed = new Map();
  for (const child of old.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = old.firstChild;
  for (const child of [...next.childNodes]) {
    const same = keyOf(child) && keyed.get(keyOf(child));
    if (same && same !== at) old.insertBefore(same, at);
    const found = same || at;
    if (found && (same || !keyOf(found))) {
      const after = found.nextSibling;
      morph(found, child);
      at = after;
    } else old.insertBefore(child, at);
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}
