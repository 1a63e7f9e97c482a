// The rows as a grid that scrolls. Only the cells that are seen exist; they are used again for other rows.
import { Busy, count, element, get, json, make, query } from "./api.js";

const HEIGHT = 228, WIDTH = 214, PART = 200, MOST_PARTS = 30;
const MOST_PIXELS = 8_000_000; // browsers place nothing beyond about 16 million pixels: then scrolling is scaled

export class Grid {
  constructor(pack, opened) {
    this.pack = pack;
    this.opened = opened;
    this.box = element("grid");
    this.filler = element("filler");
    this.cells = new Map();
    this.free = [];
    this.parts = new Map();
    this.total = 0;
    this.current = 0;
    this.version = 0;
    this.box.addEventListener("scroll", () => this.soon());
    new ResizeObserver(() => this.layout()).observe(this.box);
    this.box.addEventListener("keydown", (event) => this.pressed(event));
    this.box.addEventListener("click", (event) => {
      const cell = event.target.closest(".cell");
      if (cell) { this.current = Number(cell.dataset.index); this.open(); }
    });
  }

  async show(asked, look) {
    this.asked = asked;
    this.look = look;
    const version = ++this.version;
    this.parts.clear();
    element("status").textContent = "…";
    for (;;) {
      try {
        await this.part(0);
        break;
      } catch (error) {
        if (version !== this.version) return;
        if (!(error instanceof Busy)) { element("status").textContent = error.message; this.total = 0; break; }
        const { counted, rows, problem } = error.state;
        element("status").textContent = problem || `counting the pixels of all rows: ${count(counted)} of ${count(rows)}`;
        if (problem) { this.total = 0; break; }
        await new Promise((resolve) => setTimeout(resolve, 300));
        if (version !== this.version) return;
      }
    }
    if (version !== this.version) return;
    if (this.parts.size) element("status").textContent = `${count(this.total)} rows`;
    this.current = Math.min(this.current, Math.max(0, this.total - 1));
    for (const index of [...this.cells.keys()]) this.release(index);
    this.layout();
  }

  part(number) {
    if (!this.parts.has(number)) {
      const address = `api/rows?${query({ ...this.asked, from: number * PART, count: PART })}`;
      const version = this.version;
      const asked = json(address).then((answer) => {
        if (version === this.version) this.total = answer.total;
        return answer.rows;
      });
      asked.catch(() => this.parts.delete(number));
      this.parts.set(number, asked);
      if (this.parts.size > MOST_PARTS) this.parts.delete(this.parts.keys().next().value);
    }
    return this.parts.get(number);
  }

  async row(index) {
    return (await this.part(Math.floor(index / PART)))[index % PART];
  }

  layout() {
    const wide = this.box.clientWidth - 8;
    this.columns = Math.max(2, Math.floor(wide / WIDTH)); // a phone has two that are narrower
    this.width = Math.min(WIDTH, wide / this.columns);
    this.filler.style.setProperty("--cell", `${this.width - 6}px`);
    const lines = Math.ceil(this.total / this.columns);
    this.real = lines * HEIGHT;
    this.height = Math.min(this.real, MOST_PIXELS);
    this.filler.style.height = `${this.height}px`;
    this.box.setAttribute("aria-rowcount", String(lines));
    this.box.setAttribute("aria-colcount", String(this.columns));
    this.draw();
  }

  soon() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }

  // The line at the top, when scrolled to `top`. If everything is too high, the way is scaled.
  offset() {
    const room = this.box.clientHeight, way = this.height - room;
    if (this.real <= this.height || way <= 0) return this.box.scrollTop;
    return (this.box.scrollTop / way) * (this.real - room);
  }

  draw() {
    const top = this.offset(), room = this.box.clientHeight;
    const first = Math.max(0, Math.floor(top / HEIGHT) - 1) * this.columns;
    const last = Math.min(this.total, (Math.ceil((top + room) / HEIGHT) + 1) * this.columns);
    for (const index of [...this.cells.keys()]) if (index < first || index >= last) this.release(index);
    for (let index = first; index < last; index++) {
      const cell = this.cells.get(index) ?? this.fill(index);
      const line = Math.floor(index / this.columns);
      cell.style.top = `${line * HEIGHT - top + this.box.scrollTop + 3}px`;
      cell.style.left = `${(index % this.columns) * this.width + 6}px`;
      cell.classList.toggle("current", index === this.current);
    }
    const marked = this.cells.get(this.current);
    if (marked) this.box.setAttribute("aria-activedescendant", marked.id);
  }

  fill(index) {
    const cell = this.free.pop() ?? this.made();
    this.cells.set(index, cell);
    cell.dataset.index = String(index);
    cell.id = `row-${index}`;
    cell.hidden = false;
    const [image, name, number] = cell.firstChild.children;
    const version = this.version;
    // A row that is passed quickly is never asked for.
    setTimeout(async () => {
      if (this.cells.get(index) !== cell || version !== this.version) return;
      const row = await this.row(index).catch(() => null);
      if (!row || this.cells.get(index) !== cell || version !== this.version) return;
      image.src = `${this.pack.digest}/thumbnail/${row[0]}?${query(this.look)}`;
      name.textContent = row[2];
      name.title = row[2];
      number.textContent = row[5] === null ? row[1] : `${row[1]} · ${this.text(row[5])}`;
    }, 40);
    return cell;
  }

  text(number) {
    const share = ["share", "ignored"].includes(this.asked.sort);
    return share ? `${(100 * number).toPrecision(3)} %` : String(Number(number.toPrecision(4)));
  }

  made() {
    const cell = make("div", "", "cell"), inner = make("div"), image = make("img");
    cell.setAttribute("role", "row");
    inner.setAttribute("role", "gridcell");
    image.alt = "";
    image.decoding = "async";
    inner.append(image, make("span", "", "name"), make("span", "", "number"));
    cell.append(inner);
    this.filler.append(cell);
    return cell;
  }

  release(index) {
    const cell = this.cells.get(index);
    this.cells.delete(index);
    const [image, name, number] = cell.firstChild.children;
    image.removeAttribute("src");
    name.textContent = number.textContent = "";
    cell.hidden = true;
    cell.removeAttribute("id");
    this.free.push(cell);
  }

  move(step) {
    this.current = Math.min(Math.max(0, this.current + step), Math.max(0, this.total - 1));
    this.reveal();
  }

  reveal() {
    const line = Math.floor(this.current / this.columns) * HEIGHT, top = this.offset(), room = this.box.clientHeight;
    const wanted = line < top ? line : line + HEIGHT > top + room ? line + HEIGHT - room : top;
    const scale = this.real <= this.height ? 1 : (this.height - room) / (this.real - room);
    if (wanted !== top) this.box.scrollTop = wanted * scale;
    this.draw();
  }

  async open() {
    const row = this.total ? await this.row(this.current) : null;
    if (row) this.opened(row[0]);
    this.draw();
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / HEIGHT)) * this.columns;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns, PageUp: -page,
      PageDown: page, Home: -this.total, End: this.total };
    if (event.key in steps) { this.move(steps[event.key]); event.preventDefault(); }
    else if (event.key === "Enter") { this.open(); event.preventDefault(); }
  }
}
