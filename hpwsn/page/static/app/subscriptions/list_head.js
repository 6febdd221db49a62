// What stands above the list of subscriptions: how many there are, the chips, and actions on all selected.
import { html } from "../html.js";
import { change } from "../address.js";
import { count, counted } from "../format.js";
import { useMay } from "../state.js";
import { Chip, Menu } from "../parts/controls.js";
import { askForAll } from "./bulk_dialog.js";
import { Absent, sumOf } from "./listed_nodes.js";

const CHIPS = [
  ["", "All"], ["retrying", "Retrying"], ["waiting", "Waiting"], ["paused", "Paused"], ["expired", "Expired"],
  ["pullpoints", "Pull points"],
];

/** The heading, with the number of subscriptions in scope, and of those that are missing. */
export function Head({ filtered, all, alive, absent }) {
  const total = filtered || !all ? sumOf(alive, "subscriptions") ?? all : all;
  const points = sumOf(alive, "pull_points");
  return html`<div class="head"><div><h1>Subscriptions</h1>
    <p>${alive.length + absent.length > 1 ? html`${count(total)} on ${counted(alive.length, "node")}` : counted(total, "subscription")}${points !== null && `, ${counted(points, "pull point")}`}
      <${Absent} nodes=${absent} figure="subscriptions" /></p></div></div>`;
}

/** The states as filters; `found` are the subscriptions, `points` the number of pull points. */
export function Chips({ question, found, points }) {
  const numbers = { "": count(found.all), waiting: found.waiting, pullpoints: count(points) };
  return CHIPS.map(([value, words]) => html`<${Chip} key=${value} pressed=${question.state === value} number=${numbers[value] ?? count(found.counts[value] ?? 0)}
    data-testid=${`state-${value || "all"}`} onClick=${() => change({ state: value || undefined, id: undefined })}>${words}<//>`);
}

const SUITED = {
  pause: (each) => !each.paused && each.state !== "expired",
  resume: (each) => each.paused && each.state !== "expired",
  retry: (each) => each.state === "retrying",
  end: () => true,
};

/** The number of selected rows, and what can be done with all of them; `changed` is called afterwards. */
export function Selected({ items, selection, changed }) {
  const mine = useMay("subscribe");
  const operator = useMay("operate");
  const chosen = items.filter((item) => selection.keys.has(item.key));
  if (!chosen.length) return null;
  const entry = (action, verb, icon, risk) => {
    const those = chosen.filter(SUITED[action]);
    return {
      label: `${verb} ${those.length}…`, icon, risk, testid: `${action}-selected`,
      disabled: !those.length || !(mine || operator),
      run: async () => {
        await askForAll(action, those);
        changed();
      },
    };
  };
  const entries = [
    entry("pause", "Pause", "pause"), entry("resume", "Resume", "play"), entry("retry", "Try", "retry"),
    entry("end", "End", "trash", true), { label: "Select none", icon: "close", run: selection.clear },
  ];
  return html`<span class="selected-rows wide-only"><${Menu} label="Actions on all selected" kind=""
    text=${`${chosen.length} selected`} testid="selected" items=${entries} /></span>`;
}
