
// Mail for the sessions of OpenCode: many in one process, some of them helpers of another.
const HARNESS = "opencode";
const waiters = new Map(); // session -> the process that waits beside it
const roots = new Map(); // session -> the one that it is a helper of, or itself
const started = new Set();

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
    waiters.set(session, waitBeside(event("Stop", session), (text) =>
      client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text, synthetic: true }] } })));
  }

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
      if (!input.tool.startsWith("mailroom_")) return;
      delete output.args.mailroom_session; // what the model wrote there is nobody
      output.args.mailroom_session = "opencode-" + (await rootOf(input.sessionID));
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
