// Small lines over time without axes, as SVG.
import { html } from "../html.js";
import { niceCeiling } from "../format.js";

/** The path of a line through values (null leaves a gap) in a box of `width` × `height`, from 0 to `top`. */
export function linePath(values, width, height, top) {
  if (!values.length) return "";
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  let path = "";
  let pen = "M";
  values.forEach((value, index) => {
    if (value === null || value === undefined) {
      pen = "M";
      return;
    }
    const y = height - (Math.min(value, top) / top) * height;
    path += `${pen}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  });
  return path;
}

/** At most `most` values: each the greatest of its part, so that peaks stay. */
export function thinned(values, most) {
  if (values.length <= most) return values;
  const size = values.length / most;
  return Array.from({ length: most }, (_, index) => {
    const part = values.slice(Math.floor(index * size), Math.floor((index + 1) * size)).filter((each) => each !== null);
    return part.length ? Math.max(...part) : null;
  });
}

/** A small line without axes; `tone` is "warn" or "bad" for a line in that colour. */
export function Spark({ values, top, height = 36, tone }) {
  const shown = thinned(values, 90);
  const end = top ?? niceCeiling(Math.max(0, ...shown.filter((value) => value !== null)));
  const line = linePath(shown, 100, height, end);
  const known = shown.findLastIndex((value) => value !== null);
  const first = shown.findIndex((value) => value !== null);
  const at = (index) => ((index / Math.max(1, shown.length - 1)) * 100).toFixed(1);
  const area = known > first && first >= 0 && !shown.slice(first, known + 1).includes(null)
    ? `${line}L${at(known)} ${height}L${at(first)} ${height}Z` : "";
  return html`<svg class=${`spark ${tone ?? ""}`} viewBox=${`0 0 100 ${height}`} preserveAspectRatio="none" aria-hidden="true">
    <path class="spark-zero" d=${`M0 ${height}H100`} />
    ${area && html`<path class="spark-area" d=${area} />`}<path class="spark-line" d=${line} /></svg>`;
}
