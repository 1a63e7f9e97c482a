// Requests to the server that this page came from. Addresses are relative, so that a token in ours stays in them.

export class Busy extends Error {
  constructor(state) { super("counting"); this.state = state; }
}

export async function get(address, signal) {
  const answer = await fetch(address, { signal });
  if (answer.status === 503) throw new Busy(await answer.json());
  if (!answer.ok) throw new Error((await answer.text()) || answer.statusText);
  return answer;
}

export const json = async (address, signal) => (await get(address, signal)).json();

export function query(parts) {
  const set = Object.entries(parts).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return new URLSearchParams(set).toString();
}

export const element = (id) => document.getElementById(id);

// All names are set as text, never as HTML.
export function make(tag, text = "", name = "") {
  const made = document.createElement(tag);
  if (text !== "") made.textContent = text;
  if (name) made.className = name;
  return made;
}

export const count = (number) => Number(number).toLocaleString("en");
