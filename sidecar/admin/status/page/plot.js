// One series or two over the last hour, drawn to the width that there is. With a pointer, or with the arrow keys, one
// reads the values of a moment.

import { clock, draw, make } from "./dom.js";

const HEIGHT = 150;
const LEFT = 44;
const TOP = 10;
const BOTTOM = 22;

export class Plot {
  /**
   * `series` are objects with `key`, the member of the hour, `label` and `name`, the class that colours it. They are
   * `bars` that stand on each other, or lines, the first with an area where it is `filled`. `format` writes a value.
   */
  constructor({ title, series, format, bars = false, filled = false, empty }) {
    Object.assign(this, { title, series, format, bars, filled, empty });
    this.cursor = null;
    this.value = make("p", { class: "value" }, "–");
    this.legend = make("p", { class: "legend", "aria-live": "polite" });
    this.svg = draw("svg", { role: "img", tabindex: "0" });
    this.root = make(
      "figure",
      { class: "plot card" },
      make("h3", {}, title),
      make("div", { class: "figures" }, this.value, this.legend),
      this.svg,
    );
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.move(null));
    this.svg.addEventListener("blur", () => this.move(null));
    this.svg.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.render()).observe(this.svg);
  }

  /** Show the `hour`, and a `value` with its `unit` in large type. */
  update(hour, value, unit) {
    this.hour = hour;
    this.value.replaceChildren(value, make("small", {}, unit));
    this.render();
  }

  press(event) {
    const last = this.hour ? this.hour[this.series[0].key].length - 1 : 0;
    const at = this.cursor ?? last + 1;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.move(to === null ? null : Math.min(last, Math.max(0, to)));
  }

  point(event) {
    if (!this.hour) return;
    const { left, width } = this.svg.getBoundingClientRect();
    const bins = this.hour[this.series[0].key].length;
    const at = Math.floor(((event.clientX - left - LEFT) / (width - LEFT)) * bins);
    this.move(Math.min(bins - 1, Math.max(0, at)));
  }

  move(cursor) {
    if (cursor === this.cursor) return;
    this.cursor = cursor;
    this.render();
  }

  render() {
    const width = this.svg.clientWidth;
    if (!this.hour || width === 0) return;
    const rows = this.series.map(({ key }) => this.hour[key]);
    const bins = rows[0].length;
    const sums = this.bars ? rows[0].map((_, bin) => rows.reduce((sum, row) => sum + row[bin], 0)) : rows.flat();
    const { top, ticks } = scale(Math.max(0, ...sums.filter((value) => value !== null)));
    const x = (bin) => LEFT + ((bin + 0.5) / bins) * (width - LEFT);
    const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP);
    const parts = [...this.axes(ticks, y, width)];
    const isEmpty = sums.every((value) => !value);
    if (isEmpty) {
      parts.push(draw("text", { class: "empty", x: (LEFT + width) / 2, y: HEIGHT / 2, "text-anchor": "middle" }, this.empty));
    } else if (this.bars) {
      parts.push(...this.blocks(rows, bins, x, y, (width - LEFT) / bins));
    } else {
      parts.push(...this.lines(rows, x, y));
    }
    if (this.cursor !== null) parts.push(...this.mark(rows, x, y));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(...parts);
    this.tell(rows, isEmpty);
  }

  *axes(ticks, y, width) {
    for (const tick of ticks) {
      yield draw("line", { class: "grid", x1: LEFT, x2: width, y1: y(tick), y2: y(tick) });
      yield draw("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, this.format(tick));
    }
    for (const [share, words, anchor] of [[0, "1 h ago", "start"], [0.5, "30 min", "middle"], [1, "now", "end"]]) {
      yield draw("text", { x: LEFT + share * (width - LEFT), y: HEIGHT - 4, "text-anchor": anchor }, words);
    }
  }

  *lines(rows, x, y) {
    for (const [index, row] of rows.entries()) {
      const { name } = this.series[index];
      for (const run of runs(row)) {
        const points = run.map((bin) => `${x(bin).toFixed(1)},${y(row[bin]).toFixed(1)}`).join(" L");
        if (run.length === 1) {
          yield draw("circle", { class: `dot ${name}`, cx: x(run[0]), cy: y(row[run[0]]), r: 2 });
          continue;
        }
        if (this.filled && index === 0) {
          const base = `${x(run.at(-1)).toFixed(1)},${y(0)} L${x(run[0]).toFixed(1)},${y(0)}`;
          yield draw("path", { class: `area ${name}`, d: `M${points} L${base} Z` });
        }
        yield draw("path", { class: `line ${name}`, d: `M${points}` });
      }
    }
  }

  *blocks(rows, bins, x, y, step) {
    const width = Math.max(1, step - 1);
    for (let bin = 0; bin < bins; bin += 1) {
      let below = 0;
      for (const [index, row] of rows.entries()) {
        if (!row[bin]) continue;
        const top = y(below + row[bin]);
        const at = { x: x(bin) - width / 2, y: top, width, height: y(below) - top, rx: Math.min(1.5, width / 2) };
        yield draw("rect", { class: `block ${this.series[index].name}`, ...at });
        below += row[bin];
      }
    }
  }

  *mark(rows, x, y) {
    const at = x(this.cursor);
    yield draw("line", { class: "cursor", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM });
    for (const [index, row] of rows.entries()) {
      if (this.bars || row[this.cursor] === null) continue;
      yield draw("circle", { class: `dot ${this.series[index].name}`, cx: at, cy: y(row[this.cursor]), r: 3.5 });
    }
  }

  /** Write the legend, with the values of the moment where there is a cursor, and the drawing's words. */
  tell(rows, isEmpty) {
    const { ends_at: end, bin_seconds: step } = this.hour;
    const values = (bin) => this.series.map(({ label }, index) => {
      const value = rows[index][bin];
      return `${label} ${value === null ? "–" : this.format(value)}`;
    });
    // One series alone is what the title says.
    const labels = this.series.length > 1 ? this.series.map(({ label }) => label) : [];
    const words = this.cursor === null ? labels : values(this.cursor);
    const entries = words.map((text, index) => make("span", { class: this.series[index].name }, make("b", {}, text)));
    const at = this.cursor === null ? [] : [clock(end - (rows[0].length - 1 - this.cursor) * step)];
    this.legend.replaceChildren(...at, ...entries);
    const told = isEmpty ? this.empty : `at the end ${values(rows[0].length - 1).join(", ")}`;
    this.svg.setAttribute("aria-label", `${this.title} over the last hour: ${told}. Arrow keys read the values.`);
  }
}

/** A round end of the axis that is no less than `most`, and its ticks. */
function scale(most) {
  if (most <= 0) return { top: 1, ticks: [0] };
  const power = 10 ** Math.floor(Math.log10(most));
  const top = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((end) => end >= most * 0.999);
  return { top, ticks: [0, top / 2, top] };
}

/** The bins that follow one another without a gap. */
function runs(row) {
  const found = [];
  row.forEach((value, bin) => {
    if (value === null) return;
    if (found.length > 0 && found.at(-1).at(-1) === bin - 1) found.at(-1).push(bin);
    else found.push([bin]);
  });
  return found;
}
