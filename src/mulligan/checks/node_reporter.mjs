// A reporter of node:test: prints what node prints without it, and writes JUnit XML (CHECK-6).
//
// Mulligan copies this file to node_modules/, which node leaves out of a coverage report, in the
// directory of the reports. NODE_OPTIONS names it, but not for the programs that a test starts.
import { writeFileSync } from 'node:fs';
import { spec, tap } from 'node:test/reporters';
import { inspect } from 'node:util';

const name = `node-${process.pid}-${process.hrtime.bigint()}.xml`;
const report = new URL(`../${name}`, import.meta.url);
const began = process.uptime();
const around = [];
const cases = [];

function restoreOptions() {
  const given = process.env.NODE_OPTIONS ?? '';
  const kept = given.replace(`--test-reporter=${import.meta.url}`, '').trim();
  if (kept) process.env.NODE_OPTIONS = kept;
  else delete process.env.NODE_OPTIONS;
}

function xml(text) {
  const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\n': '&#10;' };
  const notInXml = /\x1b\[[0-9;]*m|[\0-\x08\x0b-\x1f\x7f\ufffe\uffff]/g;
  const allowed = String(text).replace(notInXml, '');
  return allowed.replace(/[&<>"\n]/g, (one) => entities[one]);
}

function failure(error) {
  const cause = error?.cause ?? error;
  const known = typeof cause === 'string' ? cause : cause?.stack;
  const text = typeof known === 'string' ? known : inspect(cause);
  const [message] = text.split(/\n\s+at /, 1);
  return `<failure message="${xml(message)}">${xml(text.slice(message.length))}</failure>`;
}

function result({ details, skip, todo }, passed) {
  for (const [type, mark] of Object.entries({ skip, todo })) {
    const message = typeof mark === 'string' ? mark : '';
    if (mark !== undefined && mark !== false) return `<skipped type="${type}" message="${xml(message)}"/>`;
  }
  return passed ? '' : failure(details.error);
}

// A suite that passes is no test; one that fails because of its tests is told by them.
function counts({ details }, mark, passed) {
  if (passed) return details?.type !== 'suite' || mark !== '';
  return details.error?.failureType !== 'subtestsFailed';
}

function ended(data, passed) {
  const mark = result(data, passed);
  if (!counts(data, mark, passed)) return;
  const name = [...around.slice(0, data.nesting), data.name].join(' › ');
  const place = data.file ? ` file="${xml(data.file)}"` : '';
  const line = data.file && data.line ? ` line="${data.line}"` : '';
  const time = (data.details?.duration_ms ?? 0) / 1000;
  cases.push(`<testcase name="${xml(name)}"${place}${line} time="${time}">${mark}</testcase>`);
}

function record({ type, data }) {
  if (type === 'test:start') {
    around.length = Math.min(around.length, data.nesting);
    around.push(data.name);
  } else if (type === 'test:pass' || type === 'test:fail') ended(data, type === 'test:pass');
}

function write() {
  const time = (process.uptime() - began).toFixed(3);
  const suite = `<testsuite name="node:test" tests="${cases.length}" time="${time}">`;
  writeFileSync(report, `<testsuites>${suite}\n${cases.join('\n')}\n</testsuite></testsuites>\n`);
}

// A fault of this file must not change how the tests end.
function quietly(act) {
  try {
    act();
  } catch {}
}

function recordedSpec() {
  const reporter = new spec();
  const { _transform: print } = reporter;
  reporter._transform = function (event, ...rest) {
    quietly(() => record(event));
    return print.call(this, event, ...rest);
  };
  return reporter;
}

// The same promises, so that nothing is printed later than without this file. Node calls a function
// without a prototype, and makes an object of others.
const recordedTap = (source) => {
  const events = source[Symbol.asyncIterator]();
  const next = () => {
    const coming = events.next();
    coming.then(({ value, done }) => done || quietly(() => record(value)), () => {});
    return coming;
  };
  return tap({ [Symbol.asyncIterator]: () => ({ next, return: () => events.return() }) });
};

const [major] = process.versions.node.split('.');
const isSpec = major >= 23 || process.stdout.isTTY;
restoreOptions();
process.on('exit', () => quietly(write));
export default isSpec ? recordedSpec() : recordedTap;
