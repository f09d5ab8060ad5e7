"use strict";
// Draws the maps and plays the drive. Everything is in DRIVE: shapes, pictures, scenes, ticks.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const GROUND = "#5d7f5f", EGO = "#2f8cff", PLAN = "#8cff78";
// Extent of the ego around the rear axle, m.
const EGO_BACK = 0.9, EGO_FRONT = 3.7, EGO_HALF_WIDTH = 0.95;
const byId = (id) => document.getElementById(id);

function canvasContext(canvas) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = GROUND;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  return ctx;
}

function trace(ctx, points, close) {
  points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  if (close) ctx.closePath();
}

function drawShape(ctx, shape) {
  ctx.beginPath();
  const p = shape.p;
  if (shape.k === "disc") {
    ctx.arc(p[0][0], p[0][1], Math.hypot(p[1][0] - p[0][0], p[1][1] - p[0][1]), 0, 2 * Math.PI);
  } else if (shape.k === "mesh") {
    for (let i = 0; i + 2 < p.length; i += 3) trace(ctx, p.slice(i, i + 3), true);
  } else if (shape.k === "lines") {
    for (let i = 0; i + 1 < p.length; i += 2) trace(ctx, p.slice(i, i + 2), false);
  } else {
    trace(ctx, p, shape.k === "area");
  }
  if (shape.k === "line" || shape.k === "lines") {
    ctx.strokeStyle = shape.c;
    ctx.lineWidth = 0.22;
    ctx.stroke();
    return;
  }
  ctx.fillStyle = shape.c;
  ctx.fill();
  if (shape.k === "mesh") {
    // The seams between triangles would show through.
    ctx.strokeStyle = shape.c;
    ctx.lineWidth = 0.1;
    ctx.stroke();
  } else if (shape.n !== "paint") {
    ctx.strokeStyle = "rgba(0,0,0,.55)";
    ctx.lineWidth = 0.15;
    ctx.stroke();
  }
}

function drawEgo(ctx, tick) {
  ctx.save();
  ctx.translate(tick.x, tick.y);
  ctx.rotate(tick.yaw);
  ctx.fillStyle = EGO;
  ctx.strokeStyle = "#fff";
  ctx.lineWidth = 0.25;
  ctx.beginPath();
  ctx.roundRect(-EGO_BACK, -EGO_HALF_WIDTH, EGO_BACK + EGO_FRONT, 2 * EGO_HALF_WIDTH, 0.5);
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}

function drawPath(ctx, points, color, width) {
  ctx.beginPath();
  trace(ctx, points, false);
  ctx.strokeStyle = color;
  ctx.lineWidth = width;
  ctx.lineJoin = ctx.lineCap = "round";
  ctx.stroke();
}

function drawMoment(canvas, tick) {
  const ctx = canvasContext(canvas);
  const scale = canvas.height / 62;
  // The ego drives up the picture and stands in its lower part.
  ctx.translate(canvas.width / 2, canvas.height * 0.8);
  ctx.scale(scale, -scale);
  ctx.rotate(Math.PI / 2 - tick.yaw);
  ctx.translate(-tick.x, -tick.y);
  tick.shapes.forEach((i) => drawShape(ctx, DRIVE.shapes[i]));
  drawPath(ctx, DRIVE.scenes[tick.scene].path.filter((p) => p[0] <= tick.t).map((p) => p.slice(1)), css("--driven"), 0.3);
  drawPath(ctx, [[tick.x, tick.y], ...tick.plan], PLAN, 0.7);
  drawEgo(ctx, tick);
}

function drawScene(canvas, scene, ticks) {
  const ctx = canvasContext(canvas);
  const path = scene.path;
  const first = path[0], last = path[path.length - 1];
  const along = Math.atan2(last[2] - first[2], last[1] - first[1]);
  const turned = path.map(([, x, y]) => [
    x * Math.cos(along) + y * Math.sin(along), y * Math.cos(along) - x * Math.sin(along)]);
  const xs = turned.map((p) => p[0]), ys = turned.map((p) => p[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min(canvas.width / (x1 - x0 + 24), canvas.height / (y1 - y0 + 30));
  ctx.translate(canvas.width / 2, canvas.height / 2);
  ctx.scale(scale, -scale);
  ctx.translate(-(x0 + x1) / 2, -(y0 + y1) / 2);
  ctx.rotate(-along);
  if (ticks.length) ticks[ticks.length - 1].shapes.forEach((i) => drawShape(ctx, DRIVE.shapes[i]));
  ticks.forEach((tick, n) => {
    const until = n + 1 < ticks.length ? ticks[n + 1].t : Infinity;
    const piece = path.filter((p) => p[0] >= tick.t - 0.06 && p[0] <= until + 0.06).map((p) => p.slice(1));
    drawPath(ctx, piece, css(`--${tick.decision}`), Math.max(1.0, 4 / scale));
  });
  if (ticks.length) drawEgo(ctx, { x: last[1], y: last[2], yaw: last[3] });
}

function show(index) {
  const tick = DRIVE.ticks[index];
  if (!tick) return;
  DRIVE.cameras.slice(0, 2).forEach((camera, i) => {
    const picture = byId(`picture-${i}`);
    picture.src = DRIVE.pictures[tick.pictures[camera]] || "";
    picture.hidden = !(camera in tick.pictures);
  });
  byId("words").innerHTML = `<span class="badge ${tick.decision}">${tick.decision}</span>`;
  byId("words").append(tick.words || "(no rationale)");
  byId("facts").textContent =
    `${DRIVE.scenes[tick.scene].title}   t0 ${tick.t.toFixed(1)} s   ${tick.speed.toFixed(1)} m/s` +
    (tick.ms ? `   ${tick.ms.toFixed(0)} ms` : "") + (tick.reference ? `   reference: ${tick.reference}` : "");
  drawMoment(byId("map"), tick);
  document.querySelectorAll("svg.timeline").forEach((chart) => moveCursor(chart, tick.t));
}

function timeAxis(chart) {
  const [left, right, from, to] = ["left", "right", "from", "to"].map((name) => Number(chart.dataset[name]));
  return { left, from, perPixel: (to - from) / (chart.viewBox.baseVal.width - left - right) };
}

function moveCursor(chart, time) {
  const axis = timeAxis(chart);
  const cursor = chart.querySelector(".cursor") ||
    chart.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  const x = axis.left + (time - axis.from) / axis.perPixel;
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("d", `M${x},22V${chart.viewBox.baseVal.height - 34}`);
}

function tickAt(chart, event) {
  const axis = timeAxis(chart), box = chart.getBoundingClientRect();
  const x = (event.clientX - box.left) * chart.viewBox.baseVal.width / box.width;
  const time = axis.from + (x - axis.left) * axis.perPixel;
  const apart = DRIVE.ticks.map((tick) => Math.abs(tick.t - time));
  return apart.indexOf(Math.min(...apart));
}

function playFrom(slider, button) {
  let timer = 0;
  const step = () => {
    const index = (Number(slider.value) + 1) % DRIVE.ticks.length;
    slider.value = index;
    show(index);
  };
  button.onclick = () => {
    timer = timer ? (clearInterval(timer), 0) : setInterval(step, 500);
    button.textContent = timer ? "Pause" : "Play";
  };
}

function start() {
  const slider = byId("tick");
  slider.max = Math.max(DRIVE.ticks.length - 1, 0);
  slider.oninput = () => show(Number(slider.value));
  playFrom(slider, byId("play"));
  const canvases = DRIVE.scenes.map((scene) => {
    const figure = byId("maps").appendChild(document.createElement("figure"));
    const canvas = figure.appendChild(document.createElement("canvas"));
    figure.appendChild(document.createElement("figcaption")).textContent = scene.title;
    return canvas;
  });
  // Drawn when all are in place, as each changes the size of the others.
  DRIVE.scenes.forEach((scene, number) => {
    drawScene(canvases[number], scene, DRIVE.ticks.filter((tick) => tick.scene === number));
  });
  document.querySelectorAll("svg.timeline").forEach((chart) => {
    chart.onclick = (event) => {
      slider.value = tickAt(chart, event);
      show(Number(slider.value));
    };
  });
  document.querySelectorAll(".frame").forEach((frame) => {
    const index = Number(frame.dataset.tick);
    frame.querySelector("img").src = DRIVE.pictures[DRIVE.ticks[index].pictures[DRIVE.cameras[0]]] || "";
    frame.onclick = () => {
      slider.value = index;
      show(index);
      byId("map").scrollIntoView({ block: "center", behavior: "smooth" });
    };
  });
  const opening = Number(new URLSearchParams(location.search).get("tick") || DRIVE.opening);
  slider.value = opening;
  show(opening);
}

start();
