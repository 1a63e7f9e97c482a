// One row, closely: its picture and its label over it, drawn at any scale.
import { count, element, get, json, make, query } from "./api.js";
import { numbers, pair, Pane } from "./pane.js";
import { distances, pointAt, sidesOf, titleOf } from "./world.js";

const LARGEST = 40;
const WHOLE = { zoom: 1, u: 0.5, v: 0.5 };
const RAW = { raw: "raw file", again: "raw file, packed again", "raw-pixels": "pixels that differ" };

export class Detail {
  constructor(pack, { closed, stepped, changed, look }) {
    this.pack = pack;
    this.look = look;
    this.changed = changed;
    this.fields = new Map(pack.fields.map((field) => [field.name, field]));
    this.stage = element("stage");
    const wish = new URLSearchParams(location.search).get("draw");
    this.panes = ["", "-2", "-3"].map((name) => new Pane(this.stage, `base${name}`, `over${name}`, wish));
    this.unzoom();
    this.hidden = new Map();
    this.windows = new Map();
    this.choices();
    element("close").addEventListener("click", closed);
    element("before").addEventListener("click", () => stepped(-1));
    element("after").addEventListener("click", () => stepped(1));
    new ResizeObserver(() => { this.fit(); this.draw(); }).observe(this.stage);
    this.controls();
    this.pointer();
    this.keys(closed, stepped);
  }

  get layer() { return this.panes[0].layer; }

  get drawnLayer() { return this.panes[0].drawn; }

  get size() { return this.panes[0].size; }

  choices() {
    const pictures = this.pack.fields.filter((field) => field.kind === "picture");
    const labels = this.pack.fields.filter((field) => field.kind !== "picture");
    fill("picture", [...pictures.map((field) => [field.name, field.name]), ["", "none"]], this.look.picture ?? this.pack.picture ?? "");
    fill("label", [...labels.map((field) => [field.name, field.name]), ["", "none"]], this.look.label ?? this.pack.label ?? "");
    element("with-picture").hidden = !pictures.length;
    element("with-label").hidden = !labels.length;
    const ways = [["", "nothing"], ["raw", "the raw file"], ["again", "the raw file, packed again"],
      ["raw-pixels", "the raw file: pixels that differ"]];
    if (this.pack.against) {
      const name = `generation ${this.pack.against.generation}`;
      ways.push(["other", name], ["pixels", `${name}: pixels that differ`]);
    }
    fill("compare", ways, this.look.compare ?? "");
  }

  controls() {
    element("opacity").value = String(this.look.opacity ?? 50);
    element("outlines").checked = this.look.outlines === "1";
    element("ignored").checked = this.look.ignored !== "0";
    for (const name of ["picture", "label", "compare"]) {
      element(name).addEventListener("change", () => {
        if (name === "compare") this.raw = null;
        this.note();
        this.load();
      });
    }
    element("opacity").addEventListener("input", () => { this.note(); this.draw(); });
    element("outlines").addEventListener("change", () => { this.note(); this.draw(); });
    element("ignored").addEventListener("change", () => { this.note(); this.recolour(); });
    for (const side of [0, 1, 2]) element(`plane-${side}`).addEventListener("input", () => this.moved(side));
    for (const name of ["low", "high"]) element(name).addEventListener("input", () => this.slide());
  }

  note() {
    this.changed({
      picture: other(element("picture").value, this.pack.picture), label: other(element("label").value, this.pack.label),
      opacity: other(element("opacity").value, "50"), outlines: element("outlines").checked ? "1" : "",
      ignored: element("ignored").checked ? "" : "0", compare: element("compare").value,
    });
  }

  async open(row) {
    this.row = row;
    this.raw = null;
    this.loads = (this.loads ?? 0) + 1;
    this.unzoom();
    const version = (this.version = (this.version ?? 0) + 1);
    try {
      const facts = await json(`api/rows/${row}`);
      if (version !== this.version) return;
      this.facts = facts;
      this.cut = facts.size.length > 2 ? facts.size.map((side) => side >> 1) : null;
      this.pictureWindow = null;
      this.describe();
      await this.load();
    } catch (error) {
      element("key").textContent = error.message;
    }
  }

  describe() {
    const facts = this.facts, list = element("row-facts");
    element("key").textContent = facts.key;
    element("key").title = facts.key;
    this.stage.setAttribute("aria-label", `Row ${facts.key}`);
    list.replaceChildren();
    const add = (name, text) => text && list.append(make("dt", name), make("dd", text));
    add("split", facts.split);
    add("row", count(facts.row));
    add("size", facts.size.join(" × ") + (facts.source_size ? `, before ${facts.source_size.join(" × ")}` : ""));
    facts.placement.forEach((words, number) => add(number ? "" : "geometry", words));
    if (facts.place) add("place", [facts.place.crs, `pixels of ${facts.place.spacing.map((step) => Number(step.toPrecision(6))).join(" × ")}${facts.place.kind === "nifti" ? " mm" : ""}`].filter(Boolean).join(", "));
    add("note", facts.note);
    add("score", facts.score === null ? "" : String(Number(facts.score.toPrecision(6))));
    for (const field of facts.fields) {
      add(field.name, [field.shape.join(" × "), field.whole ? "" : "DAMAGED", ...field.sources].filter(Boolean).join(" · "));
    }
    add("shard", `${facts.shard}, row ${facts.row_of_shard}`);
  }

  legend() {
    const box = element("classes"), field = this.over, facts = this.facts.fields.find((known) => known.name === field?.name);
    box.replaceChildren();
    if (!field?.classes || !facts) return;
    const hidden = this.hiddenOf(field), pixels = this.facts.size.reduce((area, side) => area * side, 1);
    const colours = this.look.blind ? field.classes.blind : field.classes.colours;
    const shares = new Map(facts.classes.map(([name, found]) => [name, found / pixels]));
    const all = make("label"), every = make("input");
    every.type = "checkbox";
    every.checked = ![...shares.keys()].some((name) => hidden.has(field.classes.names.indexOf(name)));
    all.append(every, make("span", "all classes of this row", "name"));
    every.addEventListener("change", () => {
      for (const name of shares.keys()) hidden[every.checked ? "delete" : "add"](field.classes.names.indexOf(name));
      this.legend();
      this.recolour();
    });
    box.append(all);
    for (const [name, share] of shares) {
      const number = field.classes.names.indexOf(name), line = make("label"), box_ = make("input"), swatch = make("span", "", "swatch");
      box_.type = "checkbox";
      box_.checked = !hidden.has(number);
      swatch.style.background = colours[number];
      box_.addEventListener("change", () => { hidden[box_.checked ? "delete" : "add"](number); this.recolour(); });
      line.append(box_, swatch, make("span", name, "name"), make("span", `${(100 * share).toPrecision(3)} %`));
      box.append(line);
    }
  }

  hiddenOf(field) {
    if (!this.hidden.has(field.name)) this.hidden.set(field.name, new Set());
    return this.hidden.get(field.name);
  }

  async load() {
    if (!this.facts) return; // a control was used before the row came
    const version = (this.loads = (this.loads ?? 0) + 1), facts = this.facts, says = element("compared");
    const has = new Set(facts.fields.map((field) => field.name)), way = element("compare").value;
    const picture = this.fields.get(element("picture").value), label = this.fields.get(element("label").value);
    this.under = picture && has.has(picture.name) ? picture : null;
    this.over = label && has.has(label.name) ? label : null;
    says.textContent = way in RAW ? "reading the raw file…" : "";
    try {
      const planes = this.cut && !way ? [0, 1, 2] : [0]; // the first decides the window of the others
      for (const side of planes) {
        const stored = await this.parts(`${this.pack.digest}/`, facts.row, "", side);
        if (version !== this.loads) return;
        this.panes[side].show({ ...this.frame(side), ...stored, ...(way ? { title: "stored" } : {}) });
      }
      this.panes.forEach((pane, side) => { pane.box.hidden = !planes.includes(side); });
      this.shown();
      const other = way ? await this.other(way, version) : null;
      if (version !== this.loads) return;
      if (other) {
        this.panes[1].show({ ...this.frame(0), ...other });
        this.panes[1].box.hidden = false;
        this.shown();
      }
    } catch (error) {
      this.raw = null;
      if (version === this.loads) says.textContent = error.message;
    }
  }

  // What is known of a plane besides its pixels; of a picture, of all of it.
  frame(side) {
    const { place, size } = this.facts, sides = sidesOf(size, side);
    return { size: sides.map((each) => size[each]), world: distances(place, sides),
      title: this.cut ? titleOf(place, size, side, this.cut[side]) : "" };
  }

  // A slider of a volume was moved: its plane is loaded, and those that came meanwhile are left out.
  async moved(side) {
    if (!this.cut) return;
    this.cut[side] = Number(element(`plane-${side}`).value);
    if (element("compare").value) { clearTimeout(this.sliding); this.sliding = setTimeout(() => this.load(), 120); return; }
    const wanted = this.cut[side], loads = this.loads;
    try {
      const stored = await this.parts(`${this.pack.digest}/`, this.facts.row, "", side);
      if (wanted !== this.cut[side] || loads !== this.loads) return;
      this.panes[side].show({ ...this.frame(side), ...stored });
      this.panes[side].fit();
      this.recolour();
    } catch (error) {
      element("compared").textContent = error.message;
    }
  }

  shown() {
    element("planes").hidden = !this.cut;
    this.stage.classList.toggle("planes", Boolean(this.isApart));
    this.cut?.forEach((index, side) => {
      const slider = element(`plane-${side}`);
      slider.max = String(this.facts.size[side] - 1);
      slider.value = String(index);
      slider.parentElement.hidden = side > 0 && element("compare").value !== "";
    });
    this.sliders();
    this.legend();
    this.fit();
    this.recolour();
  }

  // The picture and the label of a row, or of a plane of a volume: as stored, or with `of` from its raw file.
  async parts(begin, row, of, side = 0) {
    const plane = this.cut ? { side, at: this.cut[side] } : {};
    const address = (kind, field, more) => `${begin}${kind}/${row}/${encodeURIComponent(field.name)}?${query({ of, ...plane, ...more })}`;
    const { under, over } = this, kept = (of || this.cut) && this.pictureWindow;
    const [low, high] = (under && this.windows.get(under.name)) ?? kept ?? [];
    const window = under?.dtype === "|u1" ? {} : { low, high };
    const [picture, layer] = await Promise.all([
      under ? get(address("picture", under, window)) : null, over ? numbers(address("layer", over), over) : null]);
    if (picture && !of && !kept) [this.pictureWindow, this.pictureRange] = [pair(picture, "x-window"), pair(picture, "x-range")];
    return { bitmap: picture && await createImageBitmap(await picture.blob()), layer, field: over };
  }

  // What is seen next to the stored row; nothing if there is nothing to see, which is then said in words.
  async other(way, version) {
    const { facts, pack } = this, says = element("compared"), field = this.over ?? this.under;
    const differ = async (more) => {
      const plane = this.cut ? { side: 0, at: this.cut[0] } : {};
      const answer = await get(`difference/${facts.row}/${encodeURIComponent(field.name)}?${query({ ...plane, ...more })}`);
      const differing = answer.headers.get("x-pixels");
      if (differing === null) return [null, await answer.text()]; // nothing to subtract
      const bitmap = await createImageBitmap(await answer.blob());
      return [{ bitmap, title: `${field.name}: pixels that differ` }, `${count(differing)} pixels differ`];
    };
    if (way in RAW) {
      this.raw ??= json(`api/raw/${facts.row}`);
      const raw = await this.raw;
      if (version !== this.loads) return null;
      says.textContent = raw.problem || [found(raw.differences), ...raw.notes].join(" · ");
      if (raw.problem || !field || (way === "raw" && !raw.own_size)) return null;
      if (way === "raw-pixels") return (await differ({}))[0];
      return { ...await this.parts(`${pack.digest}/`, facts.row, way === "raw" ? "file" : "again"), title: RAW[way] };
    }
    if (facts.against === null) says.textContent = "the other generation does not have this row";
    if (facts.against === null || !field) return null;
    if (way === "other") return { ...await this.parts(`${pack.against.digest}/`, facts.against, ""), title: `generation ${pack.against.generation}` };
    const [shown, words] = await differ({ other: facts.against });
    if (version === this.loads) says.textContent = words;
    return shown;
  }

  // The field whose numbers a window is for: measured values above, else a picture that is not of 8 bits.
  get windowed() {
    if (this.drawnLayer?.window) return [this.over.name, this.drawnLayer.window, this.drawnLayer.range];
    const wide = this.under && this.under.dtype !== "|u1" && this.pictureWindow;
    return wide ? [this.under.name, this.pictureWindow, this.pictureRange] : null;
  }

  sliders() {
    const found = this.windowed;
    element("window").hidden = !found;
    if (!found) return;
    const [name, window, [first, last]] = found, shown = this.windows.get(name) ?? window;
    const at = (number) => String(Math.round((1000 * (number - first)) / (last - first || 1)));
    [element("low").value, element("high").value] = shown.map(at);
    element("numbers").textContent = shown.map((number) => Number(number.toPrecision(5))).join(" to ");
  }

  slide() {
    const [name, , [first, last]] = this.windowed;
    const asked = ["low", "high"].map((id) => first + (Number(element(id).value) / 1000) * (last - first)).sort((a, b) => a - b);
    this.windows.set(name, asked);
    element("numbers").textContent = asked.map((number) => Number(number.toPrecision(5))).join(" to ");
    if (this.drawnLayer?.window) this.recolour();
    else {
      clearTimeout(this.sliding);
      this.sliding = setTimeout(() => this.load(), 120);
    }
  }

  recolour() {
    if (this.over) {
      const look = { blind: this.look.blind, hidden: this.hiddenOf(this.over), ignored: element("ignored").checked,
        window: this.windows.get(this.over.name) ?? this.drawnLayer?.window };
      for (const pane of this.seen) pane.colour(this.pack, look);
    }
    this.draw();
  }

  get seen() { return this.panes.filter((pane) => pane.size && !pane.box.hidden); }

  fit() {
    for (const pane of this.seen) pane.fit();
  }

  // Planes of a volume are moved one by one, pictures next to each other together.
  get isApart() { return this.cut && !element("compare").value; }

  unzoom() { this.views = this.panes.map(() => ({ ...WHOLE })); }

  viewOf(pane) { return this.views[this.isApart ? this.panes.indexOf(pane) : 0]; }

  draw() {
    const look = { opacity: Number(element("opacity").value) / 100, outlines: element("outlines").checked, off: this.off };
    for (const pane of this.seen) pane.draw(this.viewOf(pane), look);
  }

  zoom(factor, pane, [x, y]) {
    const view = this.viewOf(pane), least = Math.min(1, pane.least) / 2, before = pane.place(view), [height, width] = pane.size;
    const scale = Math.min(LARGEST, Math.max(least, before.scale * factor));
    const [u, v] = [(x - before.x) / (width * before.scale), (y - before.y) / (height * before.tall)];
    Object.assign(view, { zoom: scale / pane.least, u: u - (x - pane.base.width / 2) / (width * scale),
      v: v - (y - pane.base.height / 2) / (height * scale * pane.ratio) });
    this.draw();
  }

  // The pane below a pointer, and the point in it.
  below(event) {
    for (const pane of this.seen) {
      const box = pane.box.getBoundingClientRect(), dense = pane.base.width / box.width;
      const inside = event.clientX >= box.left && event.clientX < box.right && event.clientY >= box.top && event.clientY < box.bottom;
      if (inside) return [pane, [(event.clientX - box.left) * dense, (event.clientY - box.top) * dense]];
    }
    return [null, null];
  }

  pointer() {
    this.stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [pane, point] = this.below(event);
      if (pane) this.zoom(Math.exp(-event.deltaY / 300), pane, point);
    }, { passive: false });
    let held = null;
    this.stage.addEventListener("pointerdown", (event) => {
      const [pane, point] = this.below(event);
      if (pane) { held = [pane, point]; this.stage.setPointerCapture(event.pointerId); }
    });
    this.stage.addEventListener("pointerup", () => { held = null; });
    this.stage.addEventListener("pointermove", (event) => {
      const [pane, point] = this.below(event);
      if (held && pane === held[0]) {
        const view = this.viewOf(pane), { scale, tall } = pane.place(view), [height, width] = pane.size;
        view.u -= (point[0] - held[1][0]) / (width * scale);
        view.v -= (point[1] - held[1][1]) / (height * tall);
        held = [pane, point];
        this.draw();
      }
      this.name(pane, point);
    });
    this.stage.addEventListener("pointerleave", () => { element("pixel").textContent = ""; });
  }

  // Names the pixel below the pointer, in each picture that has as many pixels.
  name(pane, point) {
    const at = pane?.at(point, this.viewOf(pane));
    if (!at) { element("pixel").textContent = ""; return; }
    const side = this.isApart ? this.panes.indexOf(pane) : 0, { place, size } = this.facts, index = [...(this.cut ?? at)];
    if (this.cut) sidesOf(size, side).forEach((each, number) => { index[each] = at[number]; });
    const same = this.isApart ? [pane] : this.seen.filter((other) => other.size.join() === pane.size.join());
    const names = same.map((other) => [same.length > 1 && other.title.textContent, other.named(at)].filter(Boolean).join(": "));
    const where = place && place.spacing.length === index.length ? pointAt(place, index) : "";
    element("pixel").textContent = [[...index].reverse().join(", "), where, ...names].filter(Boolean).join(" · ");
  }

  keys(closed, stepped) {
    document.addEventListener("keydown", (event) => {
      if (element("detail").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") closed();
      const typing = /^(SELECT|INPUT|BUTTON|TEXTAREA|SUMMARY)$/.test(event.target.tagName);
      if (typing && !(event.target.type === "checkbox" && event.key !== " ")) return;
      const deeds = {
        ArrowLeft: () => stepped(-1), ArrowUp: () => stepped(-1), ArrowRight: () => stepped(1), ArrowDown: () => stepped(1),
        " ": () => { this.off = !this.off; this.draw(); },
        o: () => element("outlines").click(),
        "+": () => this.fade(10), "=": () => this.fade(10), "-": () => this.fade(-10),
        0: () => { this.unzoom(); this.draw(); },
        "[": () => this.leaf(-1), "]": () => this.leaf(1),
      };
      if (event.key in deeds) { event.preventDefault(); deeds[event.key](); }
    });
  }

  leaf(step) {
    element("plane-0").value = String(Number(element("plane-0").value) + step);
    this.moved(0);
  }

  fade(step) {
    element("opacity").value = String(Number(element("opacity").value) + step);
    this.note();
    this.draw();
  }
}

const other = (value, usual) => (value === (usual ?? "") ? "" : value || "none");

// What differs between a row and its raw file that was packed again.
function found(differences) {
  const differ = Object.entries(differences).filter(([, [pixels]]) => pixels);
  if (!differ.length) return "packed again, the raw file gives the stored row: no pixel differs";
  return `packed again, the raw file gives another row: ${differ.map(([name, [pixels, largest]]) =>
    `${count(pixels)} pixels of ${name} differ${largest ? `, by ${Number(largest.toPrecision(5))} at most` : ""}`).join(", ")}`;
}

function fill(id, choices, chosen) {
  element(id).replaceChildren(...choices.map(([value, text]) => {
    const option = make("option", text);
    option.value = value;
    return option;
  }));
  element(id).value = chosen === "none" ? "" : chosen;
}

export { fill };
