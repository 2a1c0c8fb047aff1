// Dialogs: a confirmation, and the question for a token.
import {box, el, field} from "./dom.js";
import {session} from "./session.js";

// Shows a dialog; resolves with given(agreed). Enter agrees, unless the focus is on Cancel.
function ask(title, body, agree, given) {
  const id = "dialog-title";
  const cancel = el(
    "button",
    {type: "button", autofocus: agree.class === "danger", on: {click: () => dialog.close("")}},
    "Cancel",
  );
  const yes = el("button", {value: "yes", class: agree.class}, agree.verb);
  const form = el("form", {method: "dialog"}, el("h2", {id}, title), body, box("buttons", cancel, yes));
  const dialog = el("dialog", {"aria-labelledby": id}, form);
  const before = document.activeElement;
  document.body.append(dialog);
  dialog.showModal();
  return new Promise(resolve =>
    dialog.addEventListener("close", () => {
      resolve(given(dialog.returnValue === "yes"));
      dialog.remove();
      if (before && before.isConnected) before.focus();
    }),
  );
}

// Resolves with whether the user agreed.
export const confirm = (title, text, verb) =>
  ask(title, el("p", null, text), {verb, class: "danger"}, agreed => agreed);

// One dialog at a time: calls that fail together wait for the same answer.
let asking = null;

export function askToken(wasWrong) {
  asking =
    asking ||
    showToken(wasWrong).finally(() => {
      asking = null;
    });
  return asking;
}

function showToken(wasWrong) {
  const input = el("input", {
    type: "password",
    autocomplete: "off",
    required: true,
    autofocus: true,
    spellcheck: "false",
  });
  const body = el(
    "div",
    null,
    el(
      "p",
      {role: wasWrong ? "alert" : null},
      wasWrong ? "This token is not valid." : "This server requires a token.",
    ),
    field("Token", input, "It is kept until you close this tab or sign out."),
  );
  return ask("Sign in", body, {verb: "Sign in", class: "first"}, agreed => {
    if (!agreed) return false;
    session.token = input.value.trim();
    document.dispatchEvent(new Event("token"));
    return true;
  });
}
