// @ts-check
/**
 * The view kernel: elements, lists with keys, and one redraw a frame. A view is a function that
 * returns new elements; `patch` changes those on the page until they are equal, so that focus,
 * selection and scrolling stay. Text is only ever a text node.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {{key: string, signature: string, build: () => Element}} Row
 * @typedef {Record<string, any>} Attributes
 */

/** The handlers of an element by event, and its rows if it is a list. @type {WeakMap<Element, Record<string, any>>} */
const handlersOf = new WeakMap();
/** @type {WeakMap<Element, Row[]>} */
const rowsOf = new WeakMap();
/** What is on the page: the rows of a list by key. @type {WeakMap<Element, Map<string, {element: Element, signature: string}>>} */
const shownOf = new WeakMap();

/**
 * Create an element. Attributes that are null or false are left out, functions are handlers of
 * events (`onclick`), `value` and `checked` are properties, and `style` is an object of custom
 * properties (`{"--from": 15}`): the policy forbids the attribute.
 * @param {string} tag
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Create an element of SVG.
 * @param {string} tag
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * Create a list whose rows are built again only if their signature changes.
 * @param {string} tag
 * @param {Attributes | null} attributes
 * @param {Row[]} rows
 * @returns {any}
 */
export function list(tag, attributes, rows) {
  const element = fill(document.createElement(tag), { ...attributes, "data-list": true }, []);
  rowsOf.set(element, rows);
  return element;
}

/** @param {Element} element @param {Attributes | null | undefined} attributes @param {(Child | Child[])[]} children */
function fill(element, attributes, children) {
  /** @type {Record<string, any>} */
  const handlers = {};
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") handlers[name.slice(2)] = value;
    else if (name === "value" || name === "checked") /** @type {any} */ (element)[name] = value;
    else if (name === "style") for (const [property, each] of Object.entries(value))
      /** @type {HTMLElement} */ (element).style.setProperty(property, String(each));
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  if (Object.keys(handlers).length) {
    handlersOf.set(element, handlers);
    for (const event of Object.keys(handlers)) element.addEventListener(event, handle);
  }
  for (const child of children.flat(Infinity)) {
    if (child != null && child !== false && child !== "") element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** @param {Event} event */
function handle(event) {
  const element = /** @type {Element} */ (event.currentTarget);
  handlersOf.get(element)?.[event.type]?.(event);
}

/**
 * Change the children of an element on the page until they equal these.
 * @param {Element} parent
 * @param {Child[]} children
 */
export function patch(parent, children) {
  patchChildren(parent, fill(document.createElement("div"), null, children));
}

/** @param {Element} parent @param {Element} wanted */
function patchChildren(parent, wanted) {
  const keys = new Set([...wanted.children].map(keyOf));
  let old = parent.firstChild;
  for (const next of [...wanted.childNodes]) {
    while (old && keyOf(old) && !keys.has(keyOf(old))) {
      const following = old.nextSibling;
      old.remove();
      old = following;
    }
    if (old === null) {
      parent.append(complete(next));
    } else if (keyOf(next) !== keyOf(old)) {
      // What has a key stays, wherever something comes before it.
      const known = keyOf(next) && [...parent.children].find((each) => isSame(each, /** @type {Element} */ (next)));
      parent.insertBefore(known || complete(next), old);
      if (known) patchElement(known, /** @type {Element} */ (next));
    } else {
      const following = old.nextSibling;
      patchNode(old, next);
      old = following;
    }
  }
  while (old !== null) {
    const following = old.nextSibling;
    old.remove();
    old = following;
  }
}

/** @param {ChildNode} old @param {Node} next */
function patchNode(old, next) {
  if (old instanceof Element && next instanceof Element && isSame(old, next)) {
    patchElement(old, next);
  } else if (old.nodeType === Node.TEXT_NODE && next.nodeType === Node.TEXT_NODE) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
  } else {
    old.replaceWith(complete(next));
  }
}

/** @param {Node} node @returns {string} its key, or an empty text */
function keyOf(node) {
  return (node instanceof Element && node.getAttribute("data-key")) || "";
}

/** @param {Element} old @param {Element} next */
function isSame(old, next) {
  return old.tagName === next.tagName && old.getAttribute("data-key") === next.getAttribute("data-key");
}

/** @param {Element} old @param {Element} next */
function patchElement(old, next) {
  // What the person unfolded stays so.
  for (const name of old.getAttributeNames()) if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const name of next.getAttributeNames()) {
    const value = /** @type {string} */ (next.getAttribute(name));
    if (old.getAttribute(name) === value) continue;
    if (name === "style") /** @type {HTMLElement} */ (old).style.cssText = value;
    else old.setAttribute(name, value);
  }
  const handlers = handlersOf.get(next);
  const known = handlersOf.get(old);
  if (handlers) {
    for (const event of Object.keys(handlers)) if (!known?.[event]) old.addEventListener(event, handle);
    handlersOf.set(old, handlers);
  } else if (known) {
    handlersOf.delete(old);
  }
  if (old instanceof HTMLInputElement || old instanceof HTMLTextAreaElement) {
    const { checked, value } = /** @type {HTMLInputElement} */ (next);
    if ("checked" in old && checked !== old.checked) old.checked = checked;
    if (next.hasAttribute("data-controlled") && value !== old.value) old.value = value;
  }
  const rows = rowsOf.get(next);
  if (rows) showRows(old, rows);
  else if (!old.hasAttribute("data-own")) patchChildren(old, next); // its view changes it by itself
}

/** Build the rows of all lists in a new node. @param {Node} node @returns {Node} */
function complete(node) {
  if (!(node instanceof Element)) return node;
  const lists = [...node.querySelectorAll("[data-list]")];
  if (node.hasAttribute("data-list")) lists.push(node);
  for (const element of lists) showRows(element, rowsOf.get(element) ?? []);
  return node;
}

/** @param {Element} parent @param {Row[]} rows */
function showRows(parent, rows) {
  const shown = shownOf.get(parent) ?? new Map();
  shownOf.set(parent, shown);
  const keys = new Set(rows.map((row) => row.key));
  for (const [key, row] of shown) {
    if (!keys.has(key)) {
      row.element.remove();
      shown.delete(key);
    }
  }
  let position = parent.firstChild;
  for (const { key, signature, build } of rows) {
    let row = shown.get(key);
    if (row === undefined) {
      row = { element: /** @type {Element} */ (complete(build())), signature };
      shown.set(key, row);
    } else if (row.signature !== signature) {
      row.signature = signature;
      const next = build();
      if (isSame(row.element, next)) {
        patchElement(row.element, next);
      } else {
        const old = row.element;
        row.element = /** @type {Element} */ (complete(next));
        if (position === old) position = row.element;
        old.replaceWith(row.element);
      }
    }
    if (row.element === position) position = row.element.nextSibling;
    else parent.insertBefore(row.element, position);
  }
}

/** @type {() => void} */
let draw = () => {};
let isRequested = false;

/** Use this function for each redraw. @param {() => void} function_ */
export function drawWith(function_) {
  draw = function_;
}

/** Draw once in the next frame, however often this is called. A hidden page draws as well. */
export function redraw() {
  if (isRequested) return;
  isRequested = true;
  const run = () => {
    isRequested = false;
    draw();
  };
  if (document.hidden) setTimeout(run, 250);
  else requestAnimationFrame(run);
}
