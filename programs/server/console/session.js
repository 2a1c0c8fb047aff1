// What this tab knows: the token and what it allows, the current index, the run of the file that was dropped last, and
// the texts that were added from here.

function read(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch {
    // Without storage it lasts as long as the page.
  }
}

let token = read("doppel.token");
let index = read("doppel.index");
let run = read("doppel.run");

export const session = {
  get token() {
    return token;
  },
  set token(value) {
    write("doppel.token", (token = value));
  },
  // null: the default index.
  get index() {
    return index;
  },
  set index(value) {
    write("doppel.index", (index = value));
  },
  // The id of the run of the file that was sent from here last; null: there is none.
  get run() {
    return run;
  },
  set run(value) {
    write("doppel.run", (run = value));
  },
  // {tokens, name, right}, as the server says; null: not known yet.
  caller: null,
  // A sentence that the next page begins with; null: none.
  said: null,
};

const RIGHTS = ["read", "write", "admin"];
// Whether the caller may do what needs a right.
export const may = right => !session.caller || RIGHTS.indexOf(session.caller.right) >= RIGHTS.indexOf(right);

// An index may not keep texts. Those that were added from this tab are held here, the last few of them, so that a second
// version can be laid beside the first.
const MOST = 20;
const texts = new Map();
const key = id => JSON.stringify([index, id]);

export function rememberText(id, side) {
  texts.delete(key(id));
  texts.set(key(id), side);
  if (texts.size > MOST) texts.delete(texts.keys().next().value);
}

export const forgetText = id => texts.delete(key(id));

// {text} or {html}, or undefined.
export const rememberedText = id => texts.get(key(id));
