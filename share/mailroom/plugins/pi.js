
// Mail for a session of Pi.
const HARNESS = "pi";

export default function (pi) {
  let waiter; // the process that waits while the session is idle
  let greeting = ""; // what the session was told at its start, for its first prompt

  const event = (name, ctx, more) => ({ hook_event_name: name, session_id: ctx.sessionManager.getSessionId(), cwd: ctx.cwd ?? process.cwd(), ...more });

  function wait(ctx) {
    waiter?.kill();
    if (ctx.mode === "tui") waiter = waitBeside(event("Stop", ctx), (text) => pi.sendUserMessage(text));
  }

  pi.on("session_start", quietly(async (e, ctx) => {
    greeting = await ask(event("SessionStart", ctx, { source: e.reason === "new" ? "clear" : e.reason === "resume" ? "resume" : "startup" }));
    wait(ctx);
  }));
  pi.on("before_agent_start", quietly(async (e, ctx) => {
    waiter?.kill();
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
    wait(ctx);
  }));
  pi.on("session_shutdown", quietly(async (e, ctx) => {
    waiter?.kill();
    await ask(event("SessionEnd", ctx, { reason: e.reason === "quit" ? "other" : "clear" }));
  }));
}
