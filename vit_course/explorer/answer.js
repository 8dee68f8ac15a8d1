"use strict";

/* The answer: what the model says, how far to believe it, and a bar for each class, linked to the
picture: a class pointed at lights up what matters to it, and a patch pointed at marks in the bars
what would be left without it.
*/
const vitAnswer = (() => {
  const { row } = vitModel;
  const { make, percent } = vitDrawing;
  const { given, classes, labels, patches, state, change, ink } = vitState;
  const { best } = vitMeasures;

  /* Whether the answer is to be doubted: by how often such a share was right on held-out pictures,
  where the weights say it of enough of them. With a sentence. */
  function doubt(share) {
    const bin = given.worth.filter(({ least }) => share >= least).at(-1);
    if (!(bin?.images >= 20)) return [share < 0.8, share < 0.8 ? "It is unsure." : ""];
    const rate = Math.round((100 * bin.right) / bin.images);
    const known = `On held-out pictures, when it is this sure, it is right ${rate} times in 100.`;
    return [rate < 80, rate < 80 ? `It is unsure. ${known}` : known];
  }

  /* Which classes are shown: all up to ten; else the ten most probable. */
  function likeliest(shares) {
    const all = [...shares.keys()];
    return all.length <= 10 ? all : all.sort((a, b) => shares[b] - shares[a]).slice(0, 10);
  }

  function build(place) {
    const headline = make("p", { id: "answer", "aria-live": "polite" });
    const doubted = make("p", { id: "doubt", className: "small" });
    const list = make("ul", { className: "bars" });
    const strike = make("button", { type: "button", id: "strike" });
    place.append(headline, doubted, list, strike);
    list.addEventListener("pointerleave", () => change({ name: -1 }));

    vitState.listen("run", ({ run, example }) => {
      const { whole, out } = run;
      const { data } = run.shown.probabilities;
      const empty = vitState.isEmpty();
      const top = best(data);
      const before = best(whole.probabilities.data);
      const share = percent(whole.probabilities.data[before]);
      const [unsure, why] = doubt(data[top]);
      headline.classList.toggle("unsure", empty || unsure);
      headline.textContent = empty
        ? `There is ${ink ? "too little on it" : "nothing on it"} to say anything.`
        : `It says ${classes[top]} (${percent(data[top])}).`;
      if (out)
        doubted.textContent = `Whole (see the marks), it says ${classes[before]} (${share}).`;
      else doubted.textContent = empty ? "" : why;
      list.classList.toggle("faint", empty);
      const classesShown = likeliest(whole.probabilities.data);
      if (list.dataset.shown !== String(classesShown)) {
        list.dataset.shown = classesShown;
        list.replaceChildren(...classesShown.map(bar));
      }
      for (const line of list.children) {
        const i = Number(line.dataset.name);
        const [name, track, number] = line.children;
        name.textContent = classes[i] + (i === labels[example] ? " ✓" : "");
        track.firstChild.style.width = empty ? 0 : `${100 * data[i]}%`;
        track.children[1].hidden = !out;
        track.children[1].style.left = `${100 * whole.probabilities.data[i]}%`;
        number.textContent = empty ? "" : percent(data[i]);
        line.classList.toggle("best", i === top && !empty);
      }
    });
    vitState.listen("matters patch", ({ matters, patch }) => {
      for (const line of list.children) {
        const mark = line.children[1].children[2];
        mark.hidden = !matters || patch < 0;
        if (!mark.hidden) mark.style.left = `${100 * row(matters, patch)[line.dataset.name]}%`;
      }
    });

    // One press that shows what a patch can do.
    vitState.listen("run covered", ({ covered }) => {
      strike.hidden = vitState.isEmpty() && !covered.size;
      strike.textContent = covered.size ? "Uncover all" : "Cover the patch that matters most";
    });
    strike.addEventListener("click", async () => {
      if (state.covered.size) return change({ covered: new Set() });
      if (!state.matters) {
        strike.textContent = "Covering one after the other …"; // a slow model
        await vitState.findMatters();
      }
      const { matters, run } = state;
      if (!matters) return; // the picture changed meanwhile
      const top = best(run.shown.probabilities.data);
      const left = Array.from({ length: patches }, (_, i) => row(matters, i)[top]);
      change({ covered: new Set([left.indexOf(Math.min(...left))]) });
    });
  }

  /* A class's line: name, bar with two marks (whole; without the patch pointed at), number. */
  function bar(i) {
    const mark = (name) => make("i", { className: name, hidden: name !== "bar" });
    const track = make("span", { className: "track" }, mark("bar"), mark("whole"), mark("left"));
    const number = make("span", { className: "number" });
    const line = make("li", {}, make("span", { className: "name" }), track, number);
    line.dataset.name = i;
    line.addEventListener("pointerenter", () => change({ name: i }));
    return line;
  }

  return { build, likeliest };
})();
