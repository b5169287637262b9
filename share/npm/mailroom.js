#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Runs the static command of the package for this platform, in place of itself where Node can do that.
'use strict';
const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const name = `mailroom-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/mailroom`);
} catch {
  process.stderr.write(`mailroom: the package '${name}' is not installed\n` +
    `  hint: npm install ${name}; if there is none, build it from source: make install\n`);
  process.exit(1);
}
const words = process.argv.slice(2);
if (typeof process.execve === 'function') {
  process.execve(program, ['mailroom', ...words], process.env);
}
const child = spawn(program, words, { stdio: 'inherit' });
const passed = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
for (const signal of passed) process.on(signal, () => child.kill(signal));
child.on('error', (err) => {
  process.stderr.write(`mailroom: cannot run '${program}': ${err.message}\n`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  for (const one of passed) process.removeAllListeners(one);
  process.exitCode = 128 + constants.signals[signal];
  process.kill(process.pid, signal); // end as it ended
});
