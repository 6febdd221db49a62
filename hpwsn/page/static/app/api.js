// All HTTP of the page: addresses of this node and of others by the relay, JSON, errors, and the token.
//
// The page lies at /ui/, so the API is at `../`. A request for another node goes to `../nodes/NAME/`. No
// cookies: a token is in the session storage of the tab, and goes in the header Authorization.

const root = new URL("../", new URL(".", document.baseURI));
const TOKEN = "hpwsn-token";
const JSON_TYPE = "application/json";

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
}

/** Sets the name of the node that serves the page; null at the admin node, which has no data of its own. */
export function setOwn(name) {
  own = name;
}

/** Calls a listener with the error when the node asks for credentials. */
export function onRefused(listener) {
  refused = listener;
}

export function token() {
  try {
    return sessionStorage.getItem(TOKEN) ?? "";
  } catch {
    return "";
  }
}

export function setToken(text) {
  if (text) sessionStorage.setItem(TOKEN, text);
  else sessionStorage.removeItem(TOKEN);
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

/** The headers of every request, with the token if there is one. */
export function headers(more = {}) {
  const found = token();
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
      method, body: sent, headers: headers(all), signal, credentials: "omit", cache: "no-store", redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The node does not answer. Check that it runs and that the network is up.");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** The ApiError of an answer; tells the listener if credentials are missing or wrong. */
export async function errorOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // An answer of a proxy is not JSON.
  }
  const words = typeof body.error === "string" ? body.error : `${response.status} ${response.statusText}`;
  const error = new ApiError(response.status, words, body);
  if (response.status === 401) refused(error);
  return error;
}

/** GET, as parsed JSON. */
export async function get(path, options) {
  return (await request("GET", path, options)).json();
}

/** POST, PATCH or DELETE; the parsed JSON of the answer, or null if it has none. */
export async function send(method, path, options) {
  const response = await request(method, path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** The path of a topic's events. Braces and slashes of a namespace are escaped. */
export const eventsPath = (topic) => `topics/${encodeURIComponent(topic)}/events`;

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A request as a command for a terminal, without the token. */
export function curl(method, path, { node, query, body, type, accept } = {}) {
  const parts = ["curl", "-s"];
  if (method !== "GET") parts.push("-X", method);
  if (token()) parts.push("-H", '"Authorization: Bearer $HPWSN_TOKEN"');
  if (accept) parts.push("-H", quoted(`Accept: ${accept}`));
  if (body !== undefined) {
    parts.push("-H", quoted(`Content-Type: ${type ?? JSON_TYPE}`));
    parts.push("--data-binary", quoted(typeof body === "string" ? body : JSON.stringify(body)));
  }
  parts.push(quoted(urlOf(path, { node, query }).href));
  return parts.join(" ");
}
