// SPDX-License-Identifier: MIT
// bridge.mjs [CLIENT ARG...] -- SERVER ARG... - Streamable HTTP in front of an MCP server that speaks stdio, for tests only: the official
// conformance suite can drive nothing but HTTP. Runs the client, with URL among its arguments replaced by the address, and ends as it
// does; without a client prints the address and ends with a signal.
//
// Both eras. In the older one each session is a process of its own, from `initialize` to DELETE. In the newer one there are no sessions:
// one process answers everybody. What the specification asks of the transport (Origin, Host, headers, status codes) is answered here;
// what it asks of a server is passed on and comes back as the server said it.
import { createServer } from 'node:http';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { randomUUID } from 'node:crypto';

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const META = 'io.modelcontextprotocol/';
const NAMED = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' };
const STATUS = { [-32601]: 404, [-32020]: 400, [-32021]: 400, [-32022]: 400 };
const LOCAL = ['localhost', '127.0.0.1', '[::1]'];

const cut = process.argv.indexOf('--');
const command = process.argv.slice(cut + 1);
const client = process.argv.slice(2, cut);
if (cut < 0 || command.length === 0) {
	console.error('usage: bridge.mjs [CLIENT ARG...] -- SERVER ARG...');
	process.exit(2);
}
const servers = new Set();

// ---- the server behind us

// Ids and progress tokens of different clients may be equal, so each request goes on under a name of our own.
class Server {
	constructor() {
		this.count = 0;
		this.waiting = new Map();	// our id -> { id, token, answer(message, last) }
		this.stream = null;		// where a session's own notices go
		this.kept = [];			// ... until somebody listens
		this.process = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
		this.process.stdin.on('error', () => {});
		this.process.on('error', error => { console.error(`bridge: ${error.message}`); this.ended(); });
		this.process.on('exit', () => this.ended());
		createInterface({ input: this.process.stdout }).on('line', line => this.line(line));
		servers.add(this);
	}

	get alive() { return servers.has(this); }

	ended() {
		if (!servers.delete(this)) return;
		for (const r of this.waiting.values()) r.answer(failure(r.id, -32603, 'the server has ended'), true);
		this.waiting.clear();
		this.stream?.end();
	}

	end() {
		this.process.stdin.end();
		setTimeout(() => this.process.kill('SIGKILL'), 3000).unref();
	}

	tell(message) { this.process.stdin.write(JSON.stringify(message) + '\n'); }

	ask(message, answer) {
		const ours = `b${++this.count}`;
		const asked = structuredClone(message);
		const token = asked.params?._meta?.progressToken;
		asked.id = ours;
		if (token !== undefined) asked.params._meta.progressToken = ours;
		this.waiting.set(ours, { id: message.id, token, answer });
		this.tell(asked);
		return ours;
	}

	forget(ours) { // the client has gone: that is how the newer era cancels
		if (!this.waiting.delete(ours) || !this.alive) return;
		this.tell({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: ours, reason: 'the client closed the stream' } });
	}

	oursOf(id) { for (const [ours, r] of this.waiting) if (r.id === id) return ours; return null; }

	line(line) {
		let message;
		try { message = JSON.parse(line); } catch { return console.error(`bridge: not JSON: ${line.slice(0, 200)}`); }
		if (message.method === undefined) {
			const r = this.waiting.get(message.id);
			if (!r) return console.error(`bridge: nobody asked: ${line.slice(0, 200)}`);
			this.waiting.delete(message.id);
			const subscription = message.result?._meta;
			if (subscription?.[META + 'subscriptionId'] === message.id) subscription[META + 'subscriptionId'] = r.id;
			return r.answer({ ...message, id: r.id }, true);
		}
		const meta = message.params?._meta, key = META + 'subscriptionId';
		const subscribed = this.waiting.get(meta?.[key]);
		if (subscribed) {
			meta[key] = subscribed.id;
			return subscribed.answer(message, false);
		}
		const progress = message.method === 'notifications/progress' && this.waiting.get(message.params?.progressToken);
		if (progress) {
			message.params.progressToken = progress.token;
			return progress.answer(message, false);
		}
		if (this.stream) return event(this.stream, message);
		if (this.kept.length < 1000) this.kept.push(message);
	}
}

let shared = null;
const sessions = new Map();
const stateless = () => (shared?.alive ? shared : (shared = new Server()));

// ---- HTTP

const failure = (id, code, message, data) => ({ jsonrpc: '2.0', id: id ?? null, error: { code, message, ...(data && { data }) } });

function json(res, status, body, headers = {}) {
	res.writeHead(status, { 'Content-Type': 'application/json', ...headers });
	res.end(body === undefined ? undefined : JSON.stringify(body));
}

function open(res) {
	res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' });
	res.flushHeaders();
	const alive = setInterval(() => res.write(': still here\n\n'), 10000);
	res.on('close', () => clearInterval(alive));
}

function event(res, message) { res.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`); }

function local(value) {
	try { return LOCAL.includes(new URL(value).hostname); } catch { return false; }
}

function decoded(value) { // a header's value; null if it says that it is Base64 and is not
	const found = /^=\?base64\?(.*)\?=$/.exec(value);
	if (!found) return value;
	if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(found[1])) return null;
	return Buffer.from(found[1], 'base64').toString('utf8');
}

// pass REQUEST: the answer is plain JSON, or a stream as soon as something comes before it.
function pass(res, server, message, { status = () => 200, cancel, first } = {}) {
	const ours = server.ask(message, (answer, last) => {
		if (!res.headersSent && last) return json(res, status(answer), answer, first?.(answer));
		if (!res.headersSent) open(res);
		event(res, answer);
		if (last) res.end();
	});
	if (cancel) res.on('close', () => { if (!res.writableFinished) server.forget(ours); });
}

function mismatch(headers, message) { // what of the headers is not what the body says
	const version = headers['mcp-protocol-version'], method = headers['mcp-method'], said = message.params?._meta?.[META + 'protocolVersion'];
	if (version === undefined) return 'MCP-Protocol-Version is missing';
	if (said !== undefined && said !== version.trim()) return `MCP-Protocol-Version is '${version}', the body says '${said}'`;
	if (method === undefined) return 'Mcp-Method is missing';
	if (method.trim() !== message.method) return `Mcp-Method is '${method}', the body says '${message.method}'`;
	const field = NAMED[message.method], name = headers['mcp-name'];
	if (!field) return null;
	if (name === undefined) return 'Mcp-Name is missing';
	if (decoded(name.trim()) !== message.params?.[field]) return `Mcp-Name is '${name}', the body says '${message.params?.[field]}'`;
	return null;
}

function modern(req, res, message) {
	const wrong = message.method === undefined ? 'a client has nothing to answer' : mismatch(req.headers, message);
	if (wrong) return json(res, 400, failure(message.id, -32020, wrong));
	if (message.id === undefined) {
		stateless().tell(message);
		return res.writeHead(202).end();
	}
	const meta = message.params?._meta;
	const complete = meta?.[META + 'protocolVersion'] !== undefined && meta?.[META + 'clientCapabilities'] !== undefined;
	pass(res, stateless(), message, { cancel: true, status: a => (a.error ? STATUS[a.error.code] ?? (complete ? 200 : 400) : 200) });
}

function initialize(res, message) {
	const server = new Server(), id = randomUUID();
	pass(res, server, message, { first: answer => {
		if (answer.error) { server.end(); return {}; }
		sessions.set(id, server);
		return { 'Mcp-Session-Id': id };
	} });
}

function session(req, res) { // the server of the session that the headers name, or null and an answer
	const id = req.headers['mcp-session-id'], version = req.headers['mcp-protocol-version'];
	if (id === undefined) return json(res, 400, failure(null, -32000, 'Mcp-Session-Id is missing'));
	if (version !== undefined && !LEGACY.includes(version)) return json(res, 400, failure(null, -32000, `unknown version '${version}'`));
	const server = sessions.get(id);
	if (server?.alive) return server;
	return json(res, 404, failure(null, -32001, 'no such session'));
}

function legacy(req, res, message) {
	if (message.method === 'initialize' && req.headers['mcp-session-id'] === undefined) return initialize(res, message);
	const server = session(req, res);
	if (!server) return;
	if (message.method !== undefined && message.id !== undefined) return pass(res, server, message);
	if (message.method === 'notifications/cancelled') {
		const ours = server.oursOf(message.params?.requestId);
		if (ours) server.tell({ ...message, params: { ...message.params, requestId: ours } });
	} else server.tell(message);
	res.writeHead(202).end();
}

function post(req, res, text) {
	const accept = req.headers.accept ?? '';
	if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
		return json(res, 406, failure(null, -32000, 'Accept must name application/json and text/event-stream'));
	if (!(req.headers['content-type'] ?? '').startsWith('application/json'))
		return json(res, 415, failure(null, -32000, 'not application/json'));
	let message;
	try { message = JSON.parse(text); } catch { return json(res, 400, failure(null, -32700, 'not JSON')); }
	if (message === null || typeof message !== 'object' || Array.isArray(message))
		return json(res, 400, failure(null, -32600, 'one message, please'));
	(newer(req, message) ? modern : legacy)(req, res, message);
}

// Any version that is not one of the older ones is of the newer era: the server itself says whether it knows it.
function newer(req, message) {
	const version = req.headers['mcp-protocol-version'];
	if (message?.params?._meta?.[META + 'protocolVersion'] !== undefined) return true;
	return version !== undefined && !LEGACY.includes(version) && req.headers['mcp-session-id'] === undefined;
}

const http = createServer((req, res) => {
	const { host, origin } = req.headers;
	if (!local(`http://${host}`) || (origin !== undefined && !local(origin)))
		return json(res, 403, failure(null, -32000, 'Host or Origin is not this machine'));
	if (new URL(req.url, 'http://localhost').pathname !== '/mcp') return json(res, 404, failure(null, -32000, 'the path is /mcp'));
	if (req.method === 'POST') {
		const parts = [];
		req.on('data', part => parts.push(part)).on('end', () => post(req, res, Buffer.concat(parts).toString('utf8')));
		return;
	}
	if (newer(req) || !['GET', 'DELETE'].includes(req.method)) return res.writeHead(405, { Allow: 'POST' }).end();
	const server = session(req, res);
	if (!server) return;
	if (req.method === 'DELETE') {
		sessions.delete(req.headers['mcp-session-id']);
		server.end();
		return res.writeHead(204).end();
	}
	if (server.stream) return json(res, 409, failure(null, -32000, 'this session has its stream'));
	open(res);
	server.stream = res;
	res.on('close', () => { server.stream = null; });
	for (const message of server.kept.splice(0)) event(res, message);
});
http.listen(0, '127.0.0.1', () => {
	const url = `http://127.0.0.1:${http.address().port}/mcp`;
	if (client.length === 0) return console.log(url);
	const program = spawn(client[0], client.slice(1).map(word => (word === 'URL' ? url : word)), { stdio: 'inherit' });
	program.on('error', error => { console.error(`bridge: ${error.message}`); stop(1); });
	program.on('exit', code => stop(code ?? 1));
});

function stop(code) {
	for (const server of servers) server.end();
	http.close();
	http.closeAllConnections();
	setTimeout(() => process.exit(code), 200);
}
process.on('SIGTERM', () => stop(143)).on('SIGINT', () => stop(130));
