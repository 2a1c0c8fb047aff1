// What this tab knows: the token, the current index, and the texts that were added from here.

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
};

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

// {text} or {html}, or undefined.
export const rememberedText = id => texts.get(key(id));
