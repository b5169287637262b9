// Mail for the sessions of Pi. Events go in, text comes out; `mailroom hook pi` decides what is told to whom. Whatever fails here is nothing
// but silence: the user's prompt goes on, and no call takes longer than five seconds.
import { spawn } from "node:child_process";

const COMMAND = ["mailroom"];
const LIMIT_MS = 5000;

export default function (pi) {
  let waiter; // the process that waits for mail while the session is idle
  let greeting = ""; // what the session was told at its start, for its first prompt

  const event = (name, ctx, more) => ({ hook_event_name: name, session_id: ctx.sessionManager.getSessionId(), cwd: ctx.cwd ?? process.cwd(), ...more });

  function start(args, e) {
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", "pi", ...args], { cwd: e.cwd, stdio: ["pipe", "pipe", "pipe"] });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(e));
    return child;
  }

  // What the hook answers, as text for the model; "" for nothing.
  function ask(e) {
    return new Promise((resolve) => {
      let out = "", child;
      const end = () => {
        clearTimeout(timer);
        try { resolve(JSON.parse(out).hookSpecificOutput?.additionalContext ?? ""); } catch { resolve(""); }
      };
      const timer = setTimeout(() => { out = ""; child?.kill(); end(); }, LIMIT_MS);
      try {
        child = start([], e);
        child.stdout.on("data", (part) => (out += part));
        child.on("error", end);
        child.on("close", end);
      } catch { end(); }
    });
  }

  function stopWaiting() {
    waiter?.kill();
    waiter = undefined;
  }

  function wait(ctx) {
    stopWaiting();
    const child = start(["--wait"], event("Stop", ctx));
    let ring = "";
    waiter = child;
    child.on("error", () => {});
    child.stderr.on("data", (part) => (ring += part));
    child.on("close", (code) => {
      if (waiter === child) waiter = undefined;
      try { if (code === 2 && ring.trim()) pi.sendUserMessage(ring.trim()); } catch { /* silence */ }
    });
  }

  const quietly = (fn) => async (...args) => { try { return await fn(...args); } catch { return undefined; } };

  pi.on("session_start", quietly(async (e, ctx) => {
    greeting = await ask(event("SessionStart", ctx, { source: e.reason === "new" ? "clear" : e.reason === "resume" ? "resume" : "startup" }));
    if (ctx.mode === "tui") wait(ctx);
  }));
  pi.on("before_agent_start", quietly(async (e, ctx) => {
    stopWaiting();
    const text = [greeting, await ask(event("UserPromptSubmit", ctx, { prompt: e.prompt ?? "-" }))].filter(Boolean).join("\n\n");
    greeting = "";
    return text ? { message: { customType: "mailroom", content: text, display: false } } : undefined;
  }));
  pi.on("tool_result", quietly(async (e, ctx) => {
    const text = await ask(event("PostToolUse", ctx, { tool_name: e.toolName }));
    return text ? { content: [...e.content, { type: "text", text }] } : undefined;
  }));
  pi.on("agent_settled", quietly(async (e, ctx) => {
    await ask(event("Stop", ctx, { stop_hook_active: true }));
    if (ctx.mode === "tui") wait(ctx);
  }));
  pi.on("session_shutdown", quietly(async (e, ctx) => {
    stopWaiting();
    await ask(event("SessionEnd", ctx, { reason: e.reason === "quit" ? "other" : "clear" }));
  }));
}
