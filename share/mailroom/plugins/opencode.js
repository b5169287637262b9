// Mail for the sessions of OpenCode. Events go in, text comes out; `mailroom hook opencode` decides what is told to whom. Whatever fails
// here is nothing but silence: the user's prompt goes on, and no call takes longer than five seconds.
import { spawn } from "node:child_process";

const COMMAND = ["mailroom"];
const LIMIT_MS = 5000;
const waiters = new Map(); // session -> the process that waits for mail beside it while it is idle
const roots = new Map(); // session -> the one that it is a helper of, or itself
const started = new Set();

function start(args, event) {
  const child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", "opencode", ...args], { cwd: event.cwd, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => {});
  child.stdin.end(JSON.stringify(event));
  return child;
}

// What the hook answers, as text for the model; "" for nothing.
function ask(event) {
  return new Promise((resolve) => {
    let out = "";
    const end = () => {
      clearTimeout(timer);
      try { resolve(JSON.parse(out).hookSpecificOutput?.additionalContext ?? ""); } catch { resolve(""); }
    };
    const timer = setTimeout(() => { out = ""; child?.kill(); end(); }, LIMIT_MS);
    let child;
    try {
      child = start([], event);
      child.stdout.on("data", (part) => (out += part));
      child.on("error", end);
      child.on("close", end);
    } catch { end(); }
  });
}

function stopWaiting(session) {
  waiters.get(session)?.kill();
  waiters.delete(session);
}

export const MailroomPlugin = async ({ client, directory }) => {
  const event = (name, session, more) => ({ hook_event_name: name, session_id: session, cwd: directory, ...more });

  async function rootOf(session) {
    if (!roots.has(session)) {
      const found = await client.session.get({ path: { id: session } });
      roots.set(session, found.data?.parentID ? await rootOf(found.data.parentID) : session);
    }
    return roots.get(session);
  }

  function wait(session) {
    stopWaiting(session);
    const child = start(["--wait"], event("Stop", session));
    let ring = "";
    waiters.set(session, child);
    child.on("error", () => {});
    child.stderr.on("data", (part) => (ring += part));
    child.on("close", (code) => {
      if (waiters.get(session) === child) waiters.delete(session);
      if (code === 2 && ring.trim())
        client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text: ring.trim(), synthetic: true }] } }).catch(() => {});
    });
  }

  // Nothing that goes wrong in here is the user's concern.
  const quietly = (fn) => async (...args) => { try { await fn(...args); } catch { /* silence */ } };

  return {
    event: quietly(async ({ event: e }) => {
      const session = e.properties?.sessionID ?? e.properties?.info?.id;
      if (e.type === "session.idle" && (await rootOf(session)) === session) {
        await ask(event("Stop", session, { stop_hook_active: true }));
        wait(session);
      } else if (e.type === "session.deleted" && started.delete(session)) {
        stopWaiting(session);
        await ask(event("SessionEnd", session, { reason: "other" }));
      }
    }),
    "chat.message": quietly(async (input, output) => {
      const session = input.sessionID;
      if ((await rootOf(session)) !== session) return;
      stopWaiting(session);
      const prompt = output.parts.filter((p) => p.type === "text").map((p) => p.text).join("\n");
      const texts = [];
      if (!started.has(session)) {
        started.add(session);
        texts.push(await ask(event("SessionStart", session, { source: "startup" })));
      }
      texts.push(await ask(event("UserPromptSubmit", session, { prompt })));
      for (const text of texts.filter(Boolean))
        output.parts.push({ id: "prt_mailroom" + Math.random().toString(36).slice(2), sessionID: session, messageID: output.message.id, type: "text", text, synthetic: true });
    }),
    "tool.execute.before": quietly(async (input, output) => {
      if (input.tool.startsWith("mailroom_")) output.args.mailroom_session = "opencode-" + (await rootOf(input.sessionID));
    }),
    "tool.execute.after": quietly(async (input, output) => {
      const session = input.sessionID;
      if ((await rootOf(session)) !== session || typeof output.output !== "string") return;
      const text = await ask(event("PostToolUse", session, { tool_name: input.tool }));
      if (text) output.output += "\n\n" + text;
    }),
    "shell.env": quietly(async (input, output) => {
      if (input.sessionID) output.env.MAILROOM_SESSION = "opencode-" + (await rootOf(input.sessionID));
    }),
    dispose: quietly(async () => { for (const session of [...waiters.keys()]) stopWaiting(session); }),
  };
};
