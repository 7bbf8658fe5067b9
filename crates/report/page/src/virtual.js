// A table of any length that has elements only for the rows in sight. Rows have one height.

const ROW = 24;
/** Rows beyond the visible ones on either side. */
const BEYOND = 6;
/** Height that is filled before the height is known, in pixels. */
const LEAST = 240;

export class VirtualTable {
  /**
   * `region` scrolls; `fill(row, item)` fills the cells of a row for an item, and calls [`text`] for what may be unchanged;
   * `cells`: number of cells.
   */
  constructor(region, cells, fill) {
    Object.assign(this, { region, fill, cells, items: [], pool: [] });
    this.table = region.querySelector("table");
    this.body = this.table.tBodies[0];
    [this.above, this.below] = [this.pad(), this.pad()];
    this.body.append(this.above, this.below);
    // Measured by observers: to read them while drawing would be a layout each time.
    [this.top, this.height] = [0, 0];
    region.addEventListener("scroll", () => {
      this.top = region.scrollTop;
      this.draw();
    }, { passive: true });
    new ResizeObserver(([{ contentRect }]) => {
      this.height = contentRect.height;
      this.draw();
    }).observe(region);
  }

  pad() {
    const row = document.createElement("tr");
    row.className = "pad";
    row.ariaHidden = "true";
    row.insertCell().colSpan = this.cells;
    return row;
  }

  /** Shows these items. `added`: how many are new at the top; what is read stays where it is. */
  show(items, added = 0) {
    this.items = items;
    this.table.setAttribute("aria-rowcount", items.length + 1);
    this.draw();
    if (added && this.top > ROW) this.region.scrollTop = this.top + added * ROW;
  }

  draw() {
    const { items, pool } = this;
    const seen = Math.ceil(Math.max(this.height, LEAST) / ROW) + 2 * BEYOND;
    const first = Math.max(0, Math.min(Math.floor(this.top / ROW) - BEYOND, items.length - seen));
    const shown = items.slice(first, first + seen);
    while (pool.length < shown.length) {
      const row = document.createElement("tr");
      for (let cell = 0; cell < this.cells; cell++) row.insertCell();
      this.below.before(row);
      pool.push(row);
    }
    for (const row of pool.splice(shown.length)) row.remove();
    this.above.hidden = first === 0;
    this.above.cells[0].style.height = `${first * ROW}px`;
    const after = items.length - first - shown.length;
    this.below.hidden = after <= 0;
    this.below.cells[0].style.height = `${after * ROW}px`;
    shown.forEach((item, nth) => {
      pool[nth].setAttribute("aria-rowindex", first + nth + 2);
      this.fill(pool[nth], item);
    });
  }

  /** Scrolls to an item, if it is not in sight. */
  reveal(nth) {
    const head = this.table.tHead.offsetHeight;
    const top = nth * ROW;
    const { scrollTop, clientHeight } = this.region;
    if (top < scrollTop) this.region.scrollTop = top;
    else if (top + ROW + head > scrollTop + clientHeight) this.region.scrollTop = top + ROW + head - clientHeight;
  }
}
