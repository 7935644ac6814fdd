// What every page has to keep to, so that everybody can use it. Returns what is wrong, one sentence each.

() => {
  const wrong = [];
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const told = (one) => one.outerHTML.replace(/\s+/g, " ").slice(0, 120);
  const say = (rule, one) => wrong.push(`${rule}: ${typeof one === "string" ? one : told(one)}`);
  const shown = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && one.getClientRects().length > 0;
  const forReaders = (one) => one.closest(".sr") !== null || getComputedStyle(one).clipPath === "inset(50%)";
  const text = (one) => (one.textContent ?? "").trim();
  const named = (one) => text(one) || one.getAttribute("aria-label") || one.getAttribute("title") || all("img[alt]", one).some((image) => image.alt);

  function structure() {
    if (!document.documentElement.lang) say("the page says no language", "html");
    if (!document.title.endsWith("Mainspring")) say("the title does not end with our name", document.title);
    if (all("h1").length !== 1) say("there is not exactly one h1", String(all("h1").length));
    let last = 0;
    for (const heading of all("h1, h2, h3, h4, h5, h6")) {
      const level = Number(heading.localName[1]);
      if (level > last + 1) say("a level of headings is left out", heading);
      if (!text(heading)) say("a heading is empty", heading);
      last = level;
    }
    for (const landmark of ["body > header", "main", "body > footer"]) if (all(landmark).length !== 1) say("a landmark is missing or there twice", landmark);
    const navigations = all("nav").map((one) => one.getAttribute("aria-label"));
    if (navigations.includes(null) || new Set(navigations).size !== navigations.length) say("a navigation has no name of its own", String(navigations));
    const ids = all("[id]").map((one) => one.id);
    for (const id of new Set(ids.filter((one, place) => ids.indexOf(one) !== place))) say("an id is there twice", id);
    for (const attribute of ["aria-labelledby", "aria-describedby", "for", "list", "form"]) {
      for (const one of all(`[${attribute}]`)) if (!document.getElementById(one.getAttribute(attribute))) say(`${attribute} leads nowhere`, one);
    }
    for (const one of all("[tabindex]")) if (one.tabIndex > 0) say("the order of tabs is meddled with", one);
    for (const one of all("[style], [onclick], [onload]")) say("it has a style or a script of its own", one);
  }

  function names() {
    for (const field of all("input:not([type=hidden]), select, textarea")) {
      if (!field.labels?.length && !field.getAttribute("aria-label")) say("a field has no label", field);
      else if (field.labels?.length && !text(field.labels[0])) say("the label of a field is empty", field);
    }
    for (const one of all("button, a[href], summary")) if (!named(one)) say("a button or link has no name", one);
    for (const image of all("img")) if (!image.hasAttribute("alt")) say("an image says not what it shows", image);
    for (const drawing of all("svg")) if (!drawing.closest("[aria-label], [aria-hidden=true]") && !drawing.parentElement.closest("svg")) say("a drawing has no name", drawing);
    for (const bar of all("progress")) if (!bar.labels.length && !bar.getAttribute("aria-label")) say("a bar has no name", bar);
    for (const table of all("table")) if (!all("th", table).length) say("a table has no headers", table);
    for (const header of all("th")) {
      if (!header.scope) say("a header says not what it is the header of", header);
      if (!text(header)) say("a header is empty", header);
    }
    for (const list of all("ul, ol")) for (const child of list.children) if (child.localName !== "li") say("a list has something else than items", child);
    for (const group of all("[role=radiogroup], fieldset")) if (!group.getAttribute("aria-labelledby") && !all("legend", group).length) say("a group of fields has no name", group);
  }

  const channels = (color) => {
    const parts = color.match(/[\d.]+/g).map(Number);
    const scale = color.startsWith("color(") ? 255 : 1;
    return [...parts.slice(0, 3).map((one) => one * scale), parts[3] ?? 1];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const light = (color) => color.slice(0, 3).map((one) => one / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const contrast = (one, other) => { const [a, b] = [light(one), light(other)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };

  function ground(one) {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      const paint = at instanceof SVGElement ? under(at) : channels(getComputedStyle(at).backgroundColor);
      if (paint) layers.push(paint);
      if (paint?.[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), channels(getComputedStyle(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)"));
  }

  // What is drawn under the words in a node of a graph: the last box before them.
  function under(one) {
    const box = one.localName === "text" ? all(":scope > rect", one.parentElement).at(-1) : null;
    return box ? channels(getComputedStyle(box).fill) : null;
  }

  function contrasts() {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const seen = new Set();
    while (walker.nextNode()) {
      const one = walker.currentNode.parentElement;
      if (!text(walker.currentNode) || seen.has(one) || !shown(one) || forReaders(one) || one.closest("option, title, datalist, .skip")) continue;
      seen.add(one);
      check(one, one instanceof SVGElement ? getComputedStyle(one).fill : getComputedStyle(one).color);
    }
    for (const field of all("input[placeholder], textarea[placeholder]")) if (shown(field)) check(field, getComputedStyle(field, "::placeholder").color);
  }

  function check(one, color) {
    const style = getComputedStyle(one);
    const size = parseFloat(style.fontSize);
    const wanted = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5;
    let faded = 1;
    for (let at = one; at; at = at.parentElement) faded *= Number(getComputedStyle(at).opacity);
    const below = ground(one);
    const [r, g, b, a] = channels(color);
    const found = contrast(over([r, g, b, a * faded], below), below);
    if (found < wanted) say(`words are hard to read, ${found.toFixed(2)} of ${wanted}`, one);
  }

  function reach() {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) {
      const widest = all("main *, header *").filter((one) => shown(one) && !one.closest(".scroll") && one.getBoundingClientRect().right > width + 1);
      say("the page is wider than the screen", widest.length ? widest.at(-1) : `${document.documentElement.scrollWidth} of ${width}`);
    }
    for (const one of all("body *")) {
      const style = getComputedStyle(one);
      const scrolls = /auto|scroll/.test(style.overflowX + style.overflowY) && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1);
      if (scrolls && shown(one) && one.tabIndex < 0 && one.localName !== "textarea" && !one.matches("nav")) say("what scrolls can't be reached by keyboard", one);
      if (scrolls && one.tabIndex >= 0 && !one.getAttribute("aria-label") && !/^(textarea|select|input)$/.test(one.localName)) say("what scrolls has no name", one);
    }
    for (const one of all("button, .button, input:not([type=hidden]), select, summary")) {
      if (!shown(one)) continue;
      const box = one.getBoundingClientRect();
      const target = one.matches("[type=checkbox], [type=radio]") && one.labels.length ? one.labels[0].getBoundingClientRect() : box;
      const least = one.matches("[type=checkbox]") && !one.labels.length ? 15 : 24;
      if (Math.max(box.width, target.width) < least || Math.max(box.height, target.height) < least) say(`it is too small to be hit, ${box.width.toFixed()} by ${box.height.toFixed()}`, one);
    }
  }

  function focus() {
    for (const one of all("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")) {
      if (!shown(one) || one.disabled) continue;
      one.focus({ focusVisible: true, preventScroll: true });
      const style = getComputedStyle(one);
      if (document.activeElement !== one) say("it can't be focused", one);
      else if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) say("one does not see that it is focused", one);
      else if (contrast(channels(style.outlineColor), ground(one.parentElement)) < 3) say("its focus is hard to see", one);
    }
    document.activeElement?.blur();
  }

  for (const rule of [structure, names, contrasts, reach, focus]) rule();
  return wrong;
}
