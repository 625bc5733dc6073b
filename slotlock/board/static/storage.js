// @ts-check
/** What the browser stores for this site; where storage is full or forbidden, this page remembers it. */

class Stored {
  /** What could not be stored. @type {Map<string, string>} */
  memory = new Map();

  /** @param {() => Storage} area of the browser, which may be forbidden */
  constructor(area) {
    this.area = area;
  }

  /** @param {string} key @returns {string | null} */
  get(key) {
    try {
      return this.memory.get(key) ?? this.area().getItem(key);
    } catch {
      return null;
    }
  }

  /**
   * Return what a function makes of a value that was stored as JSON, or null if there is none that it can use: a person
   * or an older page may have stored another one.
   * @template T @param {string} key @param {(value: any) => T} use @returns {T | null}
   */
  read(key, use) {
    try {
      return use(JSON.parse(this.get(key) ?? "null")) || null;
    } catch {
      return null;
    }
  }

  /** @param {string} key @param {string} value */
  set(key, value) {
    try {
      this.area().setItem(key, value);
      this.memory.delete(key);
    } catch {
      this.remove(key); // after a reload, an old value would be worse than none
      this.memory.set(key, value);
    }
  }

  /** @param {string} key */
  remove(key) {
    this.memory.delete(key);
    try {
      this.area().removeItem(key);
    } catch {
      // Nothing is stored.
    }
  }

  /** @param {string} prefix of keys */
  removeAll(prefix) {
    try {
      for (const key of [...this.memory.keys(), ...Object.keys(this.area())]) if (key.startsWith(prefix)) this.remove(key);
    } catch {
      this.memory.clear();
    }
  }
}

/** Of this browser. */
export const local = new Stored(() => localStorage);
/** Of this tab, also after a reload. */
export const tab = new Stored(() => sessionStorage);
