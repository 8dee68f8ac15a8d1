"use strict";

/* What the tests in a window of Chromium ask of the live page; tests/live_page.py loads it. */
window.asked = (() => {
  const frame = () => new Promise(requestAnimationFrame);

  /* Whether the answer is that to the picture that stands there, and drawn; and so, where it is
  found at once, what each patch matters. */
  function settled(quick) {
    const { run, matters, without, twin } = vitState.state;
    const none = JSON.stringify(without) === JSON.stringify(vitState.nothingOut());
    if (!run || !run.shown.pixels.every((value, i) => value === vitState.pixels()[i])) return false;
    if (run.out ? JSON.stringify(run.shown.without) !== JSON.stringify(without) : !none) {
      return false;
    }
    return Boolean(run.twin) === twin && (matters || !quick);
  }

  /* Of a canvas, in red, green, blue and alpha, a place in each of its rows by columns. */
  function cells(canvas, [rows, cols, share]) {
    const { width, height } = canvas;
    const pen = Object.assign(document.createElement("canvas"), { width, height }).getContext(
      "2d",
      { willReadFrequently: true },
    );
    pen.drawImage(canvas, 0, 0);
    const at = (i, long, count) => Math.floor(((i + share) * long) / count);
    return Array.from({ length: rows * cols }, (_, k) => {
      const [x, y] = [at(k % cols, width, cols), at(Math.floor(k / cols), height, rows)];
      return [...pen.getImageData(x, y, 1, 1).data];
    });
  }

  /* A file let fall on the page, or pasted into it. */
  function give([kind, bytes]) {
    const files = new DataTransfer();
    files.items.add(new File([Uint8Array.from(bytes)], `${kind}.png`, { type: "image/png" }));
    const event =
      kind === "drop"
        ? new DragEvent("drop", { dataTransfer: files, bubbles: true })
        : new ClipboardEvent("paste", { clipboardData: files, bubbles: true });
    document.body.dispatchEvent(event);
  }

  /* What the picture shows in the frame before a stroke and in the one after it, and whether a long
  job was under way meanwhile. */
  async function stroke() {
    const canvas = document.getElementById("picture");
    let share = 0;
    let ended = false;
    const job = vitState.work("reasons", {}, (done) => (share = done));
    job.then(
      () => (ended = true),
      () => 0,
    );
    while (!share) await frame();
    vitState.show(
      vitState.state.base.map(() => -1),
      { tool: "draw", light: "nothing" },
    );
    await frame();
    const before = cells(canvas, [4, 4, 0.6]);
    canvas.setPointerCapture = () => {};
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const put = (kind, part) => {
      const place = { clientX: left + part * width, clientY: top + part * height, pointerId: 1 };
      canvas.dispatchEvent(new PointerEvent(kind, place));
    };
    put("pointerdown", 0.05);
    put("pointermove", 0.95);
    await frame(); // in which the page draws
    const after = cells(canvas, [4, 4, 0.6]);
    put("pointerup", 0.95);
    const meanwhile = !ended;
    job.stop();
    return [before, after, share, meanwhile];
  }

  /* Draw each digit's strokes on an empty sheet; give the pixels, and the likeliest class. */
  function read(drawings) {
    return drawings.map((strokes) => {
      const { config, weights } = vitState;
      let sheet = new Float32Array(config.height * config.width).fill(-1);
      for (const points of strokes) {
        points.forEach((to, i) => {
          sheet = vitModel.stroke(sheet, points[Math.max(i - 1, 0)], to, config);
        });
      }
      const { data } = vitModel.vit(sheet, weights, config).probabilities;
      return [[...sheet], vitMeasures.best(data)];
    });
  }

  /* Tick each box alone; what is left out then, by the boxes' names. */
  function leftOut() {
    const boxes = [...document.querySelectorAll("#without input")].map((box) => {
      box.click();
      const { without } = vitState.state;
      box.click();
      return [box.getAttribute("aria-label") || box.parentNode.textContent.trim(), without];
    });
    return Object.fromEntries(boxes);
  }

  /* Press a button; when it measures, press another, or change what is out. */
  async function interrupted([first, then]) {
    const find = (name) =>
      [...document.querySelectorAll("button")].find(
        (one) => one.textContent === name && one.offsetParent,
      );
    find(first).click();
    const bar = find(first).nextElementSibling;
    while (!bar.value && bar.isConnected) await frame();
    const share = bar.value;
    if (then) find(then).click();
    else vitState.change({ without: { ...vitState.nothingOut(), positions: true } });
    for (let i = 0; i < 5; i++) await frame();
    return 0 < share && share < 1 && !bar.isConnected;
  }

  /* All that is chosen; not what is found. */
  function chosen() {
    const { run, matters, patch, ...rest } = vitState.state;
    const plain = (_, x) => (x instanceof Set ? [...x] : ArrayBuffer.isView(x) ? Array.from(x) : x);
    return JSON.stringify(rest, plain);
  }

  /* What moves by itself. */
  function moving() {
    const moves = (element) => {
      const { transitionDuration, animationName } = getComputedStyle(element);
      return /[1-9]/.test(transitionDuration) || animationName !== "none";
    };
    return [...document.querySelectorAll("*")].filter(moves).map((element) => element.className);
  }

  /* What takes the focus, and has no name to be read aloud. */
  function nameless() {
    const all = document.querySelectorAll("a, button, input, select, summary, [tabindex]");
    const reached = [...all].filter((one) => !one.disabled && one.checkVisibility());
    return reached.filter((one) => !one.computedName.trim()).map((one) => one.tagName);
  }

  return { settled, cells, give, stroke, read, leftOut, interrupted, chosen, moving, nameless };
})();
