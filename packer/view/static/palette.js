// Palettes of 65,536 colours: for each number of a layer red, green, blue, and whether it is shown, hatched or hidden.
import { FAINT, HIDDEN, IGNORED_MARK, SHOWN } from "./layer.js";

const BACKGROUND = "#181a1f", NONE = 65534, OBJECTS = 64;

export function paletteOf(field, pack, look) {
  const palette = new Uint8Array(4 * 65536);
  if (field.kind === "ids") objects(palette, pack.objects);
  else if (field.kind === "values") values(palette, pack.ramp, look);
  else classes(palette, field, look);
  return palette;
}

function set(palette, number, colour, mark) {
  palette.set([1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)), 4 * number);
  palette[4 * number + 3] = mark;
}

function classes(palette, field, look) {
  const { names, ignore, colours, blind } = field.classes, drawn = look.blind ? blind : colours;
  names.forEach((_, number) => set(palette, number, drawn[number], look.hidden.has(number) ? HIDDEN : SHOWN));
  if (field.kind === "multilabel") set(palette, NONE, BACKGROUND, FAINT);
  else set(palette, ignore, drawn[names.length], look.ignored ? IGNORED_MARK : HIDDEN);
}

function objects(palette, colours) {
  set(palette, 0, BACKGROUND, FAINT);
  for (let number = 1; number <= OBJECTS; number++) set(palette, number, colours[number - 1], SHOWN);
}

// Steps 1 to 65,535 go from the smallest to the largest number of the row; 0 is a pixel without a number.
function values(palette, ramp, { window, range, ignored }) {
  const [low, high] = window, [first, last] = range, wide = high - low || 1;
  for (let step = 1; step < 65536; step++) {
    const number = first + ((step - 1) / 65534) * (last - first);
    const at = Math.round(255 * Math.min(1, Math.max(0, (number - low) / wide)));
    set(palette, step, ramp[at], SHOWN);
  }
  set(palette, 0, "#dedede", ignored ? IGNORED_MARK : HIDDEN);
}

// Objects have 32 bits: each gets one of the colours, and 0 stays nothing.
export function slots(ids) {
  const out = new Uint8Array(ids.length);
  for (let at = 0; at < ids.length; at++) out[at] = ids[at] ? 1 + (Math.imul(ids[at], 2654435769) >>> 26) : 0;
  return out;
}
