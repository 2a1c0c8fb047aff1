// What a page must be like, as seen from inside it; gives a list of complaints. `alive`: it is no report, but a page that
// does something (check_console.js says what else that needs).
alive => {
  const found = [];
  const say = (what, e) => found.push(`${what}: <${e.tagName.toLowerCase()} class="${e.getAttribute("class") || ""}"> ` +
    JSON.stringify((e.textContent || "").slice(0, 60)));
  // What is folded away has boxes, too, but nobody sees them.
  const elements = [...document.body.querySelectorAll("*")].filter(e => e.getClientRects().length && e.checkVisibility());
  const wide = document.documentElement.clientWidth;

  // Some text is only heard.
  const isUnseen = e => e && (getComputedStyle(e).clipPath !== "none" || isUnseen(e.parentElement));

  // Nothing is cut off.
  if (document.documentElement.scrollWidth > wide) found.push("the page scrolls sideways");
  for (const e of elements) {
    const box = e.getBoundingClientRect();
    if (box.width && (box.left < -1 || box.right > wide + 1)) say("leaves the page", e);
    const scrolls = /^(INPUT|TEXTAREA|SELECT)$/.test(e.tagName) || isUnseen(e);
    if (!(e instanceof SVGElement) && !scrolls && e.clientWidth && e.scrollWidth > e.clientWidth + 1) say("is cut off", e);
  }

  // The letters of pictures stay inside them, and do not cover each other.
  for (const svg of document.querySelectorAll("svg.picture")) {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].filter(t => t.textContent).map(t => [t, t.getBoundingClientRect()]);
    boxes.forEach(([t, a], i) => {
      if (a.left < frame.left - 12 || a.right > frame.right + 12 || a.top < frame.top || a.bottom > frame.bottom + 1)
        say("leaves its picture", t);
      for (const [, b] of boxes.slice(i + 1))
        if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) say("covers another", t);
    });
    if (!svg.querySelector(":scope > title")) say("has no title", svg);
  }

  // Text can be read: its size, and its contrast with what is behind it (WCAG 2).
  const parse = colour => colour.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  for (const e of elements) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.tagName === "title") continue;
    const style = getComputedStyle(e);
    const ink = parse(e instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) say(`has a contrast of ${((a + 0.05) / (b + 0.05)).toFixed(2)}`, e);
    if (parseFloat(style.fontSize) < 11) say("is too small", e);
  }

  // What reads the page aloud finds its way.
  if (document.querySelectorAll("h1").length !== 1) found.push("there is not one h1");
  let level = 1;
  for (const h of document.querySelectorAll("h1,h2,h3,h4")) {
    if (+h.tagName[1] > level + 1) say("skips a level of headings", h);
    level = +h.tagName[1];
  }
  for (const table of document.querySelectorAll("table"))
    if (!table.caption || !table.querySelector("th[scope]")) say("has no caption or heads", table);
  if (!document.documentElement.lang) found.push("the page has no language");

  // Text of documents is text.
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent))
    found.push("text has characters that control");
  if (alive) return [...new Set(found)].slice(0, 20);
  if (document.title !== document.querySelector("h1").textContent) found.push("its title was changed: " + document.title);
  for (const e of document.querySelectorAll("script,img,iframe,object,embed,link,form,base")) say("should not be there", e);
  for (const e of document.querySelectorAll("a")) {
    const inside = e.getAttribute("href").startsWith("#") && document.querySelector(e.getAttribute("href"));
    if (!inside && !(/^https?:$/.test(e.protocol) && e.rel.includes("noopener"))) say("leads nowhere good", e);
  }
  for (const e of document.querySelectorAll("*"))
    for (const a of e.attributes)
      if (/^on|^style$|^src$|href/i.test(a.name) && e.tagName !== "A") say(`has the attribute ${a.name}`, e);
  return [...new Set(found)].slice(0, 20);
}
