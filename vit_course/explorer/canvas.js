/* A canvas whose drawing goes to the notebook's Python and comes back as an answer: the digit, a bar
for each class, where cls attends. It computes no model.

It takes the place of the still picture below the cell, which is what the notebook keeps.
*/
const GREY = "#8c8c8c";
const TRIES = 100; // of a tenth of a second each, until the still picture is there
const PATIENCE = 4000; // milliseconds without an answer

export default {
  initialize({ model }) {
    if (!model.get("beside")) put(model, TRIES);
  },
  render({ model, el }) {
    el.append(build(model));
  },
};

/* Put the canvas where the still picture is; it may come later than this. */
function put(model, tries) {
  const source = `data:image/png;base64,${model.get("still")}`;
  const all = [...document.querySelectorAll(".jp-RenderedImage img")];
  const still = all.filter(({ src }) => src === source).at(-1);
  if (still) still.replaceWith(build(model));
  else if (tries) setTimeout(() => put(model, tries - 1), 100);
}

function build(model) {
  const { make, drawPixels, drawMap, percent, step } = vitDrawing;
  const { side, patch_size, classes, whose } = model.get("sizes");
  const config = { height: side, width: side, patch_size, in_channels: 1 };
  const scale = Math.max(1, Math.round(256 / side));
  let pixels = Float32Array.from(model.get("start"));
  let cursor = [Math.floor(side / 2), Math.floor(side / 2)];
  let last = null; // where the pen is, while it is down
  let untouched = true; // whether the drawing to begin with is still shown
  let keys = false; // whether the place for the keys is shown
  let [sent, answered, waits] = [0, 0, false]; // what was asked last, and what was answered

  const size = { width: side * scale, height: side * scale };
  const words = "Draw a digit with the pointer. Arrow keys go to a place, space draws a dot there.";
  const about = { tabIndex: 0, role: "application", "aria-label": words };
  const canvas = make("canvas", { className: "vit-paper", ...size, ...about });
  const map = make("canvas", { className: "vit-map", width: 6 * side, height: 6 * side });
  map.setAttribute("aria-hidden", "true");
  const answer = make("p", { className: "vit-answer", "aria-live": "polite" });
  const list = make("ul", { className: "vit-bars" }, ...classes.map(bar));
  const told = make("p", { className: "vit-told", role: "status" });
  const clear = make("button", { type: "button", onclick: empty }, "Clear");
  const looks = make("figure", {}, map, make("figcaption", {}, "where cls attends (last block)"));
  const left = make("div", {}, canvas, make("div", { className: "vit-row" }, clear, told));
  const whole = make("div", { className: "vit-canvas" });
  const right = make("div", { className: "vit-right" }, answer, list);
  const heading = make("p", { className: "vit-whose" }, make("b", {}, "Your ViT"), ` ${whose}`);
  whole.append(...(whose ? [heading] : []), left, right, looks);

  function bar(name) {
    const track = make("span", { className: "vit-track" }, make("i"));
    return make("li", {}, make("span", {}, name), track, make("b"));
  }

  function show() {
    const pen = drawPixels(canvas, pixels, config).canvas.getContext("2d");
    const square = patch_size * scale;
    pen.fillStyle = GREY; // whole pixels, so that no line is lost
    for (let at = square; at < canvas.width; at += square) {
      pen.fillRect(at, 0, 1, canvas.height);
      pen.fillRect(0, at, canvas.width, 1);
    }
    if (!keys) return;
    pen.strokeStyle = "#e69f00";
    pen.lineWidth = 3;
    pen.strokeRect(cursor[1] * scale + 1, cursor[0] * scale + 1, scale - 2, scale - 2);
  }

  /* Ask Python about what is on the canvas; while it thinks, only the last drawing waits. */
  function ask() {
    if (sent > answered) return (waits = true);
    waits = false;
    const number = ++sent;
    whole.setAttribute("aria-busy", "true");
    model.send({ ink: bytes(), number });
    setTimeout(() => {
      if (answered >= number) return;
      told.textContent = "No answer yet. If the kernel was restarted, run this cell again.";
      answered = number; // the next stroke asks anew
    }, PATIENCE);
  }

  function keep() {
    model.send({ ink: bytes(), keep: true });
  }

  const bytes = () => Array.from(pixels, (value) => Math.round((value + 1) * 127.5));

  model.on("msg:custom", (message) => {
    if (message.kept) return (told.textContent = message.kept);
    answered = Math.max(answered, message.number ?? 0);
    if (waits) ask();
    else whole.setAttribute("aria-busy", "false");
    told.textContent = message.error ?? "";
    if (message.shares) say(message);
  });

  function say({ shares, attends, unsure }) {
    const top = shares.indexOf(Math.max(...shares));
    const blank = pixels.every((value) => value <= -1);
    answer.textContent = blank ? "Draw a digit." : `${classes[top]}, with ${percent(shares[top])}`;
    if (!blank && unsure) answer.textContent = `Unsure: perhaps ${classes[top]}`;
    whole.classList.toggle("vit-blank", blank);
    shares.forEach((share, i) => {
      const [, track, number] = list.children[i].children;
      track.firstChild.style.width = `${100 * share}%`;
      number.textContent = share < 0.005 ? "" : percent(share);
      list.children[i].classList.toggle("vit-best", i === top);
    });
    looks.hidden = !attends;
    if (attends) drawMap(map, pixels, config, attends, Math.max(...attends));
  }

  function draw(from, to) {
    pixels = vitModel.stroke(pixels, from, to, config);
    show();
    ask();
  }

  /* Draw a stroke's first dot; the very first stroke takes away the drawing that was shown. */
  function begin(at) {
    if (untouched) pixels = pixels.map(() => -1);
    untouched = false;
    draw(at, at);
  }

  function empty() {
    pixels = pixels.map(() => -1);
    show();
    ask();
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const down = ((event.clientY - box.top) / box.height) * side;
    return [down, ((event.clientX - box.left) / box.width) * side];
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    last = under(event);
    keys = false;
    begin(last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    for (const next of (event.getCoalescedEvents?.() ?? []).concat(event).map(under)) {
      draw(last, next);
      last = next;
    }
  });
  for (const name of ["pointerup", "pointercancel"])
    canvas.addEventListener(name, () => {
      if (last) keep();
      last = null;
    });
  canvas.addEventListener("keydown", (event) => {
    const by = step(event);
    const dot = event.key === " " || event.key === "Enter";
    if (!by && !dot) return;
    event.preventDefault();
    event.stopPropagation(); // the notebook has its own use for arrows
    keys = true;
    const inside = (value) => Math.max(0, Math.min(side - 1, value));
    if (by) cursor = cursor.map((old, i) => inside(old + by[i]));
    if (dot) {
      begin(cursor.map((index) => index + 0.5));
      keep();
    } else show();
  });

  show();
  ask();
  return whole;
}
