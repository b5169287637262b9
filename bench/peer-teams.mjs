// SPDX-License-Identifier: MIT
// peer-teams.mjs - messages of 1 KB into the inbox of a team, as Node programs do it: the lock of the real proper-lockfile,
// read, parse, push, rewrite in place; nothing is synced. Our own program, for the bench.
//
//	peer-teams.mjs send INBOX    one send
//	peer-teams.mjs bench INBOX   one send for every line of stdin; prints the microseconds of each
//	peer-teams.mjs look INBOX    one look for every line: read, parse, pick what is unread
import { createRequire } from 'node:module';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createInterface } from 'node:readline';

const modules = new URL('../build/node/', import.meta.url).pathname;
const lockfile = createRequire(modules)('proper-lockfile');
const PATIENCE = { retries: 10, minTimeout: 5, maxTimeout: 100 };
const TRIES = 200;
const PAUSE_MS = 20; // before a send is repeated that did not get the lock

const [command, inbox] = process.argv.slice(2);
const text = 'etaoin shrdlu\n'.repeat(74).slice(0, 1024);

async function push(message) {
	const release = await lockfile.lock(inbox, { lockfilePath: inbox + '.lock', retries: PATIENCE });
	try {
		const messages = JSON.parse(await readFile(inbox, 'utf8'));
		messages.push(message);
		await writeFile(inbox, JSON.stringify(messages, null, 2), 'utf8');
	} finally {
		await release();
	}
}

async function send() {
	const message = { from: 'bench', text, summary: 'one of many', timestamp: new Date().toISOString(), read: false };
	for (let i = 0; i < TRIES; i++) {
		try {
			return await push(message);
		} catch (error) {
			if (error.code !== 'ELOCKED') throw error;
			await sleep(PAUSE_MS);
		}
	}
	throw new Error('no lock after many tries');
}

async function look() {
	const unread = JSON.parse(await readFile(inbox, 'utf8')).filter((message) => !message.read);
	if (unread.length === 0) throw new Error('nothing is unread');
}

if (command === 'send') {
	await send();
} else {
	const act = command === 'look' ? look : send;
	for await (const _ of createInterface({ input: process.stdin })) {
		const began = process.hrtime.bigint();
		await act();
		console.log(Number(process.hrtime.bigint() - began) / 1000);
	}
}
