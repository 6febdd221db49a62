// A list of events of which only the rows in sight are elements: newest first, one row may be open. What somebody
// reads stays where it is while new rows come above it.
import { classes, html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { count, counted } from "../format.js";
import { Icon } from "../icons.js";
import { lazy } from "../lazy.js";
import { EventLine } from "./event_line.js";

const EventDetail = lazy(async () => (await import("./event_detail.js")).EventDetail);

const PHONE = matchMedia("(max-width: 720px)");
const ROW = 29;
const TOUCH_ROW = 37;
const OVERSCAN = 4;
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

function useSize(ref) {
  const [size, setSize] = useState(0);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setSize(ref.current?.offsetHeight ?? 0));
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return size;
}

/** The detail of the open row; tells its height, since other rows stand below it. */
function Opened({ onHeight, ...rest }) {
  const ref = useRef(null);
  const height = useSize(ref);
  useLayoutEffect(() => onHeight(height), [height]);
  useLayoutEffect(() => () => onHeight(0), []);
  return html`<div ref=${ref}><${EventDetail} ...${rest} /></div>`;
}

/**
 * `rows` are events with the newest first, `topic` is the one that is read, `testid(event)` names a row. `onEnd` is
 * called when the last row is in sight, `again(topic, payload)` to publish a payload again. `children` stand in the
 * place of rows, or after them.
 */
export function MessageList({ rows, topic, node, label, testid, offsets, again, onEnd, children }) {
  const box = useRef(null);
  const list = useRef(null);
  const [open, setOpen] = useState(null);
  const [active, setActive] = useState(null);
  const [extra, setExtra] = useState(0);
  const [scroll, setScroll] = useState(0);
  const visible = useSize(box);
  const before = useRef({ first: null, focused: null });
  const height = PHONE.matches ? TOUCH_ROW : ROW;

  const openAt = rows.findIndex((each) => each.offset === open);
  const shownExtra = openAt < 0 ? 0 : extra;
  const topOf = (index) => index * height + (openAt >= 0 && index > openAt ? shownExtra : 0);
  const indexAt = (top) => {
    const plain = Math.floor(top / height);
    return openAt < 0 || plain <= openAt ? plain : Math.max(openAt, Math.floor((top - shownExtra) / height));
  };
  const first = Math.max(0, indexAt(scroll) - OVERSCAN);
  const last = Math.min(rows.length, indexAt(scroll + (visible || 600)) + OVERSCAN + 1);
  const activeAt = Math.max(0, rows.findIndex((each) => each.offset === active));
  const indexes = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  if (rows.length && activeAt < first) indexes.unshift(activeAt);
  if (activeAt < rows.length && activeAt >= last) indexes.push(activeAt);

  useLayoutEffect(() => {
    const { first: was, focused } = before.current;
    const added = was === null ? 0 : rows.findIndex((each) => each.offset === was);
    // To ask the element where it is scrolled would lay out the page at each draw.
    const read = scroll > 0 || (openAt >= 0 && topOf(openAt) < scroll + visible)
      || list.current.querySelector(":focus-visible");
    if (added > 0 && read) box.current.scrollTop += added * height;
    before.current.first = rows[0]?.offset ?? null;
    if (focused !== null && document.activeElement === document.body) lineOf(focused)?.focus({ preventScroll: true });
  }, [rows]);
  useEffect(() => {
    if (onEnd && last >= rows.length) onEnd();
  }, [last, rows.length, onEnd]);

  const lineOf = (offset) => list.current?.querySelector(`[data-offset="${offset}"] > .message-line`);

  function key(event) {
    const step = STEPS[event.key];
    const from = rows.findIndex((each) => each.offset === Number(event.target.closest(".message")?.dataset.offset));
    if (!step || from < 0 || !event.target.matches(".message-line")) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(rows.length - 1, from + step));
    setActive(rows[index].offset);
    const top = topOf(index);
    if (top < box.current.scrollTop) box.current.scrollTop = top;
    const low = top + height - box.current.clientHeight;
    if (low > box.current.scrollTop) box.current.scrollTop = low;
    before.current.wanted = rows[index].offset;
  }
  useLayoutEffect(() => {
    const { wanted } = before.current;
    if (wanted === undefined) return;
    before.current.wanted = undefined;
    lineOf(wanted)?.focus({ preventScroll: true });
  });

  function toTop() {
    box.current.scrollTop = 0;
    box.current.focus({ preventScroll: true });
  }
  const above = Math.floor(Math.max(0, scroll - (openAt >= 0 && scroll > topOf(openAt) ? shownExtra : 0)) / height);
  return html`<div class="messages-box">
    ${above > 0 && html`<button type="button" class="newer" onClick=${toTop}>
      <${Icon} name="up" />${counted(above, "row")} above</button>`}
    <div class="messages" ref=${box} tabindex="-1" onScroll=${() => setScroll(box.current.scrollTop)}>
      <ol ref=${list} aria-label=${`${label}, ${count(rows.length)}`} style=${{ height: `${rows.length * height + shownExtra}px` }}
          onKeyDown=${key} onFocusIn=${(event) => {
            const offset = Number(event.target.closest(".message").dataset.offset);
            before.current.focused = event.target.matches(".message-line") ? offset : null;
            setActive(offset);
          }} onFocusOut=${(event) => { if (event.relatedTarget) before.current.focused = null; }}>
        ${indexes.map((index) => {
          const event = rows[index];
          const isOpen = index === openAt;
          return html`<li key=${event.offset} class=${classes("message", isOpen && "open", event.earlier && "earlier")}
              data-testid=${testid(event)} data-offset=${event.offset} aria-setsize=${rows.length} aria-posinset=${index + 1}
              style=${{ transform: `translateY(${topOf(index)}px)` }}>
            <${EventLine} event=${event} topic=${topic} open=${isOpen} offsets=${offsets} reached=${index === activeAt}
              onOpen=${() => setOpen(isOpen ? null : event.offset)} />
            ${isOpen && html`<${Opened} event=${event} topic=${topic} node=${node} again=${again} onHeight=${setExtra} />`}
          </li>`;
        })}
      </ol>
      ${children}
    </div>
  </div>`;
}
