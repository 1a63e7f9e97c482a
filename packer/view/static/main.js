// The page: filters on the left, the rows as a grid, and one row closely. Its address says what is shown.
import { count, element, json, make } from "./api.js";
import { Detail, fill } from "./detail.js";
import { Grid } from "./grid.js";

const SHARES = ["least", "most", "ignored_least", "ignored_most"];
const SCORES = ["score_least", "score_most"];
const ASKED = ["text", "split", "class", ...SHARES, ...SCORES, "finding", "sort", "descending"];
const LOOK = ["labels", "blind"];
const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
addEventListener("hashchange", () => location.reload());  // a link was pasted; what the page does itself fires none
const pack = await json("api/pack");

document.title = `${pack.name} – packer view`;
element("name").textContent = pack.name;
element("facts").textContent = `${count(pack.rows)} rows · generation ${pack.generation} · ${pack.created}`;
const counted = pack.fields.find((field) => field.name === pack.counted);
choices();
remarks();
const grid = new Grid(pack, (row) => open(row));
const look = { ...state, get blind() { return state.blind === "1"; } };
const detail = new Detail(pack, { closed: close, stepped: step, changed: (parts) => remember(parts), look });
window.view = { detail, grid };

function choices() {
  fill("split", [["", `all (${count(pack.rows)})`], ...pack.splits.map((split) => [split.name, `${split.name} (${count(split.rows)})`])], state.split ?? "");
  const names = counted ? counted.classes.names.slice(0, pack.most_classes) : [];
  fill("class", [["", "any"], ...names.map((name, number) => [String(number), name])], state.class ?? "");
  const findings = Object.entries(pack.findings);
  fill("finding", [["", "any row"], ...findings.map(([kind, [words, rows]]) => [kind, `${words} (${rows})`])], state.finding ?? "");
  const sorts = [["", "key"], ...(counted ? [["share", "share of the class"], ["ignored", "ignored pixels"], ["many", "number of classes"]] : []),
    ["brightness", "brightness"], ...(pack.scores ? [["score", "score"]] : [])];
  fill("sort", sorts, state.sort ?? "");
  element("with-class").hidden = element("with-share").hidden = element("with-ignored").hidden = !counted;
  element("with-finding").hidden = !findings.length;
  element("with-score").hidden = !pack.score_range;
  SCORES.forEach((name, end) => { element(name).placeholder = String(Number((pack.score_range ?? [0, 0])[end].toPrecision(4))); });
  for (const name of ["text", ...SHARES, ...SCORES]) element(name).value = state[name] ?? "";
  for (const name of ["descending", "blind"]) element(name).checked = state[name] === "1";
  element("labels").value = state.labels ?? "";
}

function remarks() {
  const known = pack.remarks, list = element("remark-list");
  if (!known) { list.append(make("p", "This pack does not have what its build noticed: it was copied, or is older.")); return; }
  if (!known.all_findings && !known.all_rejects) list.append(make("p", "Nothing."));
  for (const [kind, names, words] of known.findings) list.append(make("p", `${kind}: ${[...names, words].filter(Boolean).join(" · ")}`));
  if (known.all_rejects) list.append(make("p", `${count(known.all_rejects)} rejected pairs:`));
  for (const [name, words] of known.rejects) list.append(make("p", `${name}: ${words}`));
}

function remember(parts) {
  for (const [name, value] of Object.entries(parts)) {
    if (value === "" || value === null || value === undefined) delete state[name];
    else state[name] = String(value);
  }
  history.replaceState(null, "", `#${new URLSearchParams(state)}`);
}

function read() {
  const box = (name) => (element(name).checked ? "1" : "");
  remember({ ...Object.fromEntries(["text", "split", "class", ...SHARES, ...SCORES, "finding", "sort", "labels"].map((name) => [name, element(name).value])),
    descending: box("descending"), blind: box("blind") });
  element("with-share").disabled = !state.class;
  if (state.sort === "share" && !state.class) element("status").textContent = "choose a class to sort by its share";
  const share = (name) => (state[name] === undefined ? "" : String(Number(state[name]) / 100));
  const asked = Object.fromEntries(ASKED.map((name) => [name, SHARES.includes(name) ? share(name) : state[name] ?? ""]));
  return [asked, Object.fromEntries(LOOK.map((name) => [name, state[name] ?? ""]))];
}

let timer = 0;
function soon(wait) {
  clearTimeout(timer);
  timer = setTimeout(() => { grid.show(...read()); if (!element("detail").hidden) { detail.legend(); detail.recolour(); } }, wait);
}

function show(row) {
  element("detail").hidden = row === null;
  document.querySelector("main").hidden = row !== null;
}

async function open(row) {
  remember({ row });
  show(row);
  element("stage").focus({ preventScroll: true });
  await detail.open(row);
}

function close() {
  remember({ row: null });
  show(null);
  grid.layout();
  grid.reveal();
  element("grid").focus({ preventScroll: true });
}

function step(by) {
  grid.current = Math.min(Math.max(0, grid.current + by), Math.max(0, grid.total - 1));
  return grid.open();
}

element("filters").addEventListener("input", (event) => soon(event.target.type === "search" ? 250 : 0));
element("filters").addEventListener("submit", (event) => event.preventDefault());
element("filters").addEventListener("reset", () => soon(0));
element("show-filters").addEventListener("click", () => {
  const open = element("filters").classList.toggle("open");
  element("show-filters").setAttribute("aria-expanded", String(open));
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  event.preventDefault();
  element("filters").classList.add("open");
  element("text").focus();
});
await grid.show(...read());
if (state.row !== undefined && /^\d+$/.test(state.row)) await open(Number(state.row));
else element("grid").focus({ preventScroll: true });
