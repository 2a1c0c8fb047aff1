// What went wrong, in words; and buttons whose work is in progress.
import {announce, el, outcome, soft} from "./dom.js";

const HINTS = {
  403: "Your token does not allow this. Ask the operator of the server for one that does.",
  404: "It may have been removed, or have expired.",
  409: "Another operation is in progress, or it already exists. Try again in a moment.",
  413: "It is larger than the server accepts.",
  429: "Too many requests at once. Wait a moment.",
  501: "The server was started without what this needs.",
  503: "The server is busy, about to stop, or its store does not respond. Try again in a moment.",
};

export function problemCard(error) {
  const where = error.pointer && `In the field ${error.pointer.slice(1)}.`;
  // Of files that are refused, and where there is no room, the server itself says what to do.
  const hint = ["cross-site", "full", "type"].includes(error.kind) ? null : HINTS[error.status];
  return el(
    "section",
    {class: "card problem", role: "alert"},
    el("h2", null, error.title || "That did not work"),
    el("p", null, error.status === 401 ? "Sign in with a valid token." : error.message || String(error)),
    (where || hint) && soft([where, hint].filter(Boolean).join(" ")),
  );
}

// Runs `work` while the button cannot be used; a problem is shown in `place`.
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
