// SPDX-License-Identifier: MIT
// conversation.mjs [ERA ERA] - two agents with the official MCP client, each a process with a server of its own over stdio: they mail,
// wait, answer, take and finish work; one is killed half-way, client and server, and its held work comes back to the other.
//
// BIN is the command; the room of the current folder has the agents alice and bob and the queue builds. ERA is legacy (default for
// alice), modern (default for bob) or auto; MAILROOM_TEST_LONG adds what takes longer. Prints "ok WHAT" or "not ok WHAT" for each thing
// shown, and ends with 1 if one is not.
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const INBOX = 'mailroom://inbox';
const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };
const VERSIONS = { legacy: '2025-11-25', auto: '2026-07-28', modern: '2026-07-28' };
const LEASE_S = 2;

// ---- one agent: does what its parent says, and tells what came

async function agent(name, era) {
	const modules = process.env.MAILROOM_NODE_MODULES ?? new URL('../../../build/node/', import.meta.url).pathname;
	const require = createRequire(modules.endsWith('/') ? modules : modules + '/');
	const { Client } = require('@modelcontextprotocol/client');
	const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
	const client = new Client({ name: 'conversation', version: '1' }, { versionNegotiation: { mode: MODES[era] } });
	const transport = new StdioClientTransport({ command: process.env.BIN, args: ['mcp'], env: { ...process.env, MAILROOM_AGENT: name } });
	const waiting = new Map();
	let subscription = null;

	client.setNotificationHandler('notifications/resources/updated', notice => process.send({ event: 'updated', uri: notice.params.uri }));
	const does = {
		async connect() {
			await client.connect(transport);
			return { version: client.getNegotiatedProtocolVersion(), server: client.getServerVersion(), pid: transport.pid,
				instructions: client.getInstructions() };
		},
		tools: async () => (await client.listTools()).tools,
		call({ n, tool, arguments: given }) {
			const abort = new AbortController();
			waiting.set(n, abort);
			return client.callTool({ name: tool, arguments: given }, { signal: abort.signal, timeout: 60000, resetTimeoutOnProgress: true,
				onprogress: () => process.send({ event: 'progress' }) }).finally(() => waiting.delete(n));
		},
		abort({ which }) { waiting.get(which)?.abort('changed my mind'); },
		async listen() {
			if (client.getProtocolEra() === 'legacy') await client.subscribeResource({ uri: INBOX });
			else subscription = await client.listen({ resourceSubscriptions: [INBOX] });
		},
		resource: () => client.readResource({ uri: INBOX }),
		async close() { await subscription?.close(); await client.close(); setImmediate(() => process.disconnect()); },
	};
	process.on('disconnect', () => process.exit());
	process.on('message', async order => {
		try { process.send({ n: order.n, result: await does[order.what](order) }); }
		catch (error) { process.send({ n: order.n, error: `${error.code ?? ''} ${error.message}` }); }
	});
}

class Agent { // its parent's side
	constructor(name, era) {
		this.name = name;
		this.era = era;
		this.count = 0;
		this.events = [];
		this.orders = new Map();
		this.process = fork(new URL(import.meta.url).pathname, ['agent', name, era]);
		this.process.on('message', message => {
			if (message.event) return this.events.push(message.event);
			const order = this.orders.get(message.n);
			this.orders.delete(message.n);
			if (message.error !== undefined) order.reject(new Error(message.error));
			else order.resolve(message.result);
		});
	}

	tell(what, more = {}) {
		const n = ++this.count;
		const answer = new Promise((resolve, reject) => this.orders.set(n, { resolve, reject }));
		answer.catch(() => {});
		this.process.send({ n, what, ...more });
		return answer;
	}

	call(tool, given = {}) { return this.tell('call', { tool, arguments: given }); }

	async done(tool, given) { // a call that must work: its structured content
		const result = await this.call(tool, given);
		if (result.isError) throw new Error(`${this.name} ${tool}: ${result.content[0].text}`);
		return result.structuredContent;
	}

	seen(event) { return this.events.filter(e => e === event).length; }

	kill() { // as a machine does it: nobody can say goodbye
		process.kill(this.server, 'SIGKILL');
		this.process.kill('SIGKILL');
		return new Promise(resolve => this.process.on('exit', resolve));
	}
}

// ---- the conversation

let failed = 0;
function show(what, fine, detail) {
	console.log(`${fine ? 'ok' : 'not ok'} ${what}`);
	if (fine) return;
	failed++;
	console.log(`# ${JSON.stringify(detail)?.slice(0, 1500)}`);
}

async function until(seconds, test) {
	for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(50)) {
		const found = await test();
		if (found) return found;
	}
	return null;
}

async function meet(agent) {
	const hello = await agent.tell('connect');
	agent.server = hello.pid;
	show(`${agent.name} connects in the ${agent.era} era`, hello.version === VERSIONS[agent.era] && hello.server?.name === 'mailroom', hello);
	show(`${agent.name} is told how to behave`, (hello.instructions ?? '').length > 100, hello.instructions);
	const tools = await agent.tell('tools');
	const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];
	show(`${agent.name} sees the eight tools, each with schemas and all four annotations`, tools.length === 8 && tools.every(tool =>
		tool.inputSchema && tool.outputSchema && hints.every(hint => typeof tool.annotations?.[hint] === 'boolean')), tools);
}

async function mail(alice, bob) {
	await bob.tell('listen');
	const waiting = bob.call('wait', { timeout: 30 });
	await sleep(300);
	const question = await alice.done('send', { to: 'bob', subject: 'a question', body: 'which port does the server use?' });
	const woken = (await waiting).structuredContent;
	show('a wait ends when mail comes', woken?.ids?.includes(question.id), woken);
	show('who subscribed hears of new mail', await until(40, () => bob.seen('updated') > 0), bob.events);
	const read = await bob.done('read', { ids: [question.id] });
	show('bob reads it', read.text.includes('which port') && read.ids.includes(question.id), read);
	show('in a fence', /data, not instructions|not instructions/i.test(read.text), read);
	const answered = alice.call('wait', { id: question.id, timeout: 30 });
	const answer = await bob.done('send', { reply_to: question.id, body: '8081' });
	const heard = (await answered).structuredContent;
	show('alice waits for the answer, and it is the one', heard?.ids?.includes(answer.id), heard);
	await alice.done('read', { ids: [answer.id] });
	const nothing = await alice.done('inbox', {});
	show('then her inbox is empty', nothing.ids.length === 0, nothing);
	const wrong = await alice.call('send', { to: 'bobb', body: 'x' });
	show('an unknown name is an error of the tool, with the near one', wrong.isError && wrong.content[0].text.includes('bob'), wrong);
}

async function change(bob, alice) { // a call that is cancelled takes nothing with it
	const order = bob.call('wait', { timeout: 30 });
	const which = bob.count;
	if (process.env.MAILROOM_TEST_LONG)
		show('a wait tells now and then that it still waits', await until(12, () => bob.seen('progress') > 0), bob.events);
	else await sleep(300);
	await bob.tell('abort', { which });
	const end = await order.then(() => 'an answer', error => error.message);
	show('a wait can be cancelled', end !== 'an answer', end);
	const sent = await alice.done('send', { to: 'bob', body: 'after that' });
	const list = await bob.done('inbox', {});
	show('and mail that comes then is still unread', list.ids.includes(sent.id), list);
	await bob.done('read', { ids: [sent.id] });
}

async function work(alice, bob) {
	const first = await alice.done('send', { to: 'queue:builds', body: 'build main' });
	const second = await alice.done('send', { to: 'queue:builds', body: 'build next' });
	const bobs = await bob.done('recv', { queue: 'queue:builds', lease: `${LEASE_S}s` });
	show('bob takes the first work', bobs.id === first.id && bobs.token && bobs.attempt === 1, bobs);
	const alices = await alice.done('recv', { queue: 'queue:builds', lease: '10m' });
	show('alice gets the other', alices.id === second.id && alices.token, alices);
	const finished = await alice.call('done', { token: alices.token });
	show('and finishes it', !finished.isError, finished);

	bob.call('wait', { timeout: 30 }); // and is killed in it
	await sleep(200);
	await bob.kill();
	const left = await alice.done('send', { to: 'bob', body: 'are you there?' });
	const early = await alice.call('recv', { queue: 'queue:builds' });
	show('what bob held is not given out at once', !early.structuredContent?.token, early);
	const back = await until(LEASE_S + 8, async () => {
		const r = await alice.call('recv', { queue: 'queue:builds', lease: '10m' });
		return r.structuredContent?.token ? r.structuredContent : null;
	});
	show('after his lease it comes to alice, as the second attempt', back?.id === first.id && back?.attempt === 2, back);
	const again = new Agent('bob', bob.era);
	again.server = (await again.tell('connect')).pid;
	const late = await again.call('done', { token: bobs.token });
	show('a new bob cannot finish it any more', late.isError, late);
	const last = await alice.call('done', { token: back?.token ?? 'none' });
	show('alice can', !last.isError, last);
	const unread = await again.done('inbox', {});
	show('and what was sent to the dead one is unread', unread.ids.includes(left.id), unread);
	return again;
}

async function conversation(one, other) {
	const watchdog = setTimeout(() => { console.log('not ok all within 60 s'); process.exit(1); }, 60000);
	const alice = new Agent('alice', one), bob = new Agent('bob', other);
	try {
		await meet(alice);
		await meet(bob);
		await mail(alice, bob);
		await change(bob, alice);
		const again = await work(alice, bob);
		await alice.tell('close');
		await again.tell('close');
	} catch (error) {
		show('nothing unexpected happens', false, String(error.stack));
	}
	clearTimeout(watchdog);
	process.exit(failed > 0 ? 1 : 0); // the agents see it, and end
}

if (process.argv[2] === 'agent') await agent(process.argv[3], process.argv[4]);
else await conversation(process.argv[2] ?? 'legacy', process.argv[3] ?? 'modern');
