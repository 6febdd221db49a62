// The keys of the tree: moving between rows, opening and closing branches, and the edits.

const PAGE = 15;

/**
 * What a key does in the tree. `at` is the index of the active row; `go(index)` moves, `select`, `open`, `close` take
 * a topic, `edit` are the actions, or null where topics are only read. Returns whether the key was one of these.
 */
export function treeKey(event, { rows, at, go, select, open, close, edit }) {
  const row = rows[at];
  const { key } = event;
  const control = event.ctrlKey || event.metaKey;
  if (event.altKey || !row?.topic) return false;
  if (control) return edit !== null && controlKey(key.toLowerCase(), row, edit);
  const last = rows.length - 1;
  const targets = {
    ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last, PageDown: at + PAGE, PageUp: at - PAGE,
  };
  if (key in targets) go(Math.max(0, Math.min(last, targets[key])));
  else if (key === "ArrowRight") openOrEnter(row, { rows, at, go, open });
  else if (key === "ArrowLeft") closeOrLeave(row, { rows, at, go, close });
  else if (key === "Enter" || key === " ") select(row.topic);
  else return edit !== null && editKey(key, row, edit);
  return true;
}

function openOrEnter(row, { rows, at, go, open }) {
  if (row.expanded === false) open(row.topic);
  else if (row.expanded && rows[at + 1]?.level > row.level) go(at + 1);
}

function closeOrLeave(row, { rows, at, go, close }) {
  if (row.expanded) {
    close(row.topic);
    return;
  }
  const parent = rows.findLastIndex((each, index) => index < at && each.level < row.level);
  if (parent >= 0) go(parent);
}

function editKey(key, row, edit) {
  if (key === "F2") edit.rename(row.topic);
  else if (key === "Insert") edit.add(row.topic);
  else if (key === "Delete") edit.remove(row.topic);
  else return false;
  return true;
}

function controlKey(key, row, edit) {
  if (key === "x") edit.cut(row.topic);
  else if (key === "v") edit.paste(row.topic);
  else return false;
  return true;
}
