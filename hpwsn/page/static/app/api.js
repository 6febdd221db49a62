// All HTTP of the page: addresses of this node and of others by the relay, JSON, errors, and the token.
//
// The page lies at /ui/, so the API is at `../`. A request for another node goes to `../nodes/NAME/`. No
// cookies: a token is in the session storage of the tab, and goes in the header Authorization.

const root = new URL("../", new URL(".", document.baseURI));
const TOKEN = "hpwsn-token";
const JSON_TYPE = "application/json";
const PATIENCE = 30_000;
/** Statuses of the 4xx that a later try may not have. */
const PASSING = new Set([408, 425, 429]);
const WORDS = {
  413: "The request is too large for the node or for a proxy before it.",
  502: "A proxy cannot reach the node.",
  503: "The node or a proxy is not ready.",
  504: "The node did not answer a proxy.",
};

let own = null;
let refused = () => {};

/** An answer that is not a success; status 0 if there was none. `body` is the JSON object, if any. */
export class ApiError extends Error {
  constructor(status, message, body = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.body = body;
  }

  /** Whether the node itself refused, so that another try would be refused too. */
  get isFinal() {
    const refusal = this.status >= 400 && this.status < 500 && !PASSING.has(this.status);
    return refusal && (this.status === 401 || typeof this.body.error === "string");
  }
}

/** Sets the name of the node that serves the page; null at the admin node, which has no data of its own. */
export function setOwn(name) {
  own = name;
}

/** Calls a listener with the error when the node asks for credentials. */
export function onRefused(listener) {
  refused = listener;
}

const placeOf = (node) => `${TOKEN} ${node ?? own ?? ""}`;

/** The token for a node, empty without one; without a node, for the process that serves the page. */
export function token(node) {
  try {
    return sessionStorage.getItem(placeOf(node)) ?? "";
  } catch {
    return "";
  }
}

/** Keeps the token for a node in this tab; an empty text forgets it. */
export function setToken(text, node) {
  if (text) sessionStorage.setItem(placeOf(node), text);
  else sessionStorage.removeItem(placeOf(node));
}

/** The absolute URL of an API path at a node; without a node, at the process that serves the page. */
export function urlOf(path, { node, query } = {}) {
  const relayed = node && node !== own ? `nodes/${encodeURIComponent(node)}/` : "";
  const url = new URL(relayed + path.replace(/^\//, ""), root);
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") url.searchParams.append(name, each);
    }
  }
  return url;
}

/** The headers of a request to a node, with the token for it if there is one. */
export function headers(more = {}, node = undefined) {
  const found = token(node);
  return found ? { ...more, Authorization: `Bearer ${found}` } : more;
}

/** Sends a request; returns the Response of a success, throws ApiError for everything else. */
export async function request(method, path, { node, query, body, type, accept, headers: more, signal } = {}) {
  const url = urlOf(path, { node, query });
  const sent = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const all = { Accept: accept ?? JSON_TYPE, ...more };
  if (sent !== undefined) all["Content-Type"] = type ?? JSON_TYPE;
  let response;
  try {
    response = await fetch(url, {
      method, body: sent, headers: headers(all, node), credentials: "omit", cache: "no-store", redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE), ...(signal ? [signal] : [])]),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The node does not answer. Check that it runs and that the network is up.");
  }
  if (!response.ok) throw await errorOf(response, node);
  return response;
}

/** The ApiError of an answer; tells the listener if credentials are missing or wrong. */
export async function errorOf(response, node) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // An answer of a proxy is not JSON.
  }
  const other = WORDS[response.status] ?? "The answer is not one of the node; a proxy may stand before it.";
  const words = typeof body.error === "string" ? body.error : `${other} (status ${response.status})`;
  const error = new ApiError(response.status, words, body);
  Object.assign(error, { node, url: response.url });
  if (response.status === 401) refused(error);
  return error;
}

/** GET, as parsed JSON. */
export async function get(path, options) {
  return parsed(await request("GET", path, options));
}

/** POST, PATCH or DELETE; the parsed JSON of the answer, or null if it has none. */
export async function send(method, path, options) {
  return parsed(await request(method, path, options));
}

async function parsed(response) {
  const text = await response.text();
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError(response.status, "The answer is not JSON; a proxy or its login page may stand before the node.");
  }
}

/** The path of a topic's events. Braces and slashes of a namespace are escaped. */
export const eventsPath = (topic) => `topics/${encodeURIComponent(topic)}/events`;

/** A text as one word of a shell command. */
export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A request as a command for a terminal, without the token. */
export function curl(method, path, { node, query, body, type, accept } = {}) {
  const parts = ["curl", "-s"];
  if (method !== "GET") parts.push("-X", method);
  if (token(node)) parts.push("-H", '"Authorization: Bearer $HPWSN_TOKEN"');
  if (accept) parts.push("-H", quoted(`Accept: ${accept}`));
  if (body !== undefined) {
    parts.push("-H", quoted(`Content-Type: ${type ?? JSON_TYPE}`));
    parts.push("--data-raw", quoted(typeof body === "string" ? body : JSON.stringify(body)));
  }
  parts.push(quoted(urlOf(path, { node, query }).href));
  return parts.join(" ");
}
