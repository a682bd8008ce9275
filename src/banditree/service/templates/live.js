"use strict";
// Names come from the catalogue: they go into the page as text, never as HTML.
{
  const COLOURS = ["#2a6fdb", "#e07b39", "#3a9d5d", "#b8458b", "#8a6fd1", "#c2a21d", "#3fa7b5", "#d1495b", "#7a8793", "#5b7f2b"];
  const SHOWN = 20, CHILDREN = 50;
  const at = (id) => document.getElementById(id);
  const open = new Set([""]);
  const latest = new Map();
  let token = sessionStorage.getItem("banditree-token") || "";
  let last = "", decisions = 0, stale = true, nodes = [];

  const make = (name, text, cls) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (cls) element.className = cls;
    return element;
  };
  const short = (x) => (x === null || x === undefined ? "" : Number(x).toPrecision(3).replace(/\.?0+$/, ""));
  const count = (x) => Number(Math.round(x * 10) / 10).toLocaleString("en");
  const ask = (path, more) => {
    const headers = { ...(token ? { authorization: "Bearer " + token } : {}), ...more };
    return fetch(path, { headers, cache: "no-store" });
  };
  const getJson = async (path) => {
    const answer = await ask(path);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  };

  const key = (path) => JSON.stringify(path);
  function showTree() {
    const below = new Map(), root = nodes.find((node) => node.path.length === 0);
    for (const node of nodes) {
      if (!node.path.length) continue;
      const parent = key(node.path.slice(0, -1));
      if (!below.has(parent)) below.set(parent, []);
      below.get(parent).push(node);
    }
    const rows = [], total = Math.max(root ? root.plays : 0, 1);
    const add = (parent, depth) => {
      const children = (below.get(parent) || []).slice().sort((a, b) => b.plays - a.plays);
      for (const node of children.slice(0, CHILDREN)) {
        const mine = key(node.path), name = node.path[node.path.length - 1], row = make("tr");
        const cell = make("td", undefined, "name");
        cell.style.paddingLeft = 0.5 + depth + "rem";
        if (below.has(mine)) {
          const button = make("button", name);
          button.setAttribute("aria-expanded", String(open.has(mine)));
          button.onclick = () => { open.has(mine) ? open.delete(mine) : open.add(mine); showTree(); };
          cell.append(button);
        } else cell.textContent = name;
        const bar = make("span", undefined, "bar"), track = make("td", undefined, "track");
        bar.style.width = (100 * node.plays) / total + "%";
        track.append(bar);
        const interval = node.interval ? node.interval.map(short).join(" – ") : "";
        row.append(cell, make("td", count(node.plays), "number"), track, make("td", short(node.mean), "number"), make("td", interval, "number"));
        rows.push(row);
        if (open.has(mine)) add(mine, depth + 1);
      }
      if (children.length > CHILDREN) {
        const row = make("tr"), cell = make("td", `and ${children.length - CHILDREN} more`, "soft");
        cell.colSpan = 5;
        row.append(cell);
        rows.push(row);
      }
    };
    add("[]", 0);
    at("tree").replaceChildren(...rows);
    if (root) {
      at("plays").textContent = count(root.plays);
      at("rate").textContent = root.plays ? short(root.reward / root.plays) : "–";
      at("arms").textContent = count(nodes.filter((node) => !below.has(key(node.path)) && node.path.length).length);
    }
    const leaves = nodes.filter((node) => node.path.length && !below.has(key(node.path)) && node.plays > 0);
    const groups = nodes.filter((node) => node.path.length === 1 && below.has(key(node.path)) && node.plays > 0);
    const best = (list) => list.reduce((a, b) => (b.mean > a.mean ? b : a));
    const said = (node) => `${node.path.join(" / ")} earns ${short(node.mean)} per play` +
      (node.interval ? ` (95% interval ${node.interval.map(short).join(" to ")})` : "") + `, after ${count(node.plays)} plays`;
    const sentences = [];
    if (groups.length > 1) sentences.push(`Best category so far: ${said(best(groups))}.`);
    if (leaves.length) sentences.push(`Best arm so far: ${said(best(leaves))}.`);
    at("learned").textContent = sentences.join(" ") || "Nothing yet: no reward has come in.";
  }

  function showTraffic(traffic) {
    const names = Object.keys(traffic.categories), size = names.length ? traffic.categories[names[0]].length : 0;
    const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", "0 0 600 160");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Share of traffic per category over time");
    const width = 600 / Math.max(size, 1);
    for (let i = 0; i < size; i++) {
      const total = names.reduce((sum, name) => sum + traffic.categories[name][i], 0);
      let y = 160;
      names.forEach((name, place) => {
        const height = total ? (160 * traffic.categories[name][i]) / total : 0;
        if (!height) return;
        y -= height;
        const rect = document.createElementNS(NS, "rect");
        const shape = { x: i * width, y, width: Math.max(width - 1, 0.5), height, fill: COLOURS[place % COLOURS.length] };
        for (const [what, value] of Object.entries(shape)) rect.setAttribute(what, value);
        svg.append(rect);
      });
    }
    at("traffic").replaceChildren(svg);
    at("legend").replaceChildren(...names.map((name, place) => {
      const item = make("li"), colour = make("i");
      colour.style.background = COLOURS[place % COLOURS.length];
      item.append(colour, document.createTextNode(name));
      return item;
    }));
    at("span").textContent = size ? `Each bar is ${count(traffic.seconds)} s, from ${traffic.start.slice(0, 19).replace("T", " ")} UTC.` : "No decision yet.";
  }

  function showLatest() {
    const rows = [...latest.values()].reverse().map((decision) => {
      const row = make("tr"), reward = decision.reward === undefined ? "" : short(decision.reward) || "0";
      row.append(make("td", decision.at.slice(11, 19), "number"), make("td", decision.path.join(" / "), "name"),
        make("td", short(decision.propensity), "number"), make("td", reward, "number"));
      return row;
    });
    at("latest").replaceChildren(...rows);
    at("decisions").textContent = count(decisions);
  }

  const heard = {
    decision(event) {
      decisions += 1;
      latest.set(event.id, event);
      while (latest.size > SHOWN) latest.delete(latest.keys().next().value);
    },
    reward(event) {
      if (latest.has(event.id) && event.position === 0) latest.get(event.id).reward = event.reward;
    },
    arms() {},
  };
  function hear(block) {
    let name = "", data = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) last = line.slice(4);
      else if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (!(name in heard) || !data) return;
    heard[name](JSON.parse(data));
    stale = true;
  }

  const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
  async function listen() {
    for (;;) {
      try {
        const answer = await ask("/v1/events", last ? { "last-event-id": last } : {});
        if (answer.status === 401) { stop("That is not the token of this service."); return; }
        if (!answer.ok) throw new Error(String(answer.status));
        at("state").textContent = "live";
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
  async function refresh() {
    for (;;) {
      if (!token && document.body.dataset.token === "yes") return;
      if (stale && !document.hidden) {
        stale = false;
        try {
          nodes = (await getJson("/v1/tree")).nodes;
          showTraffic(await getJson("/v1/traffic"));
          showTree();
          showLatest();
        } catch (error) { stale = true; }
      }
      await pause(nodes.length > 2000 ? 10 : 1);
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
    const answer = await ask("/v1/traffic");
    if (!answer.ok) { stop("That is not the token of this service."); return; }
    sessionStorage.setItem("banditree-token", token);
    at("wrong").textContent = "";
    start();
  };
  if (document.body.dataset.token === "yes" && !token) stop("");
  else start();
}
