// Figures, sizes, spans and times as text. Pure, but for the time zone that `setZone` chooses.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const NONE = "–";
const UNITS = ["B", "KB", "MB", "GB", "TB"];
const SPANS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const DATE_TIME = { year: "numeric", month: "short", day: "numeric", ...CLOCK, timeZoneName: "short" };

let zone;
/** The formats of times by their names; to make one takes much longer than to use it. */
const formats = new Map();

/** Shows times in UTC, or in the zone of the browser. */
export function setZone(name) {
  zone = name === "utc" ? "UTC" : undefined;
  formats.clear();
}

/** A count with thousands separated; a dash for null and undefined. */
export const count = (value) => (value === null || value === undefined ? NONE : whole.format(value));

/** A rate or another measured figure: one digit below 100, none above. */
export function figure(value) {
  if (value === null || value === undefined) return NONE;
  if (value > 0 && value < 0.05) return "< 0.1";
  return (Math.abs(value) < 100 ? oneDigit : whole).format(value);
}

/** A count with a noun: "1 subscription", "2 subscriptions". */
export const counted = (value, noun, plural = `${noun}s`) => `${count(value)} ${value === 1 ? noun : plural}`;

/** Bytes as {value, unit}, in powers of 1,000. */
export function scaledBytes(value) {
  let scaled = value ?? 0;
  let power = 0;
  while (scaled >= 1000 && power < UNITS.length - 1) {
    scaled /= 1000;
    power += 1;
  }
  return { value: scaled, unit: UNITS[power] };
}

/** Bytes as text, such as "1.2 MB". */
export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  const scaled = scaledBytes(value);
  return `${figure(scaled.value)} ${scaled.unit}`;
}

/** Seconds as the two figures of a duration that matter: "820 µs", "8.4 ms", "12 s", "3 min", "2 d". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 0.001) return `${figure(seconds * 1e6)} µs`;
  if (seconds < 1) return `${figure(seconds * 1000)} ms`;
  for (const [size, unit] of SPANS) {
    if (seconds >= size) return `${whole.format(Math.floor(seconds / size))} ${unit}`;
  }
  return NONE;
}

/** How long ago a moment (ISO text, or seconds since 1970) was; "never" for null. */
export function ago(moment, now = Date.now()) {
  const time = milliseconds(moment);
  if (time === null) return "never";
  const seconds = (now - time) / 1000;
  return seconds < 1 ? "just now" : `${duration(seconds)} ago`;
}

/** Seconds from a moment to now; negative for the future, null for none. */
export function secondsSince(moment, now = Date.now()) {
  const time = milliseconds(moment);
  return time === null ? null : (now - time) / 1000;
}

/** A moment as milliseconds since 1970; null if there is none or it is malformed. */
export function milliseconds(moment) {
  if (moment === null || moment === undefined || moment === "") return null;
  const time = typeof moment === "number" ? moment * 1000 : Date.parse(moment);
  return Number.isFinite(time) ? time : null;
}

function formatOf(name, options) {
  let format = formats.get(name);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone });
    formats.set(name, format);
  }
  return format;
}

/** The time of day, with `digits` of a second. */
export function clock(moment, digits = 0) {
  const time = milliseconds(moment);
  if (time === null) return NONE;
  return formatOf(`clock ${digits}`, { ...CLOCK, fractionalSecondDigits: digits || undefined }).format(time);
}

/** Date and time, for titles and details. */
export function dateTime(moment) {
  const time = milliseconds(moment);
  if (time === null) return NONE;
  return formatOf("date and time", DATE_TIME).format(time);
}

/** The zone of shown times, such as "UTC+1". */
export function zoneName() {
  if (zone) return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  if (!minutes) return "UTC";
  const sign = minutes < 0 ? "−" : "+";
  const hours = Math.floor(Math.abs(minutes) / 60);
  const rest = Math.abs(minutes) % 60;
  return `UTC${sign}${hours}${rest ? `:${String(rest).padStart(2, "0")}` : ""}`;
}

/** The next of 1, 2, 5 × 10ⁿ that is not below a value: the end of a y axis. */
export function niceCeiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 5, 10]) {
    if (value <= step * power * 1.0000001) return step * power;
  }
  return 10 * power;
}

/** A short figure for axes: "16k", "1.5M", "0.2". */
export function short(value) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return `${oneDigit.format(value / size)}${unit}`;
  }
  return value !== 0 && Math.abs(value) < 1 ? String(Number(value.toPrecision(2))) : oneDigit.format(value);
}

// Control characters, marks of direction, and halves of pairs could disguise a text; they are shown by number.
const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f";
const MARKS = "\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff";
const DISGUISES = new RegExp(`[${CONTROLS}${MARKS}\\ud800-\\udfff\\u{e0000}-\\u{e007f}]`, "gu");
const escaped = (character) => `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}`;

/** A text of others with everything invisible made visible; tabs and line feeds stay. */
export const visible = (text) => String(text ?? "").replace(DISGUISES, escaped);

/** The same on one line. */
export const oneLine = (text) => visible(text).replace(/[\t\n]+/g, " ");
