// SPDX-License-Identifier: MIT
// teams-peer.mjs - a client of team inboxes as Node programs are: one JSON array in one file, rewritten in place under
// the lock of the real proper-lockfile. Our own program, written after the format's description; unlike
// the clients it stands for it repeats a send that failed, so that a test can count.
//
//	fill INBOX COUNT [BYTES]   a new inbox with that many messages, with texts of that length
//	send INBOX FROM COUNT      one after the other; prints what it took
//	look INBOX STOP            reads without lock until the file STOP exists; prints what it saw
//	hold INBOX                 takes the lock, says "held", keeps it fresh until stdin ends
//	mark INBOX INDEX|all       sets read
//	print INBOX                the array, as Node understands it, on one line
//	equal INBOX INDEX          fails unless that entry is the one on stdin (but for its date), the keys in that order
//	canonical INBOX            fails unless the file has the bytes that Node would have written
//	bench INBOX                one send for every line of stdin; prints the microseconds of each
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';

const modules = process.env.MAILROOM_NODE_MODULES ?? new URL('../../build/node/', import.meta.url).pathname;
const lockfile = createRequire(modules.endsWith('/') ? modules : modules + '/')('proper-lockfile');

// The waits of 5, 10, 20 ... 100 ms that such clients use: 655 ms in all, then ELOCKED.
const PATIENCE = { retries: 10, minTimeout: 5, maxTimeout: 100 };
const PAUSE_MS = 20; // before a failed send is repeated

const encode = (messages) => JSON.stringify(messages, null, 2);

async function read(inbox) {
	return JSON.parse(await readFile(inbox, 'utf8'));
}

async function withLock(inbox, change) {
	const release = await lockfile.lock(inbox, { lockfilePath: inbox + '.lock', retries: PATIENCE });
	try {
		const messages = await read(inbox);
		if (change(messages)) await writeFile(inbox, encode(messages), 'utf8'); // truncates: not atomic, not durable
	} finally {
		await release();
	}
}

async function send(inbox, message) {
	await writeFile(inbox, '[]', { flag: 'wx' }).catch((error) => {
		if (error.code !== 'EEXIST') throw error;
	});
	await withLock(inbox, (messages) => messages.push({ ...message, read: false }));
}

function message(from, number, bytes = 60) {
	return {
		from,
		text: `${from} ${number} says what agents say to each other `.padEnd(Number(bytes), 'and so on '),
		summary: `${from} number ${number}`,
		timestamp: new Date().toISOString(),
		color: 'blue',
	};
}

const commands = {
	async fill(inbox, count, bytes) {
		const messages = [];
		for (let i = 0; i < Number(count); i++) messages.push({ ...message('old', i, bytes), read: false });
		await writeFile(inbox, encode(messages));
	},

	async send(inbox, from, count) {
		const report = { sent: 0, repeated: 0, longest_ms: 0 };
		for (let i = 0; i < Number(count); i++) {
			const began = Date.now();
			for (let sent = false; !sent; ) {
				try {
					await send(inbox, message(from, i));
					sent = true;
				} catch (error) {
					if (error.code !== 'ELOCKED') throw error;
					report.repeated++;
					await sleep(PAUSE_MS);
				}
			}
			report.sent++;
			report.longest_ms = Math.max(report.longest_ms, Date.now() - began);
		}
		console.log(JSON.stringify(report));
	},

	async look(inbox, stop) {
		const report = { looks: 0, bad: 0, lost: 0, first: -1, last: -1 };
		do {
			report.looks++;
			try {
				const messages = await read(inbox);
				if (messages.length < report.last) report.lost++;
				if (report.first < 0) report.first = messages.length;
				report.last = messages.length;
			} catch {
				report.bad++;
			}
		} while (!existsSync(stop));
		console.log(JSON.stringify(report));
	},

	async hold(inbox) {
		const release = await lockfile.lock(inbox, { lockfilePath: inbox + '.lock', update: 1000, stale: 10000 });
		console.log('held');
		for await (const _ of process.stdin);
		await release();
	},

	async mark(inbox, which) {
		await withLock(inbox, (messages) => {
			const chosen = which === 'all' ? messages : [messages[Number(which)]];
			for (const m of chosen) m.read = true;
			return chosen.length > 0;
		});
	},

	async print(inbox) {
		console.log(JSON.stringify(await read(inbox)));
	},

	async equal(inbox, index) {
		const want = await json(process.stdin);
		const got = (await read(inbox))[Number(index)];
		assert.match(got.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
		assert.deepEqual(got, { ...want, timestamp: got.timestamp });
		assert.deepEqual(Object.keys(got), Object.keys(want));
	},

	async canonical(inbox) {
		const text = await readFile(inbox, 'utf8');
		assert.equal(text, encode(JSON.parse(text)));
	},

	async bench(inbox) {
		let number = 0;
		for await (const _ of createInterface({ input: process.stdin })) {
			const one = message('bench', number++, 200);
			const began = process.hrtime.bigint();
			await send(inbox, one);
			console.log(Number(process.hrtime.bigint() - began) / 1000);
		}
	},
};

const [name, ...args] = process.argv.slice(2);
if (!Object.hasOwn(commands, name ?? '')) {
	console.error('usage: teams-peer.mjs fill|send|look|hold|mark|print|equal|canonical|bench INBOX ...');
	process.exit(2);
}
await commands[name](...args);
