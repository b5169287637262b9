// SPDX-License-Identifier: MIT
// The pages work without this file. It does three things:
//   live    when something happens in the room, the parts of this page that have data-part are fetched again and replaced
//   keys    j k enter r / g ? and friends
//   forms   a button does its work without leaving the page; an address is resolved while it is typed
'use strict';

const main = document.getElementById('main');
const live = document.getElementById('live');

// ---- Replacing parts of the page ----

const byKey = (root, key) => [...root.querySelectorAll('[data-key]')].find(e => e.dataset.key === key);

// What the reader did to a part survives its replacement: the row that is marked, what was opened, the focus.
function keep(part) {
	const focus = part.contains(document.activeElement) ? document.activeElement : null;
	const row = focus && focus.closest('[data-key]');
	return {
		at: part.querySelector('[data-at]')?.dataset.key,
		open: [...part.querySelectorAll('details[open]')].map(e => e.dataset.key),
		row: row?.dataset.key,
		index: row ? [...row.querySelectorAll('a, button, summary')].indexOf(focus) : -1,
		scroll: [...part.querySelectorAll('.board, .scroll, .picture')].map(e => [e.scrollLeft, e.scrollTop]),
	};
}

function restore(part, kept) {
	if (scale !== 1) zoom(1);
	if (kept.at) byKey(part, kept.at)?.setAttribute('data-at', '');
	for (const key of kept.open) byKey(part, key)?.setAttribute('open', '');
	part.querySelectorAll('.board, .scroll, .picture').forEach((e, i) => kept.scroll[i] && e.scrollTo(...kept.scroll[i]));
	if (kept.row && kept.index >= 0) byKey(part, kept.row)?.querySelectorAll('a, button, summary')[kept.index]?.focus();
}

function replaceParts(text, only) {
	const fresh = new DOMParser().parseFromString(text, 'text/html');
	let found = false;
	for (const part of document.querySelectorAll('[data-part]')) {
		const next = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
		if (!next || part.dataset.part === 'resolution' !== (only === 'resolution')) continue; // that one follows what is typed
		found = true;
		const kept = keep(part);
		part.replaceChildren(...next.childNodes);
		restore(part, kept);
	}
	if (!only) document.title = fresh.title;
	tick();
	return found && fresh;
}

// ---- Live ----

let source = null, timer = 0, busy = false, again = false, rest = 0, pressedAt = -Infinity;

// Events come as fast as mail does. A page is fetched at once, but not more often than it can be made: after a fetch it rests
// for three times as long as that took.
function soon() {
	if (busy) again = true;
	else if (!timer) timer = setTimeout(refresh, Math.max(0, rest - performance.now()));
}

async function refresh() {
	const began = performance.now();
	timer = 0;
	busy = true;
	again = false;
	try {
		// A search is not made again for each event: without its words that page is cheap, and has the list of pages.
		const query = main.querySelector('[data-part]') ? location.search.replace(/[?&]note=[^&]*/, '') : '';
		const answer = await fetch(location.pathname + query, { headers: { Accept: 'text/html' } });
		const text = await answer.text();
		// A button that is replaced while it is pressed would not be clicked.
		while (performance.now() - pressedAt < 1000) await new Promise(done => setTimeout(done, 20));
		if (answer.ok) replaceParts(text);
		else if (answer.status === 401 || answer.status === 403) say('signed out', false);
	} catch { /* the server is away: the stream says so, and comes back by itself */ }
	rest = performance.now() + 3 * (performance.now() - began);
	busy = false;
	if (again) soon();
}

function say(word, on) {
	live.textContent = word;
	live.classList.toggle('on', on);
}

// A browser opens six connections to a server: pages that nobody sees give theirs back.
function listen() {
	if (document.hidden) {
		source?.close();
		source = null;
		return;
	}
	if (source || !document.querySelector('[data-part]') || main.querySelector('.head + .trouble')) return; // what went wrong stays
	source = new EventSource('/events');
	source.onopen = () => { say('live', true); soon(); };
	source.onerror = () => say('not connected', false);
	source.onmessage = soon;
	for (const kind of ['mail', 'change', 'room']) source.addEventListener(kind, soon);
}

// ---- Times ----

function age(ms) {
	const s = Math.max(0, Math.floor(ms / 1000));
	return s < 60 ? s + 's' : s < 3600 ? Math.floor(s / 60) + 'm' : s < 86400 ? Math.floor(s / 3600) + 'h' : Math.floor(s / 86400) + 'd';
}

function tick() {
	for (const e of document.querySelectorAll('time.at:not([data-local])')) {
		const at = new Date(e.dateTime), today = at.toDateString() === new Date().toDateString();
		e.dataset.local = e.title = at.toLocaleString();
		e.textContent = (today ? '' : at.toLocaleDateString([], { day: 'numeric', month: 'short' }) + ' ') + at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
	}
	for (const e of document.querySelectorAll('time[datetime]:not(.at)')) {
		const ms = Date.now() - Date.parse(e.dateTime);
		const text = ms < 0 ? 'in ' + age(-ms) : age(ms);
		if (e.textContent !== text) e.textContent = text;
		if (!e.dataset.local) e.dataset.local = e.title = new Date(e.dateTime).toLocaleString();
	}
}

// ---- Keys ----

const rows = () => [...main.querySelectorAll('.list > li, .card, .mail, tbody > tr')];

function move(step) {
	const all = rows(), at = all.findIndex(e => 'at' in e.dataset);
	const next = all[Math.min(all.length - 1, Math.max(0, at < 0 && step > 0 ? 0 : at + step))];
	if (!next) return;
	all[at]?.removeAttribute('data-at');
	next.setAttribute('data-at', '');
	next.scrollIntoView({ block: 'nearest' });
	const link = next.querySelector('a, summary');
	link?.focus({ preventScroll: true });
}

const marked = () => main.querySelector('[data-at]');
const places = { a: '/', c: '/threads', p: '/picture', q: '/queues', g: '/agents', n: '/channels', d: '/dead', s: '/search', w: '/write' };
const go = path => { location.href = path; };

function answer() {
	const box = document.getElementById('body');
	if (box) {
		box.scrollIntoView({ block: 'center' });
		box.focus();
	} else {
		const link = marked()?.querySelector('a[href^="/thread/"]');
		if (link) go(link.getAttribute('href') + '#reply');
	}
}

function help() {
	let box = document.getElementById('keys');
	if (!box) {
		const list = [['j k', 'down, up'], ['enter', 'open'], ['r', 'answer'], ['/', 'search'], ['w', 'write'], ['g a', 'attention'], ['g c', 'conversations'],
			['g p', 'picture'], ['g q', 'queues'], ['g g', 'agents'], ['g n', 'channels'], ['g d', 'dead letters'], ['+ -', 'a picture larger, smaller'], ['?', 'this list']];
		box = document.createElement('dialog');
		box.id = 'keys';
		box.setAttribute('aria-label', 'Keys');
		const keys = document.createElement('dl');
		keys.className = 'keys';
		for (const [key, what] of list) {
			const dt = document.createElement('dt'), dd = document.createElement('dd');
			for (const k of key.split(' ')) {
				const kbd = document.createElement('kbd');
				kbd.textContent = k;
				dt.append(kbd, ' ');
			}
			dd.textContent = what;
			keys.append(dt, dd);
		}
		const close = document.createElement('button');
		close.textContent = 'Close';
		close.onclick = () => box.close();
		box.append(keys, close);
		document.body.append(box);
	}
	box.showModal();
}

let after_g = -Infinity;

function pressed(event) {
	if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select, dialog')) {
		if (event.key === 'Escape') event.target.blur();
		return;
	}
	const key = event.key, second = performance.now() - after_g < 1500;
	after_g = -Infinity;
	if (second && places[key]) go(places[key]);
	else if (key === 'g') after_g = performance.now();
	else if (key === 'j' || key === 'k') move(key === 'j' ? 1 : -1);
	else if (key === 'r') answer();
	else if (key === 'w') go('/write');
	else if (key === '/') { const q = document.querySelector('input[type=search]'); if (q) q.focus(); else go('/search'); }
	else if (key === '+' || key === '-') zoom(key === '+' ? 1.25 : 0.8);
	else if (key === '?') help();
	else if (key === 'Enter' && marked() && document.activeElement === document.body) marked().querySelector('a')?.click();
	else return;
	event.preventDefault();
}

// ---- The picture ----

let scale = 1;

function zoom(step) {
	scale = Math.min(4, Math.max(0.25, scale * step));
	for (const svg of document.querySelectorAll('.picture svg')) {
		const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
		svg.classList.add('zoomed');
		svg.setAttribute('width', width * scale);
		svg.setAttribute('height', height * scale);
	}
}

if (document.querySelector('.picture svg'))
	for (const [label, name, step] of [['\u2212', 'Smaller', 0.8], ['+', 'Larger', 1.25]]) {
		const button = document.createElement('button');
		button.textContent = label;
		button.setAttribute('aria-label', name);
		button.onclick = () => zoom(step);
		main.querySelector('.head .actions').append(button);
	}

// ---- Forms ----

// A button of a row: the answer is the page that it leads to, so its parts are this page's new ones. What is refused is said
// above the page, in the words of the server.
async function act(event) {
	const form = event.target;
	if (!form.matches('.actions > form') || form.method !== 'post') return;
	event.preventDefault();
	const button = event.submitter;
	if (button) button.disabled = true;
	if (button?.classList.contains('danger') && !confirm(button.textContent + ' it for good?')) {
		button.disabled = false;
		return;
	}
	const answer = await fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)) });
	const text = await answer.text();
	const fresh = new DOMParser().parseFromString(text, 'text/html');
	const here = new URL(answer.url).pathname === location.pathname;
	if (answer.ok && !here) { location.href = answer.url; return; }
	main.querySelectorAll('.note, .trouble').forEach(e => e.remove());
	const note = fresh.querySelector('.note, .trouble');
	if (note) main.prepend(note);
	if (answer.ok) replaceParts(text);
	if (button) button.disabled = false;
}

let typing = 0;

function resolveSoon() {
	clearTimeout(typing);
	typing = setTimeout(async () => {
		const to = document.getElementById('to').value;
		const answer = await fetch('/write?to=' + encodeURIComponent(to));
		if (!answer.ok || document.getElementById('to').value !== to) return;
		const fresh = replaceParts(await answer.text(), 'resolution');
		const from = fresh?.querySelector('form .actions'), here = document.querySelector('form .wide.actions');
		if (from && here) here.replaceChildren(...from.childNodes);
	}, 200);
}

document.addEventListener('pointerdown', () => { pressedAt = performance.now(); });
for (const kind of ['click', 'pointercancel']) document.addEventListener(kind, () => { pressedAt = -Infinity; });
document.addEventListener('keydown', pressed);
document.addEventListener('submit', act);
document.addEventListener('visibilitychange', listen);
document.getElementById('to')?.addEventListener('input', resolveSoon);
if (location.hash === '#reply') answer();
else if (!location.hash) { // a link to one message, unless it is the first anyway
	const mail = document.getElementById(location.pathname.replace(/^\/thread\//, ''));
	if (mail?.previousElementSibling) mail.scrollIntoView();
}
document.querySelector('.pages [aria-current=page]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
const hint = document.createElement('button');
hint.textContent = '? keys';
hint.className = 'keys-hint';
hint.onclick = help;
if (document.querySelector('.pages')) live.after(' ', hint);
tick();
setInterval(tick, 5000);
listen();
