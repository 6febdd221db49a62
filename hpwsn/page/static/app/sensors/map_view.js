// The geometry of the map: what it shows, plain coordinates, and sensors that are drawn together. Pure.
//
// A frame is {west, south, east, north} in degrees with west < east: east is above 180 where a frame crosses the
// 180th meridian. One degree of latitude is as long as one of the equator, one of longitude is shorter by the
// cosine of the latitude in the middle, so that distances near the middle are right.

const SMALLEST = 0.002;
const MARGIN = 0.08;
const WIDEST = 360;
const STEPS = [1, 2, 5, 10];
const KILOMETRES = 111.32;

const radians = (degrees) => (degrees * Math.PI) / 180;
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const shortened = (latitude) => Math.max(0.05, Math.cos(radians(clamp(latitude, -87, 87))));

/** A longitude from -180 to 180. */
export const wrapped = (longitude) => (longitude > 180 || longitude < -180
  ? ((((longitude + 180) % 360) + 360) % 360) - 180 : longitude);

/** The longitude from `west` on, at most one turn east of it. */
export function eastOf(longitude, west) {
  return longitude < west ? longitude + 360 * Math.ceil((west - longitude) / 360) : longitude;
}

/** Where a frame around longitudes begins: behind the widest part of the turn that has none. */
function westmost(longitudes) {
  const sorted = [...longitudes].sort((left, right) => left - right);
  let west = sorted[0];
  let widest = sorted[0] + 360 - sorted.at(-1);
  for (let index = 1; index < sorted.length; index += 1) {
    const gap = sorted[index] - sorted[index - 1];
    if (gap > widest) [west, widest] = [sorted[index], gap];
  }
  return west;
}

/** The frame around places {longitude, latitude}, with a margin; null without any. */
export function frameOf(places) {
  if (!places.length) return null;
  const west = westmost(places.map((place) => place.longitude));
  let [east, south, north] = [west, Infinity, -Infinity];
  for (const { longitude, latitude } of places) {
    east = Math.max(east, eastOf(longitude, west));
    south = Math.min(south, latitude);
    north = Math.max(north, latitude);
  }
  const short = shortened((south + north) / 2);
  const margin = Math.max(MARGIN * Math.max((east - west) * short, north - south), SMALLEST / 2);
  const across = margin / short;
  return { west: west - across, south: south - margin, east: east + across, north: north + margin };
}

/** The frame of "west,south,east,north"; null for anything else. */
export function parseFrame(text) {
  const parts = String(text ?? "").split(",");
  if (parts.length !== 4 || parts.some((part) => !/^-?\d{1,3}(\.\d{1,9})?$/.test(part.trim()))) return null;
  const [west, south, east, north] = parts.map(Number);
  const right = Math.abs(west) <= 180 && Math.abs(east) <= 180 && south >= -90 && north <= 90 && south < north;
  return right && west !== east ? { west, south, east: eastOf(east, west), north } : null;
}

/** A frame as "west,south,east,north", as the API writes areas. */
export function frameText({ west, south, east, north }) {
  const sides = [wrapped(west), clamp(south, -90, 90), wrapped(east), clamp(north, -90, 90)];
  return sides.map((side) => Number(side.toFixed(5))).join(",");
}

/** Whether a place is in a frame. */
export function holds(frame, { longitude, latitude }) {
  return latitude >= frame.south && latitude <= frame.north && eastOf(longitude, frame.west) <= frame.east;
}

/**
 * What a map of some pixels shows of a frame: {frame, x(longitude), y(latitude), scale}, where `frame` is widened to
 * the shape of the map and `scale` is pixels a degree of latitude.
 */
export function viewOf(wanted, width, height) {
  const middle = { longitude: (wanted.west + wanted.east) / 2, latitude: (wanted.south + wanted.north) / 2 };
  const short = shortened(middle.latitude);
  const scale = Math.min(width / ((wanted.east - wanted.west) * short), height / (wanted.north - wanted.south));
  const [half, up] = [width / 2 / scale / short, height / 2 / scale];
  const frame = {
    west: middle.longitude - half, east: middle.longitude + half,
    south: middle.latitude - up, north: middle.latitude + up,
  };
  return {
    frame, scale, width, height, wide: wanted.east - wanted.west >= WIDEST,
    // A longitude is drawn in the turn that is nearest to the middle.
    x: (longitude) => (eastOf(longitude, middle.longitude - 180) - frame.west) * scale * short,
    y: (latitude) => (frame.north - latitude) * scale,
    longitudeAt: (x) => frame.west + x / scale / short,
    latitudeAt: (y) => frame.north - y / scale,
    kilometres: scale / KILOMETRES,
  };
}

/** A frame enlarged by a factor (below 1: made smaller) around a point of it; null if that is the whole earth. */
export function zoomed(frame, factor, at = null) {
  const middle = at ?? { longitude: (frame.west + frame.east) / 2, latitude: (frame.south + frame.north) / 2 };
  const least = SMALLEST / Math.min(frame.east - frame.west, frame.north - frame.south);
  const by = Math.max(factor, Math.min(1, least));
  const moved = (side, centre) => centre + (side - centre) * by;
  const found = {
    west: moved(frame.west, middle.longitude), east: moved(frame.east, middle.longitude),
    south: moved(frame.south, middle.latitude), north: moved(frame.north, middle.latitude),
  };
  return found.east - found.west >= WIDEST || found.north - found.south >= 180 ? null : found;
}

/** A frame moved by pixels of a view. */
export function shifted({ frame, longitudeAt, latitudeAt }, right, down) {
  const [east, north] = [longitudeAt(-right) - frame.west, latitudeAt(-down) - frame.north];
  return {
    west: frame.west + east, east: frame.east + east, south: frame.south + north, north: frame.north + north,
  };
}

/** The step of 1, 2, 5 × 10ⁿ of which about `parts` make a range. */
export function niceStep(range, parts) {
  const raw = range / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  return STEPS.find((step) => step * power >= raw * 0.9999999) * power;
}

/** Round values between two, about `parts` steps. */
export function roundValues(from, to, parts) {
  const step = niceStep(to - from, parts);
  const found = [];
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-9 && found.length < 50; index += 1) {
    found.push(Number((index * step).toPrecision(12)));
  }
  return found;
}

/** A round length for the scale of a map: {metres, pixels}, at most `most` pixels long. */
export function scaleBar({ kilometres }, most = 120) {
  const longest = (most / kilometres) * 1000;
  const power = 10 ** Math.floor(Math.log10(longest));
  const metres = [5, 2, 1].find((step) => step * power <= longest) * power;
  return { metres, pixels: (metres / 1000) * kilometres };
}

/**
 * The sensors of a view as {singles: [{item, x, y}], groups: [{items, x, y}]}. Up to `most` in sight are drawn alone;
 * of more, those in a square of `cell` pixels are one group.
 */
export function marksOf(items, view, { most = 400, cell = 40 } = {}) {
  const seen = [];
  for (const item of items) {
    const [x, y] = [view.x(item.place.longitude), view.y(item.place.latitude)];
    if (x >= -8 && y >= -8 && x <= view.width + 8 && y <= view.height + 8) seen.push({ item, x, y });
  }
  if (seen.length <= most) return { singles: seen, groups: [] };
  const cells = new Map();
  for (const mark of seen) {
    const key = `${Math.floor(mark.x / cell)} ${Math.floor(mark.y / cell)}`;
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(mark);
  }
  const groups = [...cells.values()].filter((marks) => marks.length > 1);
  const mean = (marks, side) => marks.reduce((sum, mark) => sum + mark[side], 0) / marks.length;
  return {
    singles: [...cells.values()].filter((marks) => marks.length === 1).flat(),
    groups: groups.map((marks) => ({
      items: marks.map((mark) => mark.item), x: mean(marks, "x"), y: mean(marks, "y"),
    })),
  };
}
