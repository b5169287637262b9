// What our plugins share. Events go in, text comes out; `mailroom hook HARNESS` decides what is told to whom. Whatever fails is nothing but
// silence: the user's prompt goes on, and no call takes longer than five seconds.
import { spawn } from "node:child_process";

const COMMAND = ["mailroom"];
const LIMIT_MS = 5000;

function start(args, event) {
  const child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", HARNESS, ...args], { cwd: event.cwd, stdio: ["pipe", "pipe", "pipe"] });
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  child.stdin.end(JSON.stringify(event));
  return child;
}

// What the hook answers, as text for the model; "" for nothing.
function ask(event) {
  return new Promise((resolve) => {
    let out = "", child;
    const end = () => {
      clearTimeout(timer);
      try { resolve(JSON.parse(out).hookSpecificOutput?.additionalContext ?? ""); } catch { resolve(""); }
    };
    const timer = setTimeout(() => { out = ""; child?.kill(); end(); }, LIMIT_MS);
    try {
      child = start([], event);
      child.stdout.on("data", (part) => (out += part));
      child.on("error", end);
      child.on("close", end);
    } catch { end(); }
  });
}

// A process that waits for mail beside an idle session, until it is killed; ring(text) makes a prompt of what it says.
// That prompt has the user's voice, so it is nothing but the line of the bell, whatever else stands on stderr.
function waitBeside(event, ring) {
  const child = start(["--wait"], event);
  let text = "";
  child.stderr.on("data", (part) => (text += part));
  child.on("close", quietly((code) => {
    const line = code === 2 && text.split("\n").find((one) => /^mailroom bell [0-9a-f]{6}: /.test(one));
    return line ? ring(line.trim()) : undefined;
  }));
  return child;
}

// Nothing that goes wrong in fn is the user's concern.
const quietly = (fn) => async (...args) => { try { return await fn(...args); } catch { return undefined; } };
