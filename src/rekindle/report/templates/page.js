"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const person = find("person"), day = find("day"), play = find("play"), time = find("time"), speed = find("speed");
  const clock = find("clock"), status = find("status"), map = find("map"), strip = find("strip"), spot = find("spot");
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

  // A table that is wider than the screen says so, until its end is seen.
  const tables = [...document.querySelectorAll(".scroll")];
  const measure = () => tables.forEach((one) => {
    one.parentElement.classList.toggle("wide", one.scrollWidth > one.clientWidth + 1);
    one.parentElement.classList.toggle("more", one.scrollWidth - one.clientWidth - one.scrollLeft > 2);
  });
  tables.forEach((one) => one.addEventListener("scroll", measure));
  document.querySelectorAll("details").forEach((one) => one.addEventListener("toggle", measure));
  window.addEventListener("resize", measure);
  measure();

  // Places are named when they are pointed at or tapped.
  const named = find("place");
  const tell = (event) => {
    const title = event.target.closest(".place")?.querySelector("title");
    if (title) named.textContent = title.textContent;
  };
  document.querySelectorAll(".map").forEach((one) => ["pointerover", "click"].forEach((kind) => one.addEventListener(kind, tell)));

  // A run is a number with its last bit set and the steps beyond two after it, or a single step with that bit clear.
  // The number is 0 for someone who is away, else 1 more than the place.
  function decode(text, steps) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const cells = new Int32Array(steps);
    let at = 0, step = 0;
    const read = () => {
      let value = 0, shift = 1, byte;
      do { byte = bytes[at++]; value += (byte & 127) * shift; shift *= 128; } while (byte > 127);
      return value;
    };
    while (step < steps) {
      const token = read(), length = token % 2 ? read() + 2 : 1;
      cells.fill(Math.floor(token / 2) - 1, step, step + length);
      step += length;
    }
    return cells;
  }

  const xs = data.xy.map((p) => p[0]), ys = data.xy.map((p) => p[1]);
  const box = (v) => v.reduce((b, x) => [Math.min(b[0], x), Math.max(b[1], x)], [Infinity, -Infinity]);
  const reach = Math.max(...[xs, ys].map(box).map(([low, high]) => high - low), data.side || 0, 0.1);
  const side = data.side || reach / 60;
  let paths = {}, begin = 0, end = 1, step = 0, timer = null, view = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const degree = (value, signs) => Math.abs(value).toFixed(4) + "° " + signs[value < 0 ? 1 : 0];
  const named_at = (cell) => {
    if (cell < 0) return "away";
    const where = data.degrees && data.degrees[cell];
    return data.names[cell] + (where ? " (" + degree(where[0], "NS") + ", " + degree(where[1], "EW") + ")" : "");
  };
  const wrong = (at) => paths.truth[at] >= 0 && paths.recovered[at] !== paths.truth[at];

  // Zoom to where the person is on this day, in truth and as rebuilt.
  function zoom() {
    const seen = Object.values(paths).flatMap((cells) => [...cells.subarray(begin, end)]).filter((cell) => cell >= 0);
    const all = seen.length ? seen : xs.map((_, cell) => cell);
    const [left, right] = box(all.map((cell) => xs[cell])), [bottom, top] = box(all.map((cell) => ys[cell]));
    const least = Math.min(6 * side, reach + 2 * side), pad = 1.2 * side;
    view = { x: (left + right) / 2, y: (bottom + top) / 2 };
    view.wide = Math.max(right - left + 2 * pad, least);
    view.high = Math.max(top - bottom + 2 * pad, least * 0.6);
  }

  function fit(canvas, height) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 300;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    return [pen, width];
  }

  function draw() {
    const wide = map.clientWidth || 300;
    const height = Math.round(Math.min(440, Math.max(220, wide * view.high / view.wide)));
    const [pen, width] = fit(map, height);
    const scale = Math.min(width / view.wide, height / view.high);
    const at = (cell) => [width / 2 + (xs[cell] - view.x) * scale, height / 2 - (ys[cell] - view.y) * scale];
    view.at = at;
    pen.strokeStyle = pen.fillStyle = colour("--rule");
    for (let cell = 0; cell < xs.length; cell++) {
      const [x, y] = at(cell), size = side * scale;
      if (x < -size || y < -size || x > width + size || y > height + size) continue;
      if (data.side) pen.strokeRect(x - size / 2 + 0.5, y - size / 2 + 0.5, size - 1, size - 1);
      else { pen.beginPath(); pen.arc(x, y, 3, 0, 7); pen.fill(); }
    }
    const line = (cells, last, thick, alpha, tint) => {
      pen.strokeStyle = tint; pen.lineWidth = thick; pen.globalAlpha = alpha; pen.lineJoin = pen.lineCap = "round";
      pen.beginPath();
      for (let one = begin, apart = true; one <= last; one++) {
        if (cells[one] < 0) { apart = true; continue; }
        const [x, y] = at(cells[one]);
        if (apart) pen.moveTo(x, y); else pen.lineTo(x, y);
        apart = false;
      }
      pen.stroke();
      pen.globalAlpha = 1;
    };
    const { recovered, truth } = paths, ink = colour("--truth"), red = colour("--worst");
    line(recovered, end - 1, 7, 0.28, data.colour);
    if (truth) line(truth, end - 1, 2, 0.3, ink);
    line(recovered, step, 7, 0.6, data.colour);
    if (truth) line(truth, step, 2, 0.95, ink);
    // Where the person was rebuilt in another place, the two are tied together.
    if (truth) for (let one = begin; one <= step; one++) {
      if (!wrong(one)) continue;
      pen.strokeStyle = red; pen.lineWidth = 1.5; pen.globalAlpha = one === step ? 1 : 0.6; pen.setLineDash([4, 3]);
      if (recovered[one] >= 0) {
        const [x, y] = at(recovered[one]);
        const [a, b] = at(truth[one]);
        // In an arc, so that it is told from the paths.
        pen.beginPath(); pen.moveTo(a, b); pen.quadraticCurveTo((a + x) / 2 + (y - b) / 4, (b + y) / 2 - (x - a) / 4, x, y); pen.stroke();
        pen.setLineDash([]);
        pen.globalAlpha = 1; pen.lineWidth = 2;
        pen.beginPath(); pen.moveTo(x - 4, y - 4); pen.lineTo(x + 4, y + 4); pen.moveTo(x - 4, y + 4); pen.lineTo(x + 4, y - 4); pen.stroke();
      }
    }
    pen.setLineDash([]); pen.globalAlpha = 1;
    if (recovered[step] >= 0) {
      pen.beginPath(); pen.arc(...at(recovered[step]), 9, 0, 7);
      pen.lineWidth = 4; pen.strokeStyle = data.colour; pen.stroke();
    }
    if (truth && truth[step] >= 0) {
      pen.beginPath(); pen.arc(...at(truth[step]), 5, 0, 7);
      pen.fillStyle = ink; pen.fill(); pen.lineWidth = 1.5; pen.strokeStyle = colour("--card"); pen.stroke();
    }
    // The scale, and north.
    const most = width / scale / 4, power = 10 ** Math.floor(Math.log10(most)), km = [5, 2, 1].find((n) => n * power <= most) * power;
    pen.strokeStyle = pen.fillStyle = colour("--soft"); pen.lineWidth = 1.5; pen.font = "13px system-ui, sans-serif";
    pen.beginPath(); pen.moveTo(12, height - 18); pen.lineTo(12, height - 10); pen.moveTo(12, height - 14); pen.lineTo(12 + km * scale, height - 14);
    pen.moveTo(12 + km * scale, height - 18); pen.lineTo(12 + km * scale, height - 10); pen.stroke();
    pen.fillText(km >= 1 ? km + " km" : Math.round(1000 * km) + " m", 18 + km * scale, height - 9);
    const [x, y] = [width - 16, 10];
    pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + 5, y + 16); pen.lineTo(x, y + 12); pen.lineTo(x - 5, y + 16); pen.fill();
    pen.fillText("N", x - 4, y + 30);

    const when = new Date(data.start + step * data.step * 1000), pad = (n) => String(n).padStart(2, "0");
    const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let text = days[when.getUTCDay()] + " " + pad(when.getUTCHours()) + ":" + pad(when.getUTCMinutes());
    text += " — rebuilt: " + named_at(recovered[step]);
    if (truth) {
      let right = 0, counted = 0;
      for (let one = begin; one <= step; one++) if (truth[one] >= 0) { counted += 1; right += recovered[one] === truth[one]; }
      const same = recovered[step] === truth[step];
      text += ", true: " + named_at(truth[step]) + (same ? " (right)" : " (wrong)");
      if (counted) text += ". Right so far: " + Math.round(100 * right / counted) + "%";
      drawStrip(red);
    }
    map.setAttribute("aria-label", map.dataset.name + ": " + text);
    clock.textContent = text;
    time.value = step - begin;
    time.setAttribute("aria-valuetext", text);
  }

  // The whole day in a strip: where the rebuilt path is right, wrong, or the person away.
  function drawStrip(red) {
    const [pen, width] = fit(strip, 18), one = width / (end - begin);
    for (let at = begin; at < end; at++) {
      pen.fillStyle = paths.truth[at] < 0 ? colour("--rule") : wrong(at) ? red : data.colour;
      pen.fillRect((at - begin) * one, wrong(at) ? 0 : 8, Math.ceil(one), wrong(at) ? 14 : 6);
    }
    pen.fillStyle = colour("--ink");
    pen.fillRect((step - begin + 0.5) * one - 1, 0, 2, 18);
  }

  function point(event) {
    if (!view || !view.at) return;
    const edge = map.getBoundingClientRect(), x = event.clientX - edge.left, y = event.clientY - edge.top;
    let nearest = 0, least = Infinity;
    for (let cell = 0; cell < xs.length; cell++) {
      const [a, b] = view.at(cell), gap = (a - x) ** 2 + (b - y) ** 2;
      if (gap < least) { least = gap; nearest = cell; }
    }
    spot.textContent = "Here: " + named_at(nearest);
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
    zoom();
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
  ["pointermove", "click"].forEach((kind) => map.addEventListener(kind, point));
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  choose();
})();
