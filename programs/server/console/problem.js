// Error messages, and buttons whose work is in progress.
import {announce, el, outcome, soft} from "./dom.js";

const HINTS = {
  403: "Your token does not allow this. Ask the operator of the server for one that does.",
  404: "It may have been removed, or it may have expired.",
  409: "It already exists, or another operation is in progress. Try again in a moment.",
  413: "It is larger than the server accepts.",
  429: "Too many requests. Wait a moment, then try again.",
  501: "The server was started without this feature.",
  503: "The server is busy or stopping, or its store is not responding. Try again in a moment.",
};

export function problemCard(error) {
  const where = error.pointer && `In the field ${error.pointer.slice(1)}.`;
  // For files that are refused, and when there is no room, the server's own message says what to do.
  const hint = ["cross-site", "full", "type"].includes(error.kind) ? null : HINTS[error.status];
  return el(
    "section",
    {class: "card problem", role: "alert"},
    el("h2", null, error.kind === "type" ? "This file cannot be read" : error.title || "Something went wrong"),
    el("p", null, error.status === 401 ? "Sign in with a valid token." : error.message || String(error)),
    (where || hint) && soft([where, hint].filter(Boolean).join(" ")),
  );
}

// Runs `work` with the button disabled; a problem is shown in `place`.
export async function working(button, place, work) {
  button.disabled = true;
  button.classList.add("busy");
  announce("Working");
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError") outcome(place, problemCard(error));
  } finally {
    button.disabled = false;
    button.classList.remove("busy");
  }
}
