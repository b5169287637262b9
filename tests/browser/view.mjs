// SPDX-License-Identifier: MIT
// view.mjs LINK - the operator's view in a real Chromium: prints TAP. $DEVBIN is the command, the room is that of the working folder
// (tests/browser/town.sh made it). SHOTS=FOLDER also writes a screenshot of each page.
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../build/browser/', import.meta.url));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const link = process.argv[2], base = new URL(link).origin, shots = process.env.SHOTS;
const patience = +(process.env.PATIENCE ?? 20000); // of a machine that is busy with other tests; nothing here waits so long when it works

let count = 0, failed = 0;
function check(what, good, more) {
	count++;
	if (!good) failed++;
	console.log(`${good ? '' : 'not '}ok ${count} - ${what}`);
	if (!good && more !== undefined) console.log(String(more).replace(/^/gm, '# '));
}
const mr = (...args) => execFileSync(process.env.DEVBIN, args, { stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 26 }).toString().trim();
const mrWith = (input, ...args) => execFileSync(process.env.DEVBIN, args, { input, stdio: ['pipe', 'pipe', 'ignore'] }).toString().trim();

// ---- A browser in which nothing may go wrong silently ----

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const trouble = []; // dialogs, errors, requests to elsewhere, in any page

async function open(options = {}) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
	context.setDefaultTimeout(patience);
	const page = await context.newPage();
	page.on('dialog', d => { trouble.push('dialog: ' + d.message()); d.dismiss(); });
	page.on('pageerror', e => trouble.push('error: ' + e.message));
	page.on('console', m => m.type() === 'error' && trouble.push(`console: ${m.text()} ${m.location().url}`));
	page.on('request', r => new URL(r.url()).origin !== base && trouble.push('request: ' + r.url()));
	page.at = path => page.goto(base + path);
	page.has = text => page.getByText(text, { exact: false }).first();
	return page;
}
const calm = what => { check(`${what}: no dialog, error or foreign request`, trouble.length === 0, trouble.slice(0, 8).join('\n')); trouble.length = 0; };
const eventually = async (what, promise) => check(what, ...await promise.then(() => [true], e => [false, e.message]));

// ---- The first visit ----

const stranger = await open();
const refused = await stranger.at('/');
check('without the link nobody sees mail', refused.status() === 401 && !(await stranger.content()).includes('staging'));
check('nor the name of the room', !(await stranger.content()).includes('greenplace'));
trouble.length = 0; // the browser tells of the 401
await stranger.context().close();

const page = await open();
await page.goto(link);
await page.waitForURL(base + '/');
const cookie = (await page.context().cookies())[0];
check('the link leads to the first page, and leaves a cookie that scripts and other sites do not get', cookie?.httpOnly && cookie.sameSite === 'Strict', JSON.stringify(cookie));
check('which says what waits for an answer', await page.has('Which port should staging use?').isVisible());
const state = await page.context().storageState();
const again = await open();
check('the link is good once', (await again.goto(link)).status() === 403);
trouble.length = 0;
await again.context().close();

// ---- Every page: what it looks like, who can use it, what it is without script ----

await page.locator('#live.on').waitFor();
await page.at('/threads?q=lexer');
const talk = await page.locator('.list a.title').first().getAttribute('href');
const pages = { attention: '/', threads: '/threads', thread: talk, picture: '/picture?since=3h', queues: '/queues', agents: '/agents', agent: '/agent/nux', channels: '/channels',
	channel: '/channel/news', dead: '/dead', search: '/search?q=parser', write: '/write?to=group:builders' };
const picture = await page.request.get(base + talk.replace('/thread/', '/picture/') + '.svg');
check('the picture of a conversation is a file, too', picture.headers()['content-type'].startsWith('image/svg+xml') && (await picture.text()).includes('MERGE_READY'));
await page.addInitScript(axe);
const serious = [];
let wide = '';
if (shots) {
	mkdirSync(shots, { recursive: true });
	mr('picture', '--since', '3h', '-o', `${shots}/picture.svg`);
}
for (const scheme of ['light', 'dark']) {
	await page.emulateMedia({ colorScheme: scheme });
	for (const [name, path] of Object.entries(pages)) {
		for (const width of scheme === 'light' ? [400, 640, 1280] : [1280]) {
			await page.setViewportSize({ width, height: 800 });
			if (width === 400 || scheme === 'dark') await page.at(path);
			const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
			if (over > 0) wide += `${name} at ${width}: ${over} too wide\n`;
			if (shots) await page.locator('#live.on').waitFor();
			if (shots && width !== 640) await page.screenshot({ path: `${shots}/${name}-${width}${scheme === 'dark' ? '-dark' : ''}.png`, fullPage: width === 400 });
		}
		// what the dark colours change is contrast
		const rules = scheme === 'dark' ? ['color-contrast'] : ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];
		const found = await page.evaluate(runOnly => window.axe.run(document, { resultTypes: ['violations'], runOnly }), rules);
		for (const v of found.violations)
			if (['serious', 'critical'].includes(v.impact)) serious.push(`${name} ${scheme}: ${v.id}: ${v.help}: ${v.nodes.map(n => n.html).slice(0, 2).join(' | ').slice(0, 300)}`);
	}
}
check('no page is wider than a phone, or than a window at 200 %', wide === '', wide);
check('axe finds nothing serious on any page, light or dark', serious.length === 0, serious.join('\n'));
calm('every page');
await page.setViewportSize({ width: 1280, height: 800 });
await page.emulateMedia({ colorScheme: 'light' });
await page.at('/');


// ---- The picture ----

await page.at('/picture?since=3h');
check('the picture has an arrow for each message, and a column for each agent', await page.locator('.picture svg a').count() > 10 && await page.locator('.picture svg').getByText('furiosa').count() > 0);
const size = () => page.locator('.picture svg').evaluate(e => e.getBoundingClientRect().width);
const before = await size();
await page.getByRole('button', { name: 'Larger' }).click();
check('it can be made larger', await size() > before);
const arrow = page.locator('.picture svg a', { hasText: 'MERGED parser-spans' }).first();
await arrow.focus();
await page.keyboard.press('Enter');
await eventually('an arrow leads to its message', page.waitForURL(/\/thread\//));
check('which stands there', await page.has('Merged as 4f1c9e2').isVisible());
await page.at('/');

// ---- Live ----

await page.locator('#live.on').waitFor();
const overdue = page.locator('li', { hasText: 'Can you take over the index rebuild?' });
check('an answer that is late: the button nudges the agent that owes it', await overdue.locator('form[action="/do/nudge"] input[name=agent]').getAttribute('value') === 'slit' && (await overdue.innerText()).includes('nux \u2192 slit'), await overdue.innerHTML());
await page.evaluate(() => { window.stayed = true; });
let began = Date.now();
const question = mr('--as', 'nux', 'send', 'operator', '-s', 'Is the moon a queue?', '--by', '10m', '-m', 'I must know.');
await eventually('mail that comes is shown in an open page', page.has('Is the moon a queue?').waitFor());
console.log(`# after ${Date.now() - began} ms, the send included`);
check('without loading it again', await page.evaluate(() => window.stayed === true));

// ---- An answer wakes the agent that waits for it ----

const waiting = new Promise(done => execFile(process.env.DEVBIN, ['--as', 'nux', 'wait', '--id', question, '--timeout', '60s'], { stdio: 'ignore' }, error => done(error)));
await page.locator('li', { hasText: 'Is the moon a queue?' }).getByRole('link', { name: 'Answer' }).click();
await page.waitForURL(/\/thread\//);
await page.getByLabel('Text').fill('Only on Thursdays. Use `recv`.\n\n```\nmailroom recv queue:moon\n```');
await page.getByRole('button', { name: 'Send' }).click();
await eventually('an answer is sent from the page', page.has('Sent, and on stable storage').waitFor());
const woken = await waiting;
check('and wakes the agent that waits for it', woken === null, woken?.message);
check('as an answer of the operator', mr('--as', 'nux', 'search', 'Thursdays', '--json').includes('"from":"operator"'));
check('and shows code as code', await page.locator('.mail pre', { hasText: 'mailroom recv queue:moon' }).count() === 1 && await page.locator('.mail code', { hasText: 'recv' }).count() === 1);
check('the ladder says that it was answered', (await page.locator('.ladder').first().innerText()).includes('answered'));
const mine = page.locator('article', { hasText: 'Only on Thursdays' });
mr('--as', 'nux', 'read', await mine.getAttribute('id'));
await eventually('and moves on when the other reads it', mine.locator('.ladder li.done', { hasText: 'read' }).waitFor());
await mine.locator('summary').first().click();
check('with the evidence behind it', (await mine.locator('.evidence').first().innerText()).length > 10);

// ---- Queues ----

await page.at('/queues');
const card = page.locator('.card', { hasText: 'Release' }).first(), held = await card.getAttribute('data-key');
await card.getByRole('button', { name: 'Release' }).click();
await eventually('a card is released from the board', page.locator(`.column:first-child .card[data-key="${held}"]`).waitFor());
check('and its work waits again', mr('queue', 'show', 'reviews', '--json').includes(`{"id":"${held}","state":"ready"`), mr('queue', 'show', 'reviews', '--json'));
await page.locator('.group', { hasText: 'queue:reviews' }).getByRole('button', { name: 'Pause' }).click();
await eventually('a queue is paused', page.locator('.group', { hasText: 'queue:reviews' }).getByText('paused').waitFor());
await page.locator('.group', { hasText: 'queue:reviews' }).getByRole('button', { name: 'Resume' }).click();
await page.locator('.group', { hasText: 'queue:reviews' }).getByText('active').waitFor();
await page.locator('.card', { hasText: 'deploy staging' }).getByRole('button', { name: 'Retry' }).click();
await eventually('failed work is tried again', page.locator('.column:first-child .card', { hasText: 'deploy staging' }).waitFor());

// ---- Search, writing, keys ----

await page.at('/');
await page.keyboard.press('/');
await page.waitForURL(/\/search/);
await page.getByRole('searchbox').fill('lexer');
await page.keyboard.press('Enter');
await eventually('search finds a word of a text, and shows it', page.locator('mark', { hasText: 'lexer' }).waitFor());

await page.at('/write');
await page.getByLabel('To').fill('group:builders');
await eventually('an address is resolved while it is typed', page.has('3 agents, 1 not live').waitFor());
await page.getByLabel('Text').fill('Lunch is at one.');
await page.getByLabel('Subject').fill('Lunch');
await page.getByRole('button', { name: 'Send' }).click();
await page.waitForURL(/\/thread\//);
check('and gets what is sent', mr('--as', 'slit', 'inbox', '--json').includes('Lunch is at one') || mr('--as', 'slit', 'inbox', '--json').includes('"subject":"Lunch"'));
await page.at('/write?to=builder');
check('an address that nobody has is refused with near names', /builders|no agent/i.test(await page.locator('#resolution').innerText()), await page.locator('#resolution').innerText());

await page.at('/threads');
await page.keyboard.press('j');
await page.keyboard.press('j');
await page.keyboard.press('k');
check('j and k move', await page.locator('.list > li').first().getAttribute('data-at') === '');
await page.keyboard.press('j');
await page.keyboard.press('Enter');
await eventually('enter opens', page.waitForURL(/\/thread\//));
await page.keyboard.press('r');
check('r goes to the answer', await page.evaluate(() => document.activeElement.id === 'body'));
await page.keyboard.press('Escape');
await page.keyboard.press('?');
check('? shows the keys', await page.getByRole('dialog').isVisible());
await page.keyboard.press('Escape');
await page.getByRole('dialog').waitFor({ state: 'hidden' });
await page.keyboard.press('g');
await page.keyboard.press('a');
await eventually('g a goes to attention', page.waitForURL(base + '/'));
calm('a day at work');

// ---- Mail that attacks ----

const payloads = [
	'<script>window.owned = 1; alert(1)</script><img src=x onerror="alert(2)"><svg onload="alert(3)"><a href="javascript:alert(4)">x</a>',
	'"><iframe src="http://127.0.0.1:1/"></iframe><link rel=stylesheet href=http://127.0.0.1:1/x.css><style>*{display:none}</style>',
	'\u001b[2J\u001b]0;owned\u0007 \u202egnp.exe\u202c \u2066\u200b\ufeff',
	"'onmouseover='alert(5)' \" autofocus onfocus=alert(6) x=\"",
	'</textarea></pre></article></main><form action="http://127.0.0.1:1/"><button autofocus>Send</button></form>',
	'```\n</pre><script>alert(7)</script>\n```\n`<b>`<i>`',
	'](javascript:alert(8)) http://127.0.0.1:1/beacon.png ![x](http://127.0.0.1:1/y.png)',
];
writeFileSync('<img src=x onerror=alert(9)>.txt', 'text of the file');
const thread = mr('--as', 'nux', 'send', 'operator', '-s', 'a file', '-m', 'see the file', '--attach', '<img src=x onerror=alert(9)>.txt');
for (const text of payloads)
	mrWith(text, '--as', 'nux', 'send', 'operator', '-f', '-', '-s', text.replace(/[\r\n\u0000-\u001f]/g, ' ').slice(0, 200), '--thread', thread);
mrWith('x'.repeat(1 << 20), '--as', 'nux', 'send', 'operator', '-f', '-', '-s', 'a long line', '--thread', thread);
const fields = ['/', '/threads', `/thread/${thread}`, '/agent/nux', '/agent/operator', '/search?q=alert', '/picture?since=1h', `/picture?thread=${thread}`, `/write?to=${encodeURIComponent(payloads[0])}&subject=${encodeURIComponent(payloads[3])}&body=${encodeURIComponent(payloads[4])}`,
	`/threads?q=${encodeURIComponent('"onfocus"')}&agent=nux&type=${encodeURIComponent(payloads[1])}`];
let injected = '';
for (const path of fields) {
	await page.at(path);
	injected += await page.evaluate(p => [...document.querySelectorAll('main script, main img, main svg:not(.mr), main iframe, main style, main link:not([href="/picture.css"]), [onload], [onerror], [onfocus], [onmouseover], a[href^=javascript], form[action^=http]')]
		.map(e => p + ': ' + e.outerHTML.slice(0, 200)).join('\n') + (window.owned ? p + ': owned' : ''), path);
}
check('hostile mail becomes no element of any page', injected === '', injected);
await page.at(`/thread/${thread}`);
const shown = await page.locator('main').innerText();
check('nor the name of an attached file', shown.includes('<img src=x onerror=alert(9)>.txt (text/plain'), shown.slice(0, 400));
check('but is shown as the text that it is', shown.includes('<script>window.owned = 1; alert(1)</script>') && shown.includes('onfocus=alert(6)'));
check('control characters and overrides are visible', shown.includes('<U+001B>') && shown.includes('<U+202E>') && !shown.includes('\u202e') && !shown.includes('\u001b'));
check('a line of a megabyte is shown whole', shown.includes('x'.repeat(1 << 20)));
check('and does not make the page wider', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
calm('hostile mail');

// ---- Without script ----

const plain = await open({ javaScriptEnabled: false, storageState: state });
let missing = '';
for (const [name, path] of Object.entries(pages)) {
	const answer = await plain.at(path);
	if (!answer.ok() || await plain.locator('main h1').count() !== 1) missing += `${name}: ${answer.status()}\n`;
}
check('all pages are there without script', missing === '', missing);
const ask = mr('--as', 'slit', 'send', 'operator', '-s', 'Without script?', '-m', 'Do forms work?');
await plain.at('/thread/' + ask);
await plain.getByLabel('Text').fill('They do.');
await plain.getByRole('button', { name: 'Send' }).click();
check('an answer', mr('--as', 'slit', 'search', '"They do"', '--json').includes('"from":"operator"'));
await plain.at('/write');
await plain.getByLabel('To').fill('slit nux');
await plain.getByLabel('Text').fill('Two steps.');
await plain.getByRole('button', { name: 'Continue' }).click();
check('a message is not sent before its recipients were shown', await plain.has('nux').isVisible() && !mr('--as', 'nux', 'inbox', '--json').includes('Two steps'));
await plain.getByRole('button', { name: 'Send' }).click();
check('then it is', mr('--as', 'nux', 'inbox', '--json').includes('Two steps'));
await plain.at('/queues');
await plain.locator('.group', { hasText: 'queue:deploys' }).getByRole('button', { name: 'Pause' }).click();
check('a button works', mr('queue', 'list', '--json').includes('"name":"deploys","status":"paused"') && await plain.has('Changed.').isVisible());
calm('without script');

// ---- A link to share ----

const reader = await open();
await reader.at(mr('token', 'create', '--read-only', '--expires', '1h').replace(/^[a-z]+:\/\/[^/]+/, ''));
await reader.waitForURL(base + '/');
await reader.at(talk);
check('a read-only link shows the room, and has no form in it', await reader.has('The only risk is the lexer table').isVisible() && await reader.locator('form[method=post]').count() === 0);
await reader.at('/queues');
check('nor buttons on the board', await reader.locator('main button').count() === 0 && (await reader.has('read-only').count()) === 1);

await browser.close();
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
