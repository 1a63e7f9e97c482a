// One row, closely: its picture and its label over it, drawn at any scale.
import { count, element, get, json, make, query } from "./api.js";
import { layerOf } from "./layer.js";
import { paletteOf, slots } from "./palette.js";

const LARGEST = 40;

export class Detail {
  constructor(pack, { closed, stepped, changed, look }) {
    this.pack = pack;
    this.look = look;
    this.changed = changed;
    this.fields = new Map(pack.fields.map((field) => [field.name, field]));
    this.stage = element("stage");
    this.base = element("base");
    this.context = this.base.getContext("2d");
    this.layer = layerOf(element("over"), new URLSearchParams(location.search).get("draw"));
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

  choices() {
    const pictures = this.pack.fields.filter((field) => field.kind === "picture");
    const labels = this.pack.fields.filter((field) => field.kind !== "picture");
    fill("picture", [...pictures.map((field) => [field.name, field.name]), ["", "none"]], this.look.picture ?? this.pack.picture ?? "");
    fill("label", [...labels.map((field) => [field.name, field.name]), ["", "none"]], this.look.label ?? this.pack.label ?? "");
    element("with-picture").hidden = !pictures.length;
    element("with-label").hidden = !labels.length;
    const ways = [["", "nothing"]];
    if (this.pack.against) {
      const name = `generation ${this.pack.against.generation}`;
      ways.push(["other", name], ["pixels", `pixels that differ from ${name}`]);
    }
    fill("compare", ways, "");
    element("with-compare").hidden = ways.length === 1;
  }

  controls() {
    element("opacity").value = String(this.look.opacity ?? 50);
    element("outlines").checked = this.look.outlines === "1";
    element("ignored").checked = this.look.ignored !== "0";
    for (const name of ["picture", "label", "compare"]) {
      element(name).addEventListener("change", () => { this.note(); this.load(); });
    }
    element("opacity").addEventListener("input", () => { this.note(); this.draw(); });
    element("outlines").addEventListener("change", () => { this.note(); this.draw(); });
    element("ignored").addEventListener("change", () => { this.note(); this.recolour(); });
    for (const name of ["low", "high"]) element(name).addEventListener("input", () => this.slide());
  }

  note() {
    this.changed({
      picture: other(element("picture").value, this.pack.picture), label: other(element("label").value, this.pack.label),
      opacity: other(element("opacity").value, "50"), outlines: element("outlines").checked ? "1" : "",
      ignored: element("ignored").checked ? "" : "0",
    });
  }

  async open(row) {
    this.row = row;
    this.scale = 0;
    const version = (this.version = (this.version ?? 0) + 1);
    try {
      const facts = await json(`api/rows/${row}`);
      if (version !== this.version) return;
      this.facts = facts;
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
    add("note", facts.note);
    add("score", facts.score === null ? "" : String(facts.score));
    for (const field of facts.fields) {
      add(field.name, [field.shape.join(" × "), field.whole ? "" : "DAMAGED", ...field.sources].filter(Boolean).join(" · "));
    }
    add("shard", `${facts.shard}, row ${facts.row_of_shard}`);
  }

  legend() {
    const box = element("classes"), field = this.over, facts = this.facts.fields.find((known) => known.name === field?.name);
    box.replaceChildren();
    if (!field?.classes || !facts) return;
    const hidden = this.hiddenOf(field), pixels = facts.shape.at(-1) * facts.shape.at(-2);
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
    const version = this.version, facts = this.facts, has = new Set(facts.fields.map((field) => field.name));
    const way = element("compare").value, ours = way !== "other" || facts.against === null;
    const place = ours ? [this.pack.digest, facts.row] : [this.pack.against.digest, facts.against];
    const picture = this.fields.get(element("picture").value), label = this.fields.get(element("label").value);
    this.under = picture && has.has(picture.name) ? picture : null;
    this.over = label && has.has(label.name) ? label : null;
    element("compared").textContent = way && facts.against === null ? "the other generation does not have this row" : "";
    try {
      const [bitmap, layer] = await Promise.all([this.picture(place, way), this.over && way !== "pixels" ? numbers(place, this.over) : null]);
      if (version !== this.version) return;
      this.bitmap?.close();
      this.bitmap = bitmap;
      this.drawnLayer = layer;
      this.size = layer ? [layer.height, layer.width] : bitmap ? [bitmap.height, bitmap.width] : facts.size;
      if (layer && !this.layer.numbers(layer)) throw new Error("this label is larger than a texture: open the page with ?draw=2d");
    } catch (error) {
      element("compared").textContent = error.message;
      return;
    }
    this.sliders();
    this.legend();
    if (!this.scale) this.fit();
    this.recolour();
  }

  // The picture that lies below. Of pixels that differ, another one.
  async picture(place, way) {
    const field = way === "pixels" ? this.over ?? this.under : this.under;
    if (!field) return null;
    let address = `${place[0]}/picture/${place[1]}/${encodeURIComponent(field.name)}`;
    if (way === "pixels" && this.facts.against !== null) {
      address = `difference/${this.facts.row}/${encodeURIComponent(field.name)}?other=${this.facts.against}`;
    }
    const window = this.windows.get(field.name);
    if (!way && window) address += `?${query({ low: window[0], high: window[1] })}`;
    const answer = await get(address);
    this.pictureWindow = pair(answer, "x-window");
    this.pictureRange = pair(answer, "x-range");
    const differ = answer.headers.get("x-pixels");
    if (differ !== null) element("compared").textContent = `${count(differ)} pixels differ`;
    return createImageBitmap(await answer.blob());
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
    if (this.over && this.drawnLayer) {
      const { window, range } = this.drawnLayer;
      const look = { blind: this.look.blind, hidden: this.hiddenOf(this.over), ignored: element("ignored").checked,
        window: this.windows.get(this.over.name) ?? window, range };
      this.layer.colours(paletteOf(this.over, this.pack, look));
    }
    this.draw();
  }

  fit() {
    const box = this.stage.getBoundingClientRect(), dense = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [this.base, element("over")]) {
      canvas.width = Math.max(1, Math.round(box.width * dense));
      canvas.height = Math.max(1, Math.round(box.height * dense));
    }
    if (!this.size) return;
    const [height, width] = this.size;
    this.scale = Math.min(this.base.width / width, this.base.height / height);
    this.x = (this.base.width - width * this.scale) / 2;
    this.y = (this.base.height - height * this.scale) / 2;
  }

  draw() {
    const { context, base } = this;
    context.clearRect(0, 0, base.width, base.height);
    this.layer.clear();
    if (!this.size || !this.scale) return;
    const [height, width] = this.size;
    context.imageSmoothingEnabled = this.scale < 1;
    context.fillStyle = "#f0f0f0";
    if (this.bitmap) context.drawImage(this.bitmap, this.x, this.y, width * this.scale, height * this.scale);
    else context.fillRect(this.x, this.y, width * this.scale, height * this.scale);
    const opacity = this.off ? 0 : this.bitmap ? Number(element("opacity").value) / 100 : 1;
    if (!this.drawnLayer || this.off) return;
    this.layer.draw({ x: this.x, y: this.y, scale: this.scale, opacity, outlines: element("outlines").checked });
  }

  zoom(factor, x, y) {
    if (!this.size) return;
    const least = Math.min(1, this.base.width / this.size[1], this.base.height / this.size[0]) / 2;
    const scale = Math.min(LARGEST, Math.max(least, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.draw();
  }

  pointer() {
    const at = (event) => {
      const box = this.stage.getBoundingClientRect(), dense = this.base.width / box.width;
      return [(event.clientX - box.left) * dense, (event.clientY - box.top) * dense];
    };
    this.stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), ...at(event));
    }, { passive: false });
    let held = null;
    this.stage.addEventListener("pointerdown", (event) => { held = at(event); this.stage.setPointerCapture(event.pointerId); });
    this.stage.addEventListener("pointerup", () => { held = null; });
    this.stage.addEventListener("pointermove", (event) => {
      const now = at(event);
      if (held) {
        this.x += now[0] - held[0];
        this.y += now[1] - held[1];
        held = now;
        this.draw();
      }
      this.tell(now);
    });
    this.stage.addEventListener("pointerleave", () => { element("pixel").textContent = ""; });
  }

  tell([x, y]) {
    if (!this.size) return;
    const column = Math.floor((x - this.x) / this.scale), row = Math.floor((y - this.y) / this.scale);
    const [height, width] = this.size, inside = row >= 0 && column >= 0 && row < height && column < width;
    element("pixel").textContent = inside ? `${column}, ${row}${this.drawnLayer ? ` · ${this.named(row, column)}` : ""}` : "";
  }

  // What the label has at a pixel.
  named(row, column) {
    const { data, ids, planes, bits, height, width, window, range } = this.drawnLayer, at = row * width + column;
    if (ids) return ids[at] ? `object ${ids[at]}` : "no object";
    if (window) return data[at] ? (range[0] + ((data[at] - 1) / 65534) * (range[1] - range[0])).toPrecision(5) : "no value";
    const names = this.over.classes.names;
    if (!bits) return names[data[at]] ?? "ignored";
    const found = names.filter((_, number) => (data[(number >> 3) * height * width + at] >> (number & 7)) & 1);
    return found.join(", ") || "no class";
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
        0: () => { this.fit(); this.draw(); },
      };
      if (event.key in deeds) { event.preventDefault(); deeds[event.key](); }
    });
  }

  fade(step) {
    element("opacity").value = String(Number(element("opacity").value) + step);
    this.note();
    this.draw();
  }
}

const other = (value, usual) => (value === (usual ?? "") ? "" : value || "none");

const pair = (answer, name) => answer.headers.get(name)?.split(" ").map(Number);

function fill(id, choices, chosen) {
  element(id).replaceChildren(...choices.map(([value, text]) => {
    const option = make("option", text);
    option.value = value;
    return option;
  }));
  element(id).value = chosen === "none" ? "" : chosen;
}

export { fill };

async function numbers([digest, row], field) {
  const answer = await get(`${digest}/layer/${row}/${encodeURIComponent(field.name)}`);
  const [planes, height, width, size] = answer.headers.get("x-shape").split(" ").map(Number);
  const buffer = await answer.arrayBuffer(), layer = { planes, height, width, bits: field.kind === "multilabel" };
  const read = size === 1 ? new Uint8Array(buffer) : size === 2 ? new Uint16Array(buffer) : new Uint32Array(buffer);
  layer.data = field.kind === "ids" ? slots(read) : read;
  if (field.kind === "ids") layer.ids = read;
  [layer.window, layer.range] = [pair(answer, "x-window"), pair(answer, "x-range")];
  return layer;
}
