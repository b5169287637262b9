
// Wakes a session of Copilot CLI; its hooks tell the mail. Copilot runs extensions only where its user has switched "experimental" on.
import { joinSession } from "@github/copilot-sdk/extension";

const HARNESS = "copilot";
const session = await joinSession({});
let waiter; // the process that waits while the session is idle

function wait(name) {
  waiter?.kill();
  const event = { hook_event_name: name, session_id: session.sessionId, cwd: process.cwd(), source: "startup", stop_hook_active: true };
  waiter = waitBeside(event, (prompt) => session.send({ prompt }));
}

session.on("session.idle", quietly(() => wait("Stop")));
session.on("user.message", quietly(() => waiter?.kill()));
quietly(wait)("SessionStart"); // a session that was never prompted is woken, too
