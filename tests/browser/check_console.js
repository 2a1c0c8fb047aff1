// What a page with controls must be like, beside what check.js says; gives a list of complaints.
() => {
  const found = [];
  const say = (what, e) => found.push(`${what}: <${e.tagName.toLowerCase()} class="${e.getAttribute("class") || ""}" id="${e.id}"> ` +
    JSON.stringify((e.textContent || "").slice(0, 60)));
  const seen = e => e.getClientRects().length > 0;
  const all = [...document.querySelectorAll("*")];

  // Controls have names, and what names or describes them is there.
  const nameOf = e => e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(" ")
    .map(id => document.getElementById(id)?.textContent || "").join(" ").trim() ||
    [...(e.labels || [])].map(label => label.textContent).join(" ").trim() || (e.tagName === "INPUT" ? "" : e.textContent.trim());
  for (const e of document.querySelectorAll("a[href],button,input,select,textarea,dialog,nav,[role=region],[role=img],meter,details>summary"))
    if (seen(e) && e.getAttribute("aria-hidden") !== "true" && !nameOf(e) && !e.querySelector(":scope > title")) say("has no name", e);
  for (const e of document.querySelectorAll("select,textarea"))
    if (seen(e) && !e.labels.length && !e.getAttribute("aria-label")) say("has no label", e);
  for (const e of all)
    for (const a of ["for", "aria-labelledby", "aria-describedby", "aria-controls"])
      for (const id of (e.getAttribute(a) || "").split(" ").filter(Boolean))
        if (!document.getElementById(id)) say(`${a} names ${id}, which is not there`, e);
  const ids = all.map(e => e.id).filter(Boolean);
  for (const id of ids.filter((one, i) => ids.indexOf(one) !== i)) found.push(`the id ${id} is there twice`);

  // Places to jump to.
  for (const place of ["body > header", "nav[aria-label]", "main", "[aria-live=polite]", "a.skip"])
    if (document.querySelectorAll(place).length < 1) found.push(`there is no ${place}`);
  if (document.querySelectorAll("main").length !== 1) found.push("there is not one main");
  if (!document.querySelector("h1").textContent.trim()) found.push("the heading is empty");

  // What is touched is large enough (WCAG 2.2, 2.5.8); links inside of sentences are not meant.
  for (const e of document.querySelectorAll("button:not(.link),select,input,nav a")) {
    const box = e.getBoundingClientRect();
    const large = e.closest("label.choice") ? e.closest("label").getBoundingClientRect() : box;
    if (seen(e) && getComputedStyle(e).clipPath === "none" && (large.height < 23.5 || large.width < 23.5)) say("is too small to touch", e);
  }

  // The edges of fields can be seen.
  const parse = colour => colour.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  for (const e of document.querySelectorAll("input:not([type=checkbox],[type=radio],[type=file]),textarea,select")) {
    const style = getComputedStyle(e), [a, b] = [light(parse(style.borderTopColor)), light(parse(style.backgroundColor))].sort((x, y) => y - x);
    if (seen(e) && (a + 0.05) / (b + 0.05) < 3) say("has an edge that is hard to see", e);
  }

  // Nothing came in as markup.
  for (const e of document.querySelectorAll("body script,iframe,object,embed,base,body style")) say("should not be there", e);
  for (const e of document.querySelectorAll("img")) if (new URL(e.src).origin !== location.origin) say("is from elsewhere", e);
  for (const e of all)
    for (const a of e.attributes) {
      if (/^on|^style$/i.test(a.name)) say(`has the attribute ${a.name}`, e);
      if (/^(href|src|action)$/i.test(a.name) && /^\s*(javascript|data|vbscript):/i.test(a.value)) say(`leads to ${a.value}`, e);
    }
  if (!/ - doppel$/.test(document.title)) found.push("its title is " + document.title);
  return [...new Set(found)].slice(0, 20);
}
