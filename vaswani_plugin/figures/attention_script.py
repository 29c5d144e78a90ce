"""What makes the attention page move: its style, and a script without any library."""

STYLE = """
.attention fieldset { border: 0; margin: 0 0 .5rem; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem;
  align-items: center; }
.attention legend { float: left; width: 5.5rem; overflow-wrap: normal; color: var(--quiet); }
.attention label { position: relative; min-width: 2.25rem; padding: .2rem .6rem; text-align: center; cursor: pointer;
  border: 1px solid var(--line); border-radius: .4rem; }
.attention input { position: absolute; inset: 0; margin: 0; opacity: 0; cursor: pointer; }
.attention label:has(:checked) { background: var(--raised); border-color: var(--text); font-weight: 600; }
.attention label:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 1px; }
.attention [data-head] span { border-bottom: .2rem solid var(--colour, transparent); }
.attention .links { display: grid; grid-template-columns: minmax(7rem, 1fr) minmax(5rem, 2fr) minmax(7rem, 1fr);
  max-width: 44rem; margin-top: 1rem; }
.attention .links h3 { font-size: .875rem; font-weight: 400; color: var(--quiet); margin: 0 .4rem .25rem; }
.attention .links h3:first-child { text-align: right; }
.attention .words { display: grid; grid-auto-rows: 1.75rem; }
.attention .words button { all: unset; box-sizing: border-box; cursor: default; padding: 0 .4rem; line-height: 1.75rem;
  overflow: hidden; white-space: pre; text-overflow: ellipsis; border-radius: .3rem; position: relative; }
.attention .words.left button { text-align: right; }
.attention .words button:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.attention .words button.chosen { background: var(--raised); font-weight: 600; }
.attention .words button::before { content: ""; position: absolute; inset: 0; z-index: -1; background: var(--accent);
  opacity: var(--weight, 0); }
.attention svg { width: 100%; height: 100%; display: block; overflow: visible; }
.attention svg line { vector-effect: non-scaling-stroke; }
.attention .readout { min-height: 3em; }
"""

SCRIPT = r"""
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("attention-data").textContent);
  const root = document.querySelector(".attention");
  const [left, right] = root.querySelectorAll(".words");
  const drawing = root.querySelector("svg");
  const readout = root.querySelector(".readout");
  const FAINTEST = 0.02;
  for (const map of Object.values(data.maps)) {
    const bytes = Uint8Array.from(atob(map.weights), (character) => character.charCodeAt(0));
    map.weights = new Float32Array(bytes.buffer);
  }
  // What is shown: kind, layer and head (-1: all) from 0 on, and the chosen word as side ("q" looks, "k" is looked at)
  // and place. "hovered" is a word under the mouse, which goes before the chosen one as long as it is there.
  const view = { kind: "cross", layer: data.layers - 1, head: -1, word: null };
  let hovered = null;

  const weight = (head, row, column) => {
    const map = data.maps[view.kind];
    const [rows, columns] = [map.rows.length, map.columns.length];
    return map.weights[((view.layer * data.heads + head) * rows + row) * columns + column];
  };
  const heads = () => (view.head < 0 ? [...Array(data.heads).keys()] : [view.head]);
  const mean = (row, column) => heads().reduce((sum, head) => sum + weight(head, row, column), 0) / heads().length;
  const colour = (head) => `hsl(${Math.round((360 * head) / data.heads + 210) % 360} 75% var(--link-light))`;

  function showWords() {
    const map = data.maps[view.kind];
    for (const [column, side, words] of [[left, "q", map.rows], [right, "k", map.columns]]) {
      column.replaceChildren(...words.map((word, place) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = word;
        button.title = word;
        button.dataset.word = side + place;
        button.tabIndex = -1;
        button.addEventListener("mouseenter", () => { hovered = side + place; showLinks(); });
        button.addEventListener("mouseleave", () => { hovered = null; showLinks(); });
        button.addEventListener("focus", () => choose(side + place));
        button.addEventListener("click", () => choose(side + place));
        return button;
      }));
    }
    root.querySelector(".links h3").textContent = map.looking;
    root.querySelector(".links h3:last-of-type").textContent = map.seen;
    const count = Math.max(left.children.length, right.children.length);
    drawing.setAttribute("viewBox", `0 0 100 ${count}`);
    drawing.style.height = `${1.75 * count}rem`;
  }

  function showLinks() {
    const word = hovered ?? view.word;
    const [side, place] = word === null ? [null, -1] : [word[0], Number(word.slice(1))];
    const lines = [];
    const [rows, columns] = [left.children.length, right.children.length];
    for (let row = 0; row < rows; row++) {
      if (side === "q" && row !== place) continue;
      for (let column = 0; column < columns; column++) {
        if (side === "k" && column !== place) continue;
        heads().forEach((head, index) => {
          const value = weight(head, row, column);
          if (value < FAINTEST) return;
          const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
          // Lines of several heads lie beside each other.
          const shift = ((index + 0.5) / heads().length - 0.5) * 0.5;
          const ends = { x1: 0, y1: row + 0.5 + shift, x2: 100, y2: column + 0.5 + shift };
          for (const [name, end] of Object.entries(ends)) line.setAttribute(name, end);
          line.style.stroke = colour(head);
          line.style.strokeOpacity = word === null ? value * 0.6 : value;
          line.style.strokeWidth = word === null ? 1.5 : 1 + 2 * value;
          line.dataset.weight = value;
          lines.push(line);
        });
      }
    }
    drawing.replaceChildren(...lines);
    for (const button of root.querySelectorAll(".words button")) {
      const [own, other] = [button.dataset.word[0], Number(button.dataset.word.slice(1))];
      let value = 0;
      if (side === "q" && own === "k") value = mean(place, other);
      if (side === "k" && own === "q") value = mean(other, place);
      button.style.setProperty("--weight", value * 0.6);
      button.classList.toggle("chosen", button.dataset.word === word);
      button.setAttribute("aria-pressed", button.dataset.word === view.word);
    }
    readout.textContent = word === null ? "" : sentence(side, place);
  }

  function sentence(side, place) {
    const others = [...(side === "q" ? right : left).children].map((button, index) => [
      button.textContent, side === "q" ? mean(place, index) : mean(index, place)]);
    const named = others.filter((pair) => pair[1] >= 0.005).sort((a, b) => b[1] - a[1]).slice(0, 6)
      .map(([text, value]) => `${text} ${value.toFixed(2)}`).join(", ");
    const own = (side === "q" ? left : right).children[place].textContent;
    const among = heads().length > 1 ? ` (mean of ${heads().length} heads)` : "";
    return `${own} ${side === "q" ? "looks at" : "is seen by"} ${named || "nothing"}${among}`;
  }

  function choose(word) {
    if (view.word === word) return;
    view.word = word;
    keepTabStop();
    showLinks();
    remember();
  }

  // One word at a time can be reached by Tab; the arrow keys go on from there.
  function keepTabStop() {
    for (const button of root.querySelectorAll(".words button")) button.tabIndex = -1;
    const stop = root.querySelector(`[data-word="${view.word ?? "q0"}"]`);
    if (stop) stop.tabIndex = 0;
  }

  root.querySelector(".links").addEventListener("keydown", (event) => {
    const button = event.target.closest("[data-word]");
    if (!button) return;
    if (event.key === "Escape") { view.word = null; button.blur(); keepTabStop(); showLinks(); remember(); return; }
    const column = button.parentElement;
    const place = [...column.children].indexOf(button);
    const goal = {
      ArrowUp: column.children[place - 1], ArrowDown: column.children[place + 1],
      Home: column.firstElementChild, End: column.lastElementChild,
      ArrowLeft: left.children[Math.min(place, left.children.length - 1)],
      ArrowRight: right.children[Math.min(place, right.children.length - 1)],
    }[event.key];
    if (goal) { event.preventDefault(); goal.focus(); }
  });

  function remember() {
    const head = view.head < 0 ? "all" : view.head + 1;
    const parts = [view.kind, view.layer + 1, head, ...(view.word === null ? [] : [view.word])];
    history.replaceState(null, "", `#${parts.join("-")}`);
  }

  function recall() {
    const [kind, layer, head, word] = location.hash.slice(1).split("-");
    if (!(kind in data.maps)) return;
    view.kind = kind;
    view.layer = Math.min(Math.max(Number(layer) - 1 || 0, 0), data.layers - 1);
    view.head = head === "all" ? -1 : Math.min(Math.max(Number(head) - 1 || 0, 0), data.heads - 1);
    view.word = /^[qk]\d+$/.test(word ?? "") ? word : null;
  }

  function show() {
    for (const [name, value] of [["kind", view.kind], ["layer", view.layer], ["head", view.head]])
      root.querySelector(`input[name="${name}"][value="${value}"]`).checked = true;
    for (const label of root.querySelectorAll("[data-head]")) {
      const coloured = view.head < 0 && label.dataset.head >= 0;
      label.style.setProperty("--colour", coloured ? colour(label.dataset.head) : "transparent");
    }
    showWords();
    if (view.word !== null && !root.querySelector(`[data-word="${view.word}"]`)) view.word = null;
    keepTabStop();
    showLinks();
  }

  root.addEventListener("change", (event) => {
    const { name, value } = event.target;
    view[name] = name === "kind" ? value : Number(value);
    if (name === "kind") view.word = null;
    show();
    remember();
  });
  addEventListener("hashchange", () => { recall(); show(); });
  recall();
  show();
})();
"""
