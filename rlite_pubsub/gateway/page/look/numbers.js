// Numbers as they are read. What is not known is a dash.

const UNKNOWN = "–";
const whole = new Intl.NumberFormat("en-US");

function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

export function count(value) {
  return known(value) ? whole.format(Math.round(value)) : UNKNOWN;
}

// "1 group", "2 groups".
export function some(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

function scaled(value, steps, base) {
  let step = 0;
  while (Math.abs(value) >= base * 0.9995 && step < steps.length - 1) {
    value /= base;
    step += 1;
  }
  const digits = step === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits))) + steps[step];
}

export function short(value) {
  if (!known(value)) return UNKNOWN;
  return Math.abs(value) < 10 && !Number.isInteger(value) ? value.toFixed(1) : scaled(value, ["", "k", "M", "G"], 1000);
}

export function bytes(value) {
  return known(value) ? scaled(value, [" B", " kB", " MB", " GB", " TB"], 1000) : UNKNOWN;
}

export function milliseconds(value) {
  if (!known(value)) return UNKNOWN;
  if (value < 1000) return `${value < 10 ? value.toFixed(value % 1 ? 1 : 0) : Math.round(value)} ms`;
  const seconds = value / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function time(ms) {
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export function perSecond(value, text = short) {
  return known(value) ? `${text(value)}/s` : UNKNOWN;
}

// "14:03", or "14:03:20".
export function clock(ms, hasSeconds) {
  return time(ms).slice(0, hasSeconds ? 8 : 5);
}

export function dateAndTime(ms) {
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time(ms)}`;
}
