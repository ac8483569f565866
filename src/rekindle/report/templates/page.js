"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const person = find("person"), day = find("day"), play = find("play"), time = find("time"), speed = find("speed");
  const clock = find("clock"), status = find("status");
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

  // A run is a number with its last bit set and the steps beyond two after it, or a single step with that bit clear.
  function decode(text, steps) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const cells = new Uint32Array(steps);
    let at = 0, step = 0;
    const read = () => {
      let value = 0, shift = 1, byte;
      do { byte = bytes[at++]; value += (byte & 127) * shift; shift *= 128; } while (byte > 127);
      return value;
    };
    while (step < steps) {
      const token = read(), length = token % 2 ? read() + 2 : 1;
      cells.fill(Math.floor(token / 2), step, step + length);
      step += length;
    }
    return cells;
  }

  const xs = data.xy.map((p) => p[0]), ys = data.xy.map((p) => p[1]);
  const box = (v) => v.reduce((b, x) => [Math.min(b[0], x), Math.max(b[1], x)], [Infinity, -Infinity]);
  const [left, right] = box(xs), [bottom, top] = box(ys);
  const side = data.side || Math.max(right - left, top - bottom, 1) / 60;
  const span = [right - left + 2 * side, top - bottom + 2 * side];
  const screens = [...document.querySelectorAll("canvas[data-path]")].map((canvas) => ({ canvas, kind: canvas.dataset.path }));
  let paths = {}, begin = 0, end = 1, step = 0, timer = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw() {
    for (const { canvas, kind } of screens) {
      const cells = paths[kind], ratio = window.devicePixelRatio || 1;
      const width = canvas.clientWidth || 300, scale = Math.min(width / span[0], 420 / span[1]);
      const height = Math.round(span[1] * scale);
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = height + "px";
      const pen = canvas.getContext("2d"), shift = (width - span[0] * scale) / 2;
      const at = (cell) => [shift + (xs[cell] - left + side) * scale, (top - ys[cell] + side) * scale];
      pen.scale(ratio, ratio);
      pen.strokeStyle = pen.fillStyle = colour("--rule");
      for (let cell = 0; cell < xs.length; cell++) {
        const [x, y] = at(cell), size = side * scale;
        if (data.side) pen.strokeRect(x - size / 2 + 0.5, y - size / 2 + 0.5, size - 1, size - 1);
        else { pen.beginPath(); pen.arc(x, y, 1.5, 0, 7); pen.fill(); }
      }
      pen.strokeStyle = pen.fillStyle = kind === "truth" ? colour("--truth") : data.colour;
      pen.lineWidth = 2.5; pen.lineJoin = "round"; pen.globalAlpha = 0.75;
      pen.beginPath();
      for (let one = begin; one <= step; one++) {
        const [x, y] = at(cells[one]);
        if (one === begin) pen.moveTo(x, y); else pen.lineTo(x, y);
      }
      pen.stroke();
      pen.globalAlpha = 1;
      const [x, y] = at(cells[step]);
      pen.beginPath(); pen.arc(x, y, 7, 0, 7); pen.fill();
      pen.lineWidth = 2; pen.strokeStyle = colour("--card"); pen.stroke();
      canvas.setAttribute("aria-label", canvas.dataset.name + " at " + data.names[cells[step]]);
    }
    const when = new Date(data.start + step * data.step * 1000), pad = (n) => String(n).padStart(2, "0");
    const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let text = days[when.getUTCDay()] + " " + pad(when.getUTCHours()) + ":" + pad(when.getUTCMinutes());
    text += " — rebuilt: " + data.names[paths.recovered[step]];
    if (paths.truth) {
      const same = paths.recovered[step] === paths.truth[step];
      text += ", true: " + data.names[paths.truth[step]] + (same ? " (right)" : " (wrong)");
      let right = 0;
      for (let one = begin; one <= step; one++) right += paths.recovered[one] === paths.truth[one];
      text += ". Right so far: " + Math.round(100 * right / (step - begin + 1)) + "%";
    }
    clock.textContent = text;
    time.value = step - begin;
    time.setAttribute("aria-valuetext", text);
  }

  function stop(done) {
    if (timer !== null) clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    status.textContent = done ? "End of the day." : "";
  }

  function tick() {
    if (step >= end - 1) { stop(true); return; }
    step += 1;
    draw();
  }

  function choose() {
    stop();
    const which = data.people[person.selectedIndex];
    paths = { recovered: decode(which.recovered, data.steps) };
    if (which.truth !== undefined) paths.truth = decode(which.truth, data.steps);
    [begin, end] = data.days[day.selectedIndex];
    step = begin;
    time.max = end - begin - 1;
    draw();
  }

  play.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    if (step >= end - 1) step = begin;
    play.textContent = "Pause";
    status.textContent = "Playing.";
    // A day takes about 20 seconds at normal speed, however long its steps are.
    timer = setInterval(tick, Math.max(16, 20000 / (end - begin) / Number(speed.value)));
    tick();
  });
  speed.addEventListener("change", () => { if (timer !== null) { stop(); play.click(); } });
  time.addEventListener("input", () => { stop(); step = begin + Number(time.value); draw(); });
  person.addEventListener("change", choose);
  day.addEventListener("change", choose);
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  choose();
})();
