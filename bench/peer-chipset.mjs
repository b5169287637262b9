// SPDX-License-Identifier: MIT
// peer-chipset.mjs - a chipset send as the format's own text describes it: one temporary name for all, write, fsync,
// rename; the folder is not synced. Our own program, for the bench.
//
//	peer-chipset.mjs STATE FROM TO         one send for every line of stdin; prints the microseconds of each
//	peer-chipset.mjs STATE FROM TO once    one send
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [state, from, to, once] = process.argv.slice(2);
const body = 'etaoin shrdlu\n'.repeat(74).slice(0, 1024);

async function send(subject) {
	const timestamp = new Date().toISOString();
	const message = { body, from, priority: 'normal', read: false, subject, timestamp, to, type: 'coordination' };
	const mailbox = join(state, 'mail', to);
	await mkdir(mailbox, { recursive: true });
	const temporary = join(mailbox, '.msg.tmp');
	const file = await open(temporary, 'w');
	try {
		await file.writeFile(JSON.stringify(message, Object.keys(message).sort(), 2) + '\n');
		await file.sync();
	} finally {
		await file.close();
	}
	await rename(temporary, join(mailbox, `${timestamp.replaceAll(':', '-')}-${from}.json`));
}

if (once) {
	await send('one');
} else {
	for await (const _ of createInterface({ input: process.stdin })) {
		const began = process.hrtime.bigint();
		await send('one of many');
		console.log(Number(process.hrtime.bigint() - began) / 1000);
	}
}
