// JSON that keeps the digits of its numbers (1.0, 2**200) where the browser can tell us them.

export function parse(source) {
  return JSON.parse(source, (key, value, context) =>
    typeof value === "number" && context?.source && JSON.rawJSON && String(value) !== context.source ? JSON.rawJSON(context.source) : value,
  );
}

export function text(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value && typeof value === "object" && !JSON.isRawJSON?.(value)) {
    return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)}}`;
  }
  return JSON.stringify(value);
}

export function lines(value) {
  return value.replaceAll("\r\n", "\n");
}
