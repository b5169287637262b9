// SPDX-License-Identifier: MIT
// model.mjs SCRIPT.json LOG PORTFILE - a model that says what a script tells it to: enough of the providers' streaming answers
// (POST /v1/messages, /v1/responses, /v1/chat/completions) to run a real coding agent against 127.0.0.1. Every request of an agent's loop is kept in
// LOG/N.json before it is answered, so that a test can look at what really reached the model's context.
//
// SCRIPT: {"actors": [{"match": "text", "steps": [STEP, ...]}, ...]}. A request belongs to the first actor whose text is in it (an
// actor without one takes all); each request takes that actor's next step. A STEP has "text", or "tool" and "input" (with "namespace" for
// the tools of a server in /v1/responses), and may have "before": a shell command that runs before the answer is given, which
// is how the rest of the world goes on meanwhile. When the steps are over, the model says so and stops.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { promisify } from 'node:util';

const [, , scriptFile, log, portFile] = process.argv;
const actors = JSON.parse(readFileSync(scriptFile, 'utf8')).actors.map((a) => ({ ...a, next: 0 }));
const run = promisify(execFile);
let requests = 0;
mkdirSync(log, { recursive: true });

async function nextStep(body, text) {
	const actor = actors.find((a) => !a.match || text.includes(a.match));
	const n = ++requests;
	const step = actor?.steps[actor.next++] ?? { text: 'the script is over' };
	writeFileSync(`${log}/.${n}`, JSON.stringify({ actor: actor?.match ?? '', step: actor?.next ?? 0, body }, null, 1));
	renameSync(`${log}/.${n}`, `${log}/${n}.json`);
	if (step.before) {
		try {
			const { stdout } = await run('sh', ['-c', step.before], { encoding: 'utf8', timeout: 30000 });
			writeFileSync(`${log}/${n}.before`, stdout);
		} catch (e) {
			writeFileSync(`${log}/${n}.before-failed`, `${e.message}\n${e.stderr ?? ''}`);
		}
	}
	return { n, ...step };
}

const stream = (res, events) => {
	res.writeHead(200, { 'content-type': 'text/event-stream' });
	for (const e of events) res.write(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`);
	res.end();
};

// Requests that are not the agent's loop (titles, summaries, probes) have few or no tools.
const isLoop = (body) => Array.isArray(body.tools) && body.tools.length > 2;

async function messages(body, text, res) {
	const step = isLoop(body) ? await nextStep(body, text) : { n: 0, text: 'ok' };
	const id = `msg_${step.n}_${Date.now()}`;
	const block = step.tool
		? { start: { type: 'tool_use', id: `toolu_${id}`, name: step.tool, input: {} }, delta: { type: 'input_json_delta', partial_json: JSON.stringify(step.input ?? {}) } }
		: { start: { type: 'text', text: '' }, delta: { type: 'text_delta', text: step.text } };
	const reason = step.tool ? 'tool_use' : 'end_turn';
	const usage = { input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
	const message = { id, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage };
	if (!body.stream) {
		const content = [step.tool ? { ...block.start, input: step.input } : { type: 'text', text: step.text }];
		res.writeHead(200, { 'content-type': 'application/json' });
		return res.end(JSON.stringify({ ...message, content, stop_reason: reason }));
	}
	stream(res, [
		{ type: 'message_start', message },
		{ type: 'content_block_start', index: 0, content_block: block.start },
		{ type: 'content_block_delta', index: 0, delta: block.delta },
		{ type: 'content_block_stop', index: 0 },
		{ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage },
		{ type: 'message_stop' },
	]);
}

async function responses(body, text, res) {
	const step = body.text?.format ? { n: 0, text: '{"title":"a title"}' } : await nextStep(body, text);
	const id = `resp_${step.n}`;
	const item = step.tool
		? { type: 'function_call', id: `fc_${step.n}`, call_id: `call_${step.n}`, name: step.tool, arguments: JSON.stringify(step.input ?? {}), ...(step.namespace && { namespace: step.namespace }) }
		: { type: 'message', id: `m_${step.n}`, role: 'assistant', content: [{ type: 'output_text', text: step.text }] };
	const usage = { input_tokens: 10, input_tokens_details: null, output_tokens: 5, output_tokens_details: null, total_tokens: 15 };
	stream(res, [
		{ type: 'response.created', response: { id } },
		{ type: 'response.output_item.done', output_index: 0, item },
		{ type: 'response.completed', response: { id, usage } },
	]);
}

// The chat completions of OpenAI, which Qwen Code and others ask.
async function completions(body, text, res) {
	const aside = JSON.stringify(body.messages?.at(-1) ?? '').includes('[SUGGESTION MODE'); // Qwen Code guesses what its user types next
	const step = isLoop(body) && !aside ? await nextStep(body, text) : { n: 0, text: 'ok' };
	const id = `chatcmpl_${step.n}`;
	const message = step.tool
		? { role: 'assistant', content: null, tool_calls: [{ index: 0, id: `call_${step.n}`, type: 'function', function: { name: step.tool, arguments: JSON.stringify(step.input ?? {}) } }] }
		: { role: 'assistant', content: step.text };
	const finish_reason = step.tool ? 'tool_calls' : 'stop';
	const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
	const base = { id, created: 1, model: body.model };
	if (!body.stream) {
		res.writeHead(200, { 'content-type': 'application/json' });
		return res.end(JSON.stringify({ ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage }));
	}
	res.writeHead(200, { 'content-type': 'text/event-stream' });
	for (const part of [{ choices: [{ index: 0, delta: message, finish_reason: null }] }, { choices: [{ index: 0, delta: {}, finish_reason }] }, { choices: [], usage }])
		res.write(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', ...part })}\n\n`);
	res.end('data: [DONE]\n\n');
}

const server = createServer((req, res) => {
	let text = '';
	req.setEncoding('utf8');
	req.on('data', (part) => (text += part));
	req.on('end', () => {
		const path = req.url.replace(/\?.*/, '');
		let body = {};
		try { body = JSON.parse(text); } catch { /* no body */ }
		if (req.method === 'POST' && path === '/v1/messages') return messages(body, text, res);
		if (req.method === 'POST' && path === '/v1/responses') return responses(body, text, res);
		if (req.method === 'POST' && path === '/v1/chat/completions') return completions(body, text, res);
		res.writeHead(path.endsWith('count_tokens') ? 200 : 404, { 'content-type': 'application/json' });
		res.end(path.endsWith('count_tokens') ? '{"input_tokens":10}' : '{"error":{"type":"not_found_error","message":"not here"}}');
	});
});
server.listen(0, '127.0.0.1', () => {
	writeFileSync(`${portFile}.tmp`, `${server.address().port}\n`);
	renameSync(`${portFile}.tmp`, portFile);
});
setTimeout(() => process.exit(0), 300000); // nobody's child outlives its test for long
