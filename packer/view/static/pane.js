// One of the pictures that are seen next to each other: a bitmap, and a label over it, at any scale.
import { get, make } from "./api.js";
import { layerOf } from "./layer.js";
import { paletteOf, slots } from "./palette.js";

export class Pane {
  constructor(stage, base, over, wish) {
    this.box = make("div", "", "pane");
    this.base = Object.assign(make("canvas"), { id: base });
    this.over = Object.assign(make("canvas"), { id: over });
    this.title = make("p", "", "title");
    this.bar = make("p", "", "bar");
    this.box.append(this.base, this.over, this.title, this.bar);
    stage.append(this.box);
    this.context = this.base.getContext("2d");
    this.layer = layerOf(this.over, wish);
  }

  // Shows these parts: a bitmap, a layer, or both; the size counts if there is neither. `world` is what is known of the
  // distances of its pixels: down, across and their unit.
  show({ bitmap, layer, field, size, title, world }) {
    this.bitmap?.close();
    Object.assign(this, { bitmap, field, drawn: layer });
    this.title.textContent = title;
    this.size = layer ? [layer.height, layer.width] : bitmap ? [bitmap.height, bitmap.width] : size;
    this.world = size.join() === this.size.join() ? world : null;
    this.ratio = this.world ? this.world.down / this.world.across : 1;
    this.bar.textContent = "";
    if (layer && !this.layer.numbers(layer)) throw new Error("this label is larger than a texture: open the page with ?draw=2d");
  }

  fit() {
    const box = this.box.getBoundingClientRect(), dense = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.max(1, Math.round(box.width * dense));
      canvas.height = Math.max(1, Math.round(box.height * dense));
    }
  }

  colour(pack, look) {
    if (!this.drawn) return;
    const { window, range } = this.drawn;
    this.layer.colours(paletteOf(this.field, pack, { ...look, window: look.window ?? window, range }));
  }

  // The scale at which everything is seen.
  get least() {
    const [height, width] = this.size;
    return Math.min(this.base.width / width, this.base.height / (height * this.ratio));
  }

  // Where the picture lies: `zoom` times larger than whole, with the part at (u, v), from 0 to 1, in the middle.
  place({ zoom, u, v }) {
    const [height, width] = this.size, scale = this.least * zoom, tall = scale * this.ratio;
    return { scale, tall, x: this.base.width / 2 - u * width * scale, y: this.base.height / 2 - v * height * tall };
  }

  draw(view, { opacity, outlines, off }) {
    const { context, base } = this;
    context.clearRect(0, 0, base.width, base.height);
    this.layer.clear();
    if (!this.size) return;
    const [height, width] = this.size, { x, y, scale, tall } = this.place(view);
    context.imageSmoothingEnabled = scale < 1;
    context.fillStyle = "#f0f0f0";
    if (this.bitmap) context.drawImage(this.bitmap, x, y, width * scale, height * tall);
    else context.fillRect(x, y, width * scale, height * tall);
    if (this.drawn && !off) this.layer.draw({ x, y, scale, tall, opacity: this.bitmap ? opacity : 1, outlines });
    this.measure(scale);
  }

  // A bar of a round length.
  measure(scale) {
    if (!this.world) return;
    const dense = this.base.width / (this.box.getBoundingClientRect().width || 1);
    const most = (110 * dense * this.world.across) / scale, ten = 10 ** Math.floor(Math.log10(most));
    const length = ten * [5, 2, 1].find((times) => times * ten <= most);
    this.bar.style.width = `${(length * scale) / this.world.across / dense}px`;
    this.bar.textContent = [Number(length.toPrecision(1)), this.world.unit].filter(Boolean).join(" ");
  }

  // The row and column of the picture at a point of the pane; null if it is outside.
  at([left, top], view) {
    if (!this.size) return null;
    const { x, y, scale, tall } = this.place(view), column = Math.floor((left - x) / scale), row = Math.floor((top - y) / tall);
    const [height, width] = this.size;
    return row >= 0 && column >= 0 && row < height && column < width ? [row, column] : null;
  }

  // What the label has at a pixel.
  named([row, column]) {
    if (!this.drawn) return "";
    const { data, ids, bits, height, width, window, range } = this.drawn, at = row * width + column;
    if (ids) return ids[at] ? `object ${ids[at]}` : "no object";
    if (window) return data[at] ? (range[0] + ((data[at] - 1) / 65534) * (range[1] - range[0])).toPrecision(5) : "no value";
    const names = this.field.classes.names;
    if (!bits) return names[data[at]] ?? "ignored";
    const found = names.filter((_, number) => (data[(number >> 3) * height * width + at] >> (number & 7)) & 1);
    return found.join(", ") || "no class";
  }
}

export const pair = (answer, name) => answer.headers.get(name)?.split(" ").map(Number);

// The numbers of a label.
export async function numbers(address, field) {
  const answer = await get(address);
  const [planes, height, width, size] = answer.headers.get("x-shape").split(" ").map(Number);
  const buffer = await answer.arrayBuffer(), layer = { planes, height, width, bits: field.kind === "multilabel" };
  const read = size === 1 ? new Uint8Array(buffer) : size === 2 ? new Uint16Array(buffer) : new Uint32Array(buffer);
  layer.data = field.kind === "ids" ? slots(read) : read;
  if (field.kind === "ids") layer.ids = read;
  [layer.window, layer.range] = [pair(answer, "x-window"), pair(answer, "x-range")];
  return layer;
}
