// As talker.c, with examples/node/holdfast.mjs.

import { writeFileSync } from 'node:fs';

import { Holdfast, HoldfastError } from '../../../examples/node/holdfast.mjs';

const [directory, mode] = process.argv.slice(2);
const agentd = new Holdfast();
const say = (...words) => console.log(words.join(' '));
let held = ''; // what it ponders over, and gives back in the end

async function refused(promise) {
    try {
        await promise;
    } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        say(error.code, error.message);
        return;
    }
    throw new Error('it was not refused');
}

async function introduce() {
    const self = await agentd.self();
    const isSame = self.fencingToken === BigInt(process.env.HOLDFAST_INCARNATION);
    say('self', self.agent, self.role, isSame ? 'same' : 'other');
    const report = { status: 'healthy', phase: 'think"ing €', lastTool: 'grep', tokens: 1234, progress: 12.5 };
    const waiting = await agentd.heartbeat(report);
    await agentd.activity();
    say('waiting', waiting.interval > 0 ? 1 : 0, waiting.stop ? 'stop' : 'go on');
    await agentd.busy(600_000, 'the tests', () => {});
    await agentd.state('waiting', 0, 'for a person');
    await agentd.state('draining');
    await agentd.state('parked', 3_600_000, 'rate limit');
}

async function beRefused() {
    await refused(agentd.progress('t0', 101));
    await refused(agentd.start('T0'));
    await refused(agentd.task('t9'));
    await agentd.submit('other', 'x', { id: 't0' });
    const task = await agentd.submit('other', 'y', { id: 't0' });
    say('submitted', task.id, task.payload);
    await refused(agentd.complete('t0', 'z'));
    await refused(agentd.readNudge('q0'));
}

async function load(id) {
    const kept = await agentd.load(id);
    say(kept === null ? 'nothing kept' : `loaded ${kept.seq} ${kept.data}`);
}

async function saveFile(id) {
    writeFileSync(`${directory}/state`, 'from a file');
    say('saved', await agentd.saveFile(id, `${directory}/state`));
    await load(id);
}

async function work() {
    const task = await agentd.claim(30_000);
    if (task === null) return;
    say('claimed', task.id, task.payload, 'attempt', task.attempt);
    await agentd.start(task.id);
    await load(task.id);
    if (task.attempt === 0 && task.payload === '5') {
        const seq = await agentd.save(task.id, 'one');
        await agentd.progress(task.id, 20, 'step 1');
        await agentd.activity();
        say('saved', seq);
    } else if (task.payload === 'fail') {
        await agentd.fail(task.id, 'no use');
    } else {
        await saveFile(task.id);
        await agentd.complete(task.id, 'done');
        say('completed', task.id);
    }
}

async function ponder() {
    let task = null;
    while (task === null) task = await agentd.claim(30_000);
    await agentd.start(task.id);
    held = task.id;
    say('pondering', held);
}

async function listen() {
    for await (const event of agentd.events()) {
        const more = event.kind === 'task' ? event.id : event.ms > 0 ? 'length' : event.until !== null ? 'until' : '';
        say('event', event.kind, more);
        if (event.kind === 'task') await work();
        if (event.kind === 'nudge') {
            await agentd.readNudge(event.id);
            say('read', event.text);
        }
        if (event.kind === 'stop') {
            if (held !== '') {
                await agentd.release(held, 'too hard');
                say('released', held);
            }
            return;
        }
    }
}

process.on('SIGTERM', () => {}); // what the events say is to end it
process.on('SIGUSR1', () => agentd.interrupt());
if (mode === 'talk') {
    await introduce();
    await beRefused();
    await work();
    await listen();
} else if (mode === 'ponder') {
    await ponder();
    await listen();
} else if (mode === 'leave') {
    await agentd.leave('enough');
    await refused(agentd.claim(0));
} else {
    say('claiming');
    await refused(agentd.claim(300_000));
}
