// Elements are made of plain text alone: nothing that comes from elsewhere is ever read as markup.

export const find = (id) => document.getElementById(id);

/** An element with attributes and children; a child that is text stays text. `null` and `false` are left out. */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for a part of a drawing. */
export function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
}

/** A part of the page that is made anew only where what it shows has changed: what is selected in it stays so. */
export class Shown {
  update(value, show) {
    const text = JSON.stringify(value);
    if (text === this.text) return;
    this.text = text;
    show(value);
  }
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (number) => whole.format(number);

/** A number in a few characters. */
export function brief(number) {
  if (number >= 10000) return short.format(number);
  return number >= 100 || Number.isInteger(number) ? whole.format(number) : String(Number(number.toFixed(1)));
}

/** So many of something, in words. */
export const some = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

/** An amount of money, which comes as an exact decimal, to a hundredth of a hundredth. */
export const money = (decimal) => new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 }).format(decimal);

/** A time of so many seconds. */
export function duration(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 0.9995) return `${Number((seconds * 1000).toPrecision(2))} ms`;
  if (seconds < 100) return `${Number(seconds.toPrecision(2))} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** A moment, in seconds since the epoch, as the clock on this machine's wall. */
export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}
