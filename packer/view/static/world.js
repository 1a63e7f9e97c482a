// Where the pixels of a row are in the world: distances, directions and points.

const ENDS = { nifti: [["L", "R"], ["P", "A"], ["I", "S"]], geo: [["west", "east"], ["south", "north"]] };
const NAMES = ["slice", "row", "column"];

// The sides of a row that a plane shows, down and across; a picture has two.
export const sidesOf = (size, side) => (size.length < 3 ? [0, 1] : [0, 1, 2].filter((each) => each !== side));

export function distances(place, [down, across]) {
  return place && { down: place.spacing[down], across: place.spacing[across], unit: place.kind === "nifti" ? "mm" : "" };
}

// The end of the world that an index along this side leads to, such as R for the right of a patient.
function end(place, side) {
  const steps = place.matrix.map((line) => line[line.length - 2 - side]);
  const most = steps.reduce((best, step, number) => (Math.abs(step) > Math.abs(steps[best]) ? number : best), 0);
  return ENDS[place.kind][most][steps[most] > 0 ? 1 : 0];
}

export function titleOf(place, size, side, index) {
  const [down, across] = sidesOf(size, side), ends = place ? ` · → ${end(place, across)} ↓ ${end(place, down)}` : "";
  return `${NAMES[side]} ${index} of ${size[side]}${ends}`;
}

// The point at an index: the centre of a voxel, and the centre of a pixel of a map.
export function pointAt(place, index) {
  const half = place.kind === "nifti" ? 0 : 0.5, along = index.map((number) => number + half).reverse();
  const point = place.matrix.map((line) => along.reduce((sum, number, at) => sum + number * line[at], line[line.length - 1]));
  return `${point.map((number) => Number(number.toPrecision(9))).join(", ")}${place.kind === "nifti" ? " mm" : ""}`;
}
