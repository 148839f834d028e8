// Paths: $.to[0].name, $["odd key"], and rows that were added: $.to[n1].

function steps(name) {
  const found = name.slice(1).matchAll(/\.([A-Za-z_][\w-]*)|\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]|\[([^\]]*)\]/g);
  return [...found].map(([, word, quoted, index, row]) => word ?? (quoted ? JSON.parse(quoted) : index === undefined ? { row } : Number(index)));
}

export function get(value, name) {
  return steps(name).reduce((inner, step) => {
    if (inner === null || inner === undefined || typeof step === "object") return undefined;
    return Object.hasOwn(inner, step) ? inner[step] : undefined;
  }, value);
}
