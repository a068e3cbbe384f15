// The page's end: sends, matches echoes with what was sent, comes back when the connection ends.
"use strict";

const element = (id) => document.getElementById(id);
const show = (id, text) => { element(id).textContent = text; };
const shown = 6; // echoes listed
const kept = 1000; // round trips that the median is taken of

let socket;
let waiting = []; // what was sent and has not come back, in order
let trips = [];
let echoes = 0;
let retry = 250; // ms

function open() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  socket.onopen = () => {
    retry = 250;
    show("state", "open");
    say("hello");
  };
  socket.onmessage = ({ data }) => heard(data);
  socket.onclose = ({ code }) => {
    waiting = [];
    show("state", `closed, ${code}`);
    setTimeout(open, retry);
    retry = Math.min(retry * 2, 5000);
  };
}

function say(words) {
  if (socket.readyState !== WebSocket.OPEN) return;
  waiting.push({ words, at: performance.now() });
  socket.send(words);
}

function heard(words) {
  const sent = waiting.shift();
  const ms = performance.now() - sent.at;
  trips = [...trips, ms].slice(-kept);
  show("echoes", ++echoes);
  show("median", `${median(trips).toFixed(2)} ms`);
  list(words === sent.words ? words : `${words} (not what was sent)`, ms);
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function list(words, ms) {
  const item = document.createElement("li");
  for (const [tag, text] of [["code", `${ms.toFixed(2)} ms`], ["span", words]]) {
    item.append(Object.assign(document.createElement(tag), { textContent: text }));
  }
  element("log").prepend(item);
  while (element("log").children.length > shown) element("log").lastChild.remove();
}

element("say").addEventListener("submit", (event) => {
  event.preventDefault();
  if (element("words").value) say(element("words").value);
  element("words").value = "";
});
element("burst").addEventListener("click", () => {
  for (let i = 1; i <= 100; i++) say(`message ${i} of 100`);
});
open();
