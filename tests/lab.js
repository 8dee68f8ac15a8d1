"use strict";

/* What the tests ask of JupyterLab in Chromium; tests/browser.py loads it. */
window.lab = {
  cells: () => jupyterapp.shell.currentWidget.content.widgets,
  model: (i) => lab.cells()[i].model,
  source: (i) => lab.model(i).sharedModel.getSource(),
  count: (i) => lab.model(i).executionCount,
  output: (i) => lab.cells()[i].outputArea.node.innerText,
  isIdle: (i) => lab.model(i).executionState === "idle",
  hasBegun: ([i, before]) =>
    lab.model(i).executionState === "running" || lab.count(i) !== before,
  hasRun: ([i, before]) => lab.isIdle(i) && ![null, before].includes(lab.count(i)),

  /* The code cells that hold a text, by their numbers. */
  holding(text) {
    const numbers = [...lab.cells().keys()].filter((i) => lab.model(i).type === "code");
    return numbers.filter((i) => lab.source(i).includes(text));
  },

  isSized([width, height]) {
    const { clientWidth, clientHeight } = jupyterapp.shell.node;
    return clientWidth === width && clientHeight === height;
  },

  isAnswered() {
    const { kernelDisplayStatus } = jupyterapp.shell.currentWidget.sessionContext;
    return !document.querySelector(".jp-Dialog") && kernelDisplayStatus === "idle";
  },

  async open(path) {
    const options = { path, factory: "Notebook" };
    const panel = await jupyterapp.commands.execute("docmanager:open", options);
    await panel.context.ready;
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info; // "idle" is shown before it is connected
    await panel.content.fullyRendered;
  },

  async close() {
    const panel = jupyterapp.shell.currentWidget;
    await panel.context.save();
    await panel.sessionContext.shutdown();
    panel.dispose();
  },

  /* What a reader would object to. */
  problems() {
    const panel = jupyterapp.shell.currentWidget;
    const { widgets } = panel.content;
    const found = [];
    const place = (node) => `cell ${widgets.findIndex((cell) => cell.node.contains(node))}`;
    const hasPicture = (node) => node.querySelector("img, svg, canvas, iframe");
    widgets.forEach((cell, i) => {
      if (cell.model.type !== "code" || !cell.model.sharedModel.getSource().trim()) return;
      const outputs = cell.model.outputs.toJSON();
      if (cell.model.executionCount === null) found.push(`cell ${i} was not run`);
      for (const o of outputs) {
        if (o.output_type === "error") found.push(`cell ${i}: ${o.ename}: ${o.evalue}`);
      }
      const shown = [...cell.node.querySelectorAll(".jp-OutputArea-output")].filter(
        (node) => node.offsetHeight && (node.innerText.trim() || hasPicture(node)),
      );
      if (shown.length !== outputs.length) found.push(`cell ${i}: an output is not shown`);
    });
    for (const image of panel.node.querySelectorAll("img")) {
      if (!image.complete || !image.naturalWidth) {
        found.push(`${place(image)}: a picture is missing`);
      }
    }
    for (const node of panel.node.querySelectorAll("mjx-merror, [data-mjx-error]")) {
      found.push(`${place(node)}: a formula is not drawn: ${node.textContent}`);
    }
    for (const node of [panel.node, ...panel.node.querySelectorAll("*")]) {
      const wide = node.clientWidth && node.scrollWidth > node.clientWidth + 1;
      if (wide && /auto|scroll/.test(getComputedStyle(node).overflowX)) {
        found.push(`${place(node)} scrolls sideways at ${innerWidth} pixels: ${node.className}`);
      }
    }
    for (const dialog of document.querySelectorAll(".jp-Dialog")) {
      found.push(`a dialog: ${dialog.innerText}`);
    }
    return found;
  },
};
