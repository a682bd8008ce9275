"use strict";
// Names come from the catalogue: they go into the page as text, never as HTML.
{
  const COLOURS = ["#2a6fdb", "#e07b39", "#3a9d5d", "#b8458b", "#8a6fd1", "#c2a21d", "#3fa7b5", "#d1495b", "#7a8793", "#5b7f2b"];
  const SHOWN = 20, CHILDREN = 50;
  const NS = "http://www.w3.org/2000/svg";
  const at = (id) => document.getElementById(id);
  const open = new Set(), below = new Map(), latest = new Map();
  let token = sessionStorage.getItem("banditree-token") || "";
  let last = "", stale = true, reported = 0, root = null, experiment = "", known = [];

  const make = (name, text, cls) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (cls) element.className = cls;
    return element;
  };
  const tableRow = (...cells) => {
    const row = make("tr");
    row.append(...cells);
    return row;
  };
  const word = (text) => make("td", text, "word"), number = (text) => make("td", text, "number");
  const mark = (share) => {
    const bar = make("span", undefined, "bar"), cell = make("td", undefined, "mark");
    bar.style.width = 100 * share + "%";
    cell.append(bar);
    return cell;
  };
  const draw = (name, shape) => {
    const element = document.createElementNS(NS, name);
    for (const [what, value] of Object.entries(shape)) element.setAttribute(what, value);
    return element;
  };
  const short = (x) => {
    if (x === null || x === undefined) return "";
    const text = Number(x).toPrecision(3);
    return text.includes("e") ? text : text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  };
  const count = (x) => Number(Math.round(x * 10) / 10).toLocaleString("en");
  const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
  const percent = (x) => (x > 0.995 && x < 1 ? ">99%" : x < 0.005 && x > 0 ? "<1%" : `${Math.round(100 * x)}%`);
  const ask = (path, more) => {
    const headers = { ...(token ? { authorization: "Bearer " + token } : {}), ...more };
    return fetch(path, { headers, cache: "no-store" });
  };
  const getJson = async (path) => {
    const answer = await ask(path);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  };
  const base = () => `/v1/experiments/${encodeURIComponent(experiment)}`;
  const key = (path) => JSON.stringify(path);

  // The tree: only the children of open clusters are fetched
  async function fetchBelow(path) {
    const [node, ...children] = (await getJson(`${base()}/tree?depth=1&under=${encodeURIComponent(key(path))}`)).nodes;
    below.set(key(path), children);
    return node;
  }
  function treeRow(node, depth, name) {
    const cell = word(undefined), mine = key(node.path);
    cell.style.paddingLeft = depth + "rem";
    if (node.children) {
      const button = make("button", name);
      button.setAttribute("aria-expanded", String(open.has(mine)));
      button.onclick = async () => {
        if (open.has(mine)) open.delete(mine);
        else { open.add(mine); await fetchBelow(node.path); }
        showTree();
      };
      cell.append(button);
    } else cell.textContent = name;
    const interval = node.interval ? node.interval.map(short).join(" – ") : "";
    const earned = node.plays ? short(node.reward / node.plays) : "–";
    return tableRow(cell, number(count(node.plays)), mark(node.plays / Math.max(root.plays, 1)), number(earned),
      number(short(node.mean)), make("td", interval, "number wide"));
  }
  const note = (text) => {
    const cell = make("td", text, "note");
    cell.colSpan = 6;
    return tableRow(cell);
  };
  function showTree() {
    const rows = [];
    const add = (path, depth) => {
      const children = (below.get(key(path)) || []).slice().sort((a, b) => b.plays - a.plays);
      for (const node of children.slice(0, CHILDREN)) {
        rows.push(treeRow(node, depth, node.path[node.path.length - 1]));
        if (open.has(key(node.path))) add(node.path, depth + 1);
      }
      if (children.length > CHILDREN) rows.push(note(`and ${count(children.length - CHILDREN)} more; search for them above`));
    };
    add([], 0);
    at("tree").replaceChildren(...rows);
  }
  async function search() {
    const text = at("search").value.trim();
    if (!text) { showTree(); return; }
    const matches = (await getJson(`${base()}/tree?search=${encodeURIComponent(text)}`)).nodes;
    if (at("search").value.trim() !== text) return;
    matches.sort((a, b) => b.plays - a.plays);
    const rows = matches.slice(0, CHILDREN).map((node) => treeRow(node, 0, node.path.join(" / ")));
    if (matches.length > CHILDREN) rows.push(note(`and ${count(matches.length - CHILDREN)} more`));
    if (!matches.length) rows.push(note("Nothing has this in its name."));
    at("tree").replaceChildren(...rows);
  }

  // What was learned, and what it is worth
  function showPlays() {
    at("plays").textContent = count(root.plays);
    at("rate").textContent = root.plays ? short(root.reward / root.plays) : "–";
    if (!at("search").value.trim()) showTree();
  }
  function showLearned(report) {
    const groups = (below.get("[]") || []).filter((node) => node.children && node.plays > 0);
    const sentences = [];
    if (groups.length > 1) {
      const earned = (node) => node.reward / node.plays;
      const best = groups.reduce((a, b) => (earned(b) > earned(a) ? b : a));
      sentences.push(`Best category so far: ${best.path[0]} has earned ${short(earned(best))} per reward, after ${plural(best.plays, "reward")}; ` +
        `a typical item of it is expected to earn ${short(best.mean)}.`);
    }
    const said = report.sentences.filter((sentence) => !report.lift || sentence !== report.lift.sentence);
    if (root.plays) sentences.push(...said);
    at("learned").textContent = sentences.join(" ") || "Nothing yet: no reward has come in. Below are the items that it chooses from.";
    const best = (report.best || []).filter((item) => item.chance >= 0.005);
    at("best").hidden = !root.plays || !best.length;
    at("best").tBodies[0].replaceChildren(...best.map((item) => tableRow(word(item.arm), number(percent(item.chance)), mark(item.chance))));
  }
  function showWorth(report, traffic) {
    const names = Object.keys(report.groups);
    at("worth").textContent = report.lift ? report.lift.sentence
      : "There is no control group, so nobody can tell. Start the service with --control 0.1 to find out.";
    at("groups").hidden = at("by-group").hidden = !report.lift;
    at("groups").tBodies[0].replaceChildren(...names.map((name) => {
      const group = report.groups[name], reward = group.reward === null ? "–" : short(group.reward);
      return tableRow(word(name), number(count(group.decisions)), number(count(group.units)), number(reward));
    }));
    const lifts = traffic.lift.concat(report.lift && report.lift.interval ? [report.lift] : []);
    chart("lift", report.lift ? [{ cls: "policy", values: lifts.map((x) => x && x.difference), low: lifts.map((x) => x && x.interval[0]), high: lifts.map((x) => x && x.interval[1]) }] : []);
    const lines = Object.entries(traffic.groups).map(([name, group]) => ({
      cls: name, values: group.decisions.map((d, i) => (d ? group.rewards[i] / d : null)) }));
    chart("over-time", report.lift || lines.some((line) => line.values.some((x) => x)) ? lines : []);
    const settings = Object.entries(report.settings).map(([name, value]) => `${name.replaceAll("_", " ")}: ${typeof value === "object" ? JSON.stringify(value) : value}`);
    at("settings").textContent = settings.join(" · ");
  }
  function chart(id, lines) {
    const figure = at(id).parentElement, all = lines.flatMap((line) => [...line.values, ...(line.low || []), ...(line.high || [])]).filter((x) => x !== null && x !== undefined);
    figure.hidden = !lines.some((line) => line.values.filter((x) => x !== null && x !== undefined).length > 1);
    if (figure.hidden) return;
    const WIDTH = 600, HEIGHT = 180, LEFT = 100, size = Math.max(...lines.map((line) => line.values.length), 2);
    let low = Math.min(0, ...all), high = Math.max(0, ...all);
    if (high === low) high = low + 1;
    const x = (i) => LEFT + ((WIDTH - LEFT - 6) * i) / (size - 1), y = (value) => 8 + ((HEIGHT - 16) * (high - value)) / (high - low);
    const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": figure.querySelector("figcaption").textContent });
    for (const value of [low, 0, high].filter((v, i, list) => list.indexOf(v) === i)) {
      svg.append(draw("line", { x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value), class: value === 0 ? "zero" : "grid" }));
      const text = draw("text", { x: LEFT - 8, y: y(value) + 6, "text-anchor": "end" });
      text.textContent = short(value);
      svg.append(text);
    }
    for (const line of lines) {
      const there = line.values.map((value, i) => [value, i]).filter(([value]) => value !== null && value !== undefined);
      if (line.low) {
        const ends = [...there.map(([, i]) => `${x(i)},${y(line.high[i])}`), ...there.map(([, i]) => `${x(i)},${y(line.low[i])}`).reverse()];
        svg.append(draw("polygon", { points: ends.join(" "), class: "band" }));
      }
      svg.append(draw("polyline", { points: there.map(([value, i]) => `${x(i)},${y(value)}`).join(" "), class: "line " + line.cls }));
    }
    at(id).replaceChildren(svg);
  }

  function showTraffic(traffic) {
    const names = Object.keys(traffic.categories), size = names.length ? traffic.categories[names[0]].length : 0;
    const svg = draw("svg", { viewBox: "0 0 600 160", role: "img", "aria-label": "Share of traffic per category over time" });
    const width = 600 / Math.max(size, 1);
    for (let i = 0; i < size; i++) {
      const total = names.reduce((sum, name) => sum + traffic.categories[name][i], 0);
      let y = 160;
      names.forEach((name, place) => {
        const height = total ? (160 * traffic.categories[name][i]) / total : 0;
        if (!height) return;
        y -= height;
        svg.append(draw("rect", { x: i * width, y, width: Math.max(width - 1, 0.5), height, fill: COLOURS[place % COLOURS.length] }));
      });
    }
    at("traffic").replaceChildren(...(size ? [svg] : []));
    at("legend").replaceChildren(...names.map((name, place) => {
      const item = make("li"), colour = make("i");
      colour.style.background = COLOURS[place % COLOURS.length];
      item.append(colour, document.createTextNode(name));
      return item;
    }));
    at("span").textContent = size ? `Each bar is ${count(traffic.seconds)} s, from ${traffic.start.slice(0, 19).replace("T", " ")} UTC.` : "No decision yet.";
  }

  function showLatest() {
    const rows = [...latest.values()].filter((decision) => decision.experiment === experiment).reverse().map((decision) => {
      const time = make("td", decision.at.slice(11, 19), "word time");
      return tableRow(time, word(decision.path.join(" / ")), number(short(decision.propensity)), number(short(decision.reward)));
    });
    at("latest").replaceChildren(...rows);
  }

  function showExperiments() {
    const mine = known.find((item) => item.name === experiment);
    at("list").hidden = known.length < 2;
    at("experiments").replaceChildren(...known.map((item) => {
      const cell = word(undefined), link = make("a", item.name + (item.paused ? " (paused)" : ""));
      link.href = "#" + encodeURIComponent(item.name);
      if (item.name === experiment) link.setAttribute("aria-current", "page");
      cell.append(link);
      return tableRow(cell, word(item.policy), number(count(item.arms)), number(count(item.decisions)));
    }));
    if (!mine) return;
    at("about").textContent = `${mine.name === "main" ? "" : mine.name + " · "}${mine.policy}${mine.paused ? " · paused" : ""} · `;
    at("decisions").textContent = count(mine.decisions);
    at("arms").textContent = count(mine.arms);
  }
  function chosen() {
    const wanted = decodeURIComponent(location.hash.slice(1));
    const name = [wanted, "main", known.length ? known[0].name : ""].find((name) => known.some((item) => item.name === name)) || "";
    if (name !== experiment) { open.clear(); below.clear(); reported = 0; at("search").value = ""; }
    experiment = name;
  }

  const heard = {
    decision(event) {
      latest.set(event.id, event);
      while (latest.size > SHOWN) latest.delete(latest.keys().next().value);
    },
    reward(event) {
      if (latest.has(event.id) && event.position === 0) latest.get(event.id).reward = event.reward;
    },
  };
  function hear(block) {
    let name = "", data = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) last = line.slice(4);
      else if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (!data) return;
    if (name in heard) heard[name](JSON.parse(data));
    else reported = 0;
    stale = true;
  }

  const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
  async function listen() {
    for (;;) {
      try {
        if (!last) last = String(Math.max(0, (await getJson("/readyz")).events - 3 * SHOWN));
        const answer = await ask("/v1/events", last ? { "last-event-id": last } : {});
        if (answer.status === 401 || answer.status === 403) { stop("That is not a token that may read."); return; }
        if (!answer.ok) throw new Error(String(answer.status));
        at("state").textContent = "live";
        stale = true;
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          const blocks = (text + value).split("\n\n");
          text = blocks.pop();
          blocks.forEach(hear);
        }
      } catch (error) { /* tried again below */ }
      at("state").textContent = "not connected; trying again";
      await pause(1);
    }
  }
  let report = null;
  async function refresh() {
    for (;;) {
      if (!token && document.body.dataset.token === "yes") return;
      if (stale && !document.hidden) {
        stale = false;
        try {
          known = (await getJson("/v1/experiments")).experiments;
          chosen();
          showExperiments();
          if (experiment) {
            root = await fetchBelow([]);
            for (const path of [...open]) await fetchBelow(JSON.parse(path)).catch(() => open.delete(path));
            const traffic = await getJson(base() + "/traffic");
            showPlays();
            showTraffic(traffic);
            showLatest();
            if (Date.now() - reported > 4000) { report = await getJson(base() + "/report"); reported = Date.now(); }
            else stale = true;
            showWorth(report, traffic);
            showLearned(report);
          }
        } catch (error) { stale = true; }
      }
      await pause(1);
    }
  }
  function stop(why) {
    token = "";
    sessionStorage.removeItem("banditree-token");
    at("main").hidden = true;
    at("ask").hidden = false;
    at("wrong").textContent = why;
    at("state").textContent = "waiting for the token";
  }
  function start() {
    at("ask").hidden = true;
    at("main").hidden = false;
    stale = true;
    listen();
    refresh();
  }
  at("ask").onsubmit = async (event) => {
    event.preventDefault();
    token = at("token").value;
    const answer = await ask("/v1/experiments");
    if (!answer.ok) { stop("That is not a token that may read."); return; }
    sessionStorage.setItem("banditree-token", token);
    at("wrong").textContent = "";
    start();
  };
  at("search").oninput = () => search().catch(() => {});
  window.onhashchange = () => { stale = true; };
  if (document.body.dataset.token === "yes" && !token) stop("");
  else start();
}
