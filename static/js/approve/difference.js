// What differs, as elements: old -> new for what is short, words for text, items for lists.

import { lines, text } from "./json.js";

const LONG = 80;
const MOST = 400;

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function made(name, attributes, ...children) {
  return make(name, { ...attributes, "data-made": "" }, ...children);
}

export function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

export function short(value, other) {
  if (value === undefined) return "–";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object" || JSON.isRawJSON?.(each))) {
    return value.map((each) => (typeof each === "string" ? each : text(each))).join(", ") || "[]";
  }
  const words = typeof value === "string" && (typeof other === "string" || other === undefined) && value !== "" ? value : text(value);
  return words.length > MOST ? `${words.slice(0, MOST - 2)}…` : words;
}

// Whether only a part of it would be shown, so that two of them may look alike.
export function isCut(value) {
  return value !== undefined && text(value).length > MOST;
}

export function areLong(was, is) {
  return typeof was === "string" && typeof is === "string" && (Math.max(was.length, is.length) > LONG || `${was}${is}`.includes("\n"));
}

export function change(was, is, { becomes }) {
  return made("p", { class: "change" }, make("del", {}, was), make("span", { "aria-hidden": "true" }, "→"), make("span", { class: "hidden-visually" }, becomes), make("ins", {}, is));
}

export function areScalars(value) {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each !== "object" || JSON.isRawJSON?.(each));
}

// A short list item by item, so that one gone address is seen among those that stay.
export function itemPieces(was, is) {
  const told = (value) => (typeof value === "string" && value.trim() ? value : text(value));
  return difference(was.map(told), is.map(told)).flatMap(([kind, old, fresh]) =>
    kind === "same" ? old.map((each) => make("span", {}, each)) : [...old.map((each) => make("del", {}, each)), ...fresh.map((each) => make("ins", {}, each))],
  );
}

export function wordDiff(was, is, title, { unchanged, unchangedOne }) {
  const box = made("div", { class: "word-diff", role: "group", "aria-label": title });
  for (const [kind, old, fresh] of difference(was.split("\n"), is.split("\n"))) {
    if (kind === "same") {
      const many = old.filter((line) => line.trim()).length;
      if (many) box.append(make("p", { class: "fold" }, many === 1 ? unchangedOne : unchanged.replace("%s", many)));
      continue;
    }
    for (let index = 0; index < Math.max(old.length, fresh.length); index += 1) {
      if (old[index] || fresh[index]) box.append(make("p", {}, ...wordPieces(old[index] ?? "", fresh[index] ?? "")));
    }
  }
  return box;
}

function wordPieces(was, is) {
  const pieces = [];
  let [gone, came] = ["", ""];
  const flush = () => {
    if (gone) pieces.push(make("del", {}, gone));
    if (came) pieces.push(gone ? " " : "", make("ins", {}, came));
    [gone, came] = ["", ""];
  };
  const blocks = difference(words(was), words(is));
  for (const [index, [kind, old, fresh]] of blocks.entries()) {
    const crumb = kind === "same" && old.join("").trim().length < 2 && (gone || came) && index < blocks.length - 1;
    if (kind === "same" && !crumb) {
      flush();
      pieces.push(old.join(""));
    } else {
      gone += old.join("");
      came += fresh.join("");
    }
  }
  flush();
  return pieces;
}

function words(line) {
  return line.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

// Longest common subsequence, as blocks of ["same", a, a] and ["other", removed, added].
function difference(a, b) {
  if (a.length * b.length > 4_000_000) return [["other", a, b]];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const blocks = [];
  const last = (kind) => {
    if (blocks.at(-1)?.[0] !== kind) blocks.push([kind, [], []]);
    return blocks.at(-1);
  };
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      const block = last("same");
      block[1].push(a[i++]);
      block[2].push(b[j++]);
    } else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) last("other")[1].push(a[i++]);
    else last("other")[2].push(b[j++]);
  }
  return blocks;
}
