// The values of numeric fields of the latest events, for five minutes. Pure; times are seconds since 1970.

export const SPAN = 300;
const MOST_FIELDS = 50;
const SKEWED = 5;

/** A buffer of values. `add` takes an event as the stream tells it and the time now. */
export function liveValues() {
  const fields = new Map();
  let ahead = null;
  let last = 0;

  function timeOf(event, now) {
    const told = Date.parse(event.time) / 1000;
    const time = Number.isFinite(told) ? told : now;
    // The clock of the node may be another one than that of this browser.
    if (ahead === null) ahead = Math.abs(time - now) > SKEWED ? time - now : 0;
    last = Math.max(last, time - ahead);
    return last;
  }

  function valuesOf(name) {
    if (!fields.has(name) && fields.size < MOST_FIELDS) fields.set(name, { times: [], values: [] });
    return fields.get(name);
  }

  return {
    add(event, now) {
      const time = timeOf(event, now);
      const { data } = event;
      if (data === null || typeof data !== "object") return;
      for (const [name, value] of Object.entries(data)) {
        const number = typeof value === "number" ? value : NaN;
        const found = Number.isFinite(number) ? valuesOf(name) : null;
        found?.times.push(time);
        found?.values.push(number);
      }
    },
    /** Drops what is older than five minutes. */
    prune(now) {
      for (const found of fields.values()) {
        const first = found.times.findIndex((time) => time >= now - SPAN);
        const gone = first < 0 ? found.times.length : first;
        found.times.splice(0, gone);
        found.values.splice(0, gone);
      }
    },
    names: () => [...fields.keys()],
    /** {times, values} of a field, as copies. */
    series(name) {
      const found = fields.get(name) ?? { times: [], values: [] };
      return { times: found.times.slice(), values: found.values.slice() };
    },
  };
}
