// SPDX-License-Identifier: MIT
// teams-golden.mjs DIR - makes the golden inbox files of tests/data/teams: what a client of an agent team has on disk
// after each of its operations. Written from the description of the format; times are fixed, so that it gives the
// same bytes each time. Run once; the files are kept with their sha256.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const dir = process.argv[2]
const made = []
const at = n => new Date(Date.UTC(2026, 2, 5, 10, 30, n, 100 + n)).toISOString()

// ---- The operations: the whole array is read, changed and written, two spaces deep, no line end. ----
const path = name => join(dir, name)
const load = name => JSON.parse(readFileSync(path(name), 'utf-8'))
const store = (name, messages) => {
	writeFileSync(path(name), JSON.stringify(messages, null, 2), 'utf-8')
	if (!made.includes(name)) made.push(name)
}
const create = name => store(name, [])
const post = (name, message) => store(name, [...load(name), { ...message, read: false }])
const markAt = (name, i) => store(name, load(name).map((m, n) => (n === i ? { ...m, read: true } : m)))
const markAll = name => store(name, load(name).map(m => ({ ...m, read: true })))
const markWhere = (name, fits) => store(name, load(name).map(m => (!m.read && fits(m) ? { ...m, read: true } : m)))
const clear = name => writeFileSync(path(name), '[]', { encoding: 'utf-8', flag: 'r+' }) // does not truncate

// ---- Mail ----
const letters = [
	{ from: 'alice', text: 'the build is green', summary: 'build green', timestamp: at(1), color: 'blue' },
	{ from: 'team-lead', text: 'please look at\nthe second line\n', timestamp: at(2) },
	{ from: 'Old Bob', text: 'tab\t"quotes" \\ / </b> \u0001 é 🤝 \u2028\u007f', summary: 'odd bytes', timestamp: at(3) },
]
create('empty.json')
for (const name of ['one.json', 'cleared.json']) {
	create(name)
	post(name, letters[0])
}
for (const name of ['three.json', 'mark-position.json', 'mark-all.json', 'mark-filter.json']) {
	create(name)
	letters.forEach(m => post(name, m))
}
clear('cleared.json')
markAt('mark-position.json', 1)
markAll('mark-all.json')
markWhere('mark-filter.json', m => m.from !== 'alice')

// ---- Control messages: an object in `text` ----
const requestId = 'shutdown-1772706600100@researcher'
const protocol = [
	{ type: 'idle_notification', from: 'researcher', timestamp: at(10), idleReason: 'available', summary: '[to tester] done' },
	{ type: 'permission_request', request_id: 'perm-1', agent_id: 'researcher', tool_name: 'Bash', tool_use_id: 'toolu_1',
		description: 'run the tests', input: { command: 'make test' }, permission_suggestions: [] },
	{ type: 'permission_response', request_id: 'perm-1', subtype: 'error', error: 'Permission denied' },
	{ type: 'sandbox_permission_request', requestId: 'sandbox-1', workerId: 'researcher@blue', workerName: 'researcher',
		workerColor: 'green', hostPattern: { host: 'example.org' }, createdAt: 1772706600100 },
	{ type: 'sandbox_permission_response', requestId: 'sandbox-1', host: 'example.org', allow: true, timestamp: at(14) },
	{ type: 'plan_approval_request', from: 'researcher', timestamp: at(15), planFilePath: '/tmp/plan.md',
		planContent: '# Plan\n\n1. Look\n', requestId: 'plan-1' },
	{ type: 'plan_approval_response', requestId: 'plan-1', approved: false, feedback: 'smaller steps', timestamp: at(16) },
	{ type: 'shutdown_request', requestId, from: 'team-lead', reason: 'all done', timestamp: at(17) },
	{ type: 'shutdown_approved', requestId, from: 'researcher', timestamp: at(18), paneId: '%4', backendType: 'tmux' },
	{ type: 'shutdown_rejected', requestId, from: 'researcher', reason: 'not yet', timestamp: at(19) },
	{ type: 'task_assignment', taskId: '7', subject: 'Look', description: 'Look closely', assignedBy: 'team-lead', timestamp: at(20) },
	{ type: 'team_permission_update', permissionUpdate: { type: 'addRules', rules: [{ toolName: 'Edit', ruleContent: '/src/**' }],
		behavior: 'allow', destination: 'session' }, directoryPath: '/src', toolName: 'Edit' },
	{ type: 'mode_set_request', mode: 'acceptEdits', from: 'team-lead' },
]
create('protocol.json')
protocol.forEach((m, i) => post('protocol.json', { from: m.from ?? 'team-lead', text: JSON.stringify(m), timestamp: at(10 + i) }))

// ---- A later generation: more keys, in its order ----
const stamps = n => ({ msgV: 1, msg_id: `0f8fad5b-d9cb-469f-a165-70867728950${n}`, type: 'message', read: false })
store('later.json', letters.map((m, n) => ({ ...m, ...stamps(n) })))

const sums = made.sort().map(n => `${createHash('sha256').update(readFileSync(path(n))).digest('hex')}  ${n}\n`)
writeFileSync(path('SHA256SUMS'), sums.join(''))
