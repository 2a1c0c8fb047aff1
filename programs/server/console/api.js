// Calls of the server. A call returns the answer's JSON, or throws a Problem that can be shown as it is.
import {session} from "./session.js";

class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.kind = (body.type || "").split(":").pop();
    this.title = body.title || "Something went wrong";
    this.pointer = body.pointer;
    this.line = body.line;
  }
}

// Asks for a token when the server requires one: true when there is a new one to try.
let askToken = async () => false;
export const onUnauthorized = ask => {
  askToken = ask;
};

async function problemOf(response) {
  try {
    return new Problem(response.status, await response.json());
  } catch {
    return new Problem(response.status, {});
  }
}

async function send(method, path, body, signal, type = "application/json") {
  const headers = {Accept: "application/json"};
  if (session.token) headers.Authorization = `Bearer ${session.token}`;
  if (body !== undefined) headers["Content-Type"] = type;
  const sent = type === "application/json" ? body && JSON.stringify(body) : body;
  try {
    return await fetch(path, {method, headers, signal, cache: "no-store", body: sent});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {
      title: "The server is not responding",
      detail: "It may have been stopped, or the connection was lost.",
    });
  }
}

async function answer(method, path, {body, signal, type} = {}) {
  for (;;) {
    const used = session.token;
    const response = await send(method, path, body, signal, type);
    if (response.status === 401 && (used !== session.token || (await askToken(used !== null)))) continue;
    if (!response.ok) throw await problemOf(response);
    return response;
  }
}

const call = async (method, path, options) => (await answer(method, path, options)).json();

const base = () => (session.index ? `/v1/indexes/${encodeURIComponent(session.index)}` : "/v1");
const query = values => {
  const text = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined)).toString();
  return text && `?${text}`;
};
const path = id => `${base()}/documents/${encodeURIComponent(id)}`;

// Of the current index.
export const check = (body, signal) => call("POST", `${base()}/check`, {body, signal});
export const add = (body, signal) => call("POST", `${base()}/documents`, {body, signal});
export const get = (id, signal) => call("GET", path(id), {signal});
export const remove = (id, signal) => call("DELETE", path(id), {signal});
export const similarTo = (id, values, signal) => call("GET", `${path(id)}/similar${query(values)}`, {signal});
export const similar = (body, values, signal) => call("POST", `${base()}/similar${query(values)}`, {body, signal});
export const copiesOf = (id, values, signal) => call("GET", `${path(id)}/copies${query(values)}`, {signal});
export const documents = (values, signal) => call("GET", `${base()}/documents${query(values)}`, {signal});
export const groups = (limit, signal) => call("GET", `${base()}/groups${query({limit})}`, {signal});
export const stats = signal => call("GET", `${base()}/stats`, {signal});
export const history = (step, signal) => call("GET", `${base()}/history${query({step})}`, {signal});
export const backup = signal => call("POST", `${base()}/backups`, {body: {}, signal});
export const expire = signal => call("POST", `${base()}/expire`, {body: {}, signal});
export const compact = signal => call("POST", `${base()}/compact`, {body: {}, signal});
// Of the server.
// The first documents of a file.
export const readFile = (file, values, signal) =>
  call("POST", `/v1/records${query({name: file.name.slice(-255), ...values})}`, {body: file, signal, type: "application/octet-stream"});
export const compare = (body, signal) => call("POST", "/v1/compare", {body, signal});
export const caller = signal => call("GET", "/v1/session", {signal});
export const indexes = signal => call("GET", "/v1/indexes", {signal});
export const createIndex = (name, body, signal) =>
  call("PUT", `/v1/indexes/${encodeURIComponent(name)}`, {body, signal});
export const dropIndex = (name, signal) => call("DELETE", `/v1/indexes/${encodeURIComponent(name)}`, {signal});

// Runs: files that the server deduplicates.
const run = id => `/v1/runs/${encodeURIComponent(id)}`;
export const runFile = (id, way, values) => `${run(id)}/${way}${query(values)}`;
// several: the file is an archive of several files.
export const createRun = (file, several, values, signal) =>
  call("POST", `/v1/runs${query(values)}`, {body: file, signal, type: several ? "application/x-tar" : "application/octet-stream"});
export const runs = signal => call("GET", "/v1/runs", {signal});
export const getRun = (id, signal) => call("GET", run(id), {signal});
export const runEvents = (id, after, signal) => call("GET", runFile(id, "events", {after}), {signal});
export const repeatRun = (id, values, signal) => call("POST", `${run(id)}${query(values)}`, {signal});
export const runGroups = (id, values, signal) => call("GET", runFile(id, "groups", values), {signal});
export const runExamples = (id, values, signal) => call("GET", runFile(id, "examples", values), {signal});
export const runDocument = (id, values, signal) => call("GET", runFile(id, "document", values), {signal});
export const runPair = (id, a, b, signal) => call("GET", runFile(id, "pair", {a, b}), {signal});
export const deleteRun = (id, signal) => call("DELETE", run(id), {signal});

// {blob, name}: a file, with the name that the server gives it.
export async function download(path, signal) {
  const response = await answer("GET", path, {signal}),
    [, name] = /filename\*=UTF-8''([^;]+)/.exec(response.headers.get("Content-Disposition")) || [];
  return {blob: await response.blob(), name: name && decodeURIComponent(name)};
}

// null in place of a 404.
export async function orNull(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}
