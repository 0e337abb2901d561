// examples/node/holdfast.mjs beside an agentd that says what a script tells it to.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

import { EventStream, Holdfast, HoldfastError } from '../../examples/node/holdfast.mjs';

const TASK = '{"id":"t1","role":"r1","state":"pending","payload":"5","attempt":2,"checkpoint":{"seq":"17"}}';
const OK = 'HTTP/1.0 200 OK\r\n\r\n';
const refusal = (code) => `{"error":{"code":"${code}","message":"no","next":"do better"}}`;

// One connection after the other, each with the next answer; the last for all that follow. null: it
// takes the connection, and that is all.
async function agentd(t, ...answers) {
    const directory = mkdtempSync(join(tmpdir(), 'hft-node-'));
    const path = join(directory, 'a1.sock');
    const asked = [];
    const how = { takes: 0 }; // milliseconds before it answers
    const open = new Set();
    const server = net.createServer((socket) => {
        let text = '';
        open.add(socket);
        socket.on('error', () => {});
        socket.on('data', (piece) => {
            text += piece;
            const [head, body] = text.split('\r\n\r\n');
            const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
            if (body === undefined || body.length < length) return;
            asked.push(text);
            const answer = answers[Math.min(asked.length, answers.length) - 1];
            if (answer?.includes('X-Holdfast-Alive')) socket.write(answer); // and then no sign of life
            else if (answer !== null) setTimeout(() => socket.end(answer), how.takes);
        });
    });
    await new Promise((resolve) => server.listen(path, resolve));
    t.after(() => {
        open.forEach((socket) => socket.destroy());
        server.close();
        rmSync(directory, { recursive: true });
    });
    const client = (how) => new Holdfast({ socket: path, token: 'secret', patience: -1, ...how });
    return { path, asked, client, how };
}

const fails = (promise, code, part = '') =>
    assert.rejects(promise, (error) => {
        assert.ok(error instanceof HoldfastError, `${error.stack}`);
        assert.equal(error.code, code);
        assert.ok(error.message.includes(part), error.message);
        return true;
    });

test('events are the same in whatever pieces they come', () => {
    for (const [text, events] of [
        ['event: ping\ndata: {"id":"1"}\n\n', ['ping={"id":"1"}']],
        ['event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r:', ['a=1', 'b=2']],
        [': alive\n\nevent: a\n\ndata: one\ndata:two\ndata\n\n', ['=one\ntwo\n']],
        ['\ufeffdata: x\n\nid: 7\nnonsense\ndata:  y\n\n', ['=x', '= y']],
        ['data: cut off\n', []],
    ]) {
        for (let step = 1; step <= text.length; step++) {
            const stream = new EventStream();
            const told = [];
            for (let i = 0; i < text.length; i += step) told.push(...stream.feed(text.slice(i, i + step)));
            assert.deepEqual(told.map(({ name, data }) => `${name}=${data}`), events);
        }
    }
});

test('an event without end is refused', () => {
    assert.throws(() => new EventStream().feed(`data: ${'x'.repeat(65 << 10)}`), { code: 'ECORRUPT' });
    assert.throws(() => new EventStream().feed('data: 0123456789\n'.repeat(5000)), { code: 'ECORRUPT' });
});

test('what is refused has its code and sentence', async (t) => {
    for (const [answer, code, part] of [
        [`HTTP/1.0 400 x\r\n\r\n${refusal('invalid')}`, 'EINVAL', 'no (do better)'],
        [`HTTP/1.0 401 x\r\n\r\n${refusal('denied')}`, 'EDENIED', 'no (do better)'],
        [`HTTP/1.0 404 x\r\n\r\n${refusal('not_found')}`, 'ENOENT', 'no (do better)'],
        [`HTTP/1.0 409 x\r\n\r\n${refusal('fenced')}`, 'EFENCED', 'no (do better)'],
        [`HTTP/1.0 409 x\r\n\r\n${refusal('conflict')}`, 'ECONFLICT', 'no (do better)'],
        [`HTTP/1.0 413 x\r\n\r\n${refusal('too_large')}`, 'ELIMIT', 'no (do better)'],
        [`HTTP/1.0 429 x\r\n\r\n${refusal('limit')}`, 'ELIMIT', 'no (do better)'],
        [`HTTP/1.0 500 x\r\n\r\n${refusal('corrupt')}`, 'ECORRUPT', 'no (do better)'],
        ['HTTP/1.0 503 x\r\n\r\n<html>', 'EAGAIN', 'agentd answered 503'],
        [`${OK}[]`, 'ECORRUPT', 'no object'],
        [`${OK}{"id":"../x"}`, 'ECORRUPT', 'without its id'],
        [`${OK}{"id":"t1","attempt":"x"}`, 'ECORRUPT', 'attempt'],
        [`HTTP/1.0 200 x\r\nContent-Length: 900\r\n\r\n${TASK}`, 'EAGAIN', ''],
        ['SMTP\r\n\r\n', 'ECORRUPT', ''],
        ['', 'EAGAIN', ''],
    ]) {
        const { client } = await agentd(t, answer);
        await fails(client().task('t1'), code, part);
    }
});

test('what makes no sense is not sent', async (t) => {
    const { client, asked, path } = await agentd(t, `${OK}{}`);
    const hf = client();
    for (const call of [
        () => hf.start('T1'),
        () => hf.start('a/b'),
        () => hf.start(''),
        () => hf.start(undefined),
        () => hf.progress('t1', 100.5),
        () => hf.progress('t1', NaN),
        () => hf.state('asleep'),
        () => hf.state('busy', -1),
        () => hf.claim(-1),
        () => hf.submit('R'),
        () => hf.submit('r', '', { id: 'I' }),
        () => hf.saveFile('t1', 'state'),
        () => hf.save('t1', 5),
        () => hf.save('t1', [1, 2]),
        () => hf.save('t1', undefined),
        () => hf.save('t1', { length: 2 }),
    ]) {
        await fails(call(), 'EINVAL');
    }
    assert.throws(() => new Holdfast({ socket: path, token: 'a\r\nb' }), { code: 'EINVAL' });
    assert.deepEqual(asked, []);
});

test('what cannot be answered now is asked again', async (t) => {
    const { client, asked } = await agentd(
        t, '', 'HTTP/1.0 503 x\r\n\r\n', 'HTTP/1.0 429 x\r\n\r\n', `HTTP/1.0 201 x\r\n\r\n${TASK}`,
    );
    const task = await client({ patience: 20_000 }).submit('r1', '5');
    assert.deepEqual([task.id, task.attempt, task.checkpoint], ['t1', 2, 17]);
    assert.equal(asked.length, 4);
    assert.equal(asked[0], asked[3]); // with the same id
    const away = await agentd(t, 'HTTP/1.0 503 x\r\n\r\n');
    await fails(away.client({ patience: 300 }).start('t1'), 'EAGAIN');
    const silent = await agentd(t, null);
    await fails(silent.client({ timeout: 50 }).start('t1'), 'EAGAIN', 'in time');
});

test('a checkpoint that is not the one that was kept is none', async (t) => {
    const kept = (sha256) =>
        `HTTP/1.0 200 x\r\nContent-Length: 5\r\nX-Holdfast-Seq: 4\r\nX-Holdfast-Sha256: ${sha256}\r\n\r\nstate`;
    const good = kept(createHash('sha256').update('state').digest('hex'));
    const { client } = await agentd(t, good, kept('0'.repeat(64)), `${OK}state`, 'HTTP/1.0 404 x\r\n\r\n');
    const hf = client();
    const { data, seq } = await hf.load('t1');
    assert.deepEqual([`${data}`, seq], ['state', 4]);
    await fails(hf.load('t1'), 'ECORRUPT', 'digest');
    await fails(hf.load('t1'), 'ECORRUPT');
    assert.equal(await hf.load('t1'), null);
    const small = (await agentd(t, good)).client({ checkpointMax: 4 });
    await fails(small.load('t1'), 'ELIMIT');
});

test('a checkpoint may take longer than anything else', async (t) => {
    const kept = 'HTTP/1.0 200 x\r\nContent-Length: 5\r\nX-Holdfast-Seq: 4\r\nX-Holdfast-Sha256: ' +
        `${createHash('sha256').update('state').digest('hex')}\r\n\r\nstate`;
    const { client, asked, how } = await agentd(
        t, `${OK}{}`, `${OK}{"seq":"9"}`, `${OK}{"seq":"10"}`, kept,
    );
    how.takes = 200;
    const hf = client({ timeout: 50 });
    await fails(hf.start('t1'), 'EAGAIN', 'in time');
    assert.equal(await hf.save('t1', 'state'), 9);
    assert.equal(await hf.saveFile('t1', '/state'), 10);
    assert.equal(`${(await hf.load('t1')).data}`, 'state');
    assert.equal(asked.length, 4);
});

test('a save takes the bytes of whatever has them', async (t) => {
    const { client, asked } = await agentd(t, `${OK}{"seq":"9"}`);
    const bytes = Buffer.from('<state>!');
    const part = [bytes.buffer, bytes.byteOffset + 1, 5];
    const doubles = new Float64Array(new Uint8Array(Buffer.from('12345678')).buffer);
    for (const data of ['state', bytes.subarray(1, 6), new Uint8Array(...part), new DataView(...part), doubles]) {
        assert.equal(await client().save('t1', data), 9);
    }
    assert.deepEqual(asked.map((text) => text.split('\r\n\r\n')[1]), [...Array(4).fill('state'), '12345678']);
});

// A process of its own, as agentd is: else it would never hang up while something is being sent.
const HASTY = `require('node:net').createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.pause().write(process.argv[2], () => socket.destroy()));
}).listen(process.argv[1], () => console.log('listens'));`;

test('a refusal that comes before all is sent is heard', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'hft-node-'));
    const path = join(directory, 'a1.sock');
    const answer = `HTTP/1.1 413 x\r\nContent-Length: 64\r\n\r\n${refusal('too_large')}`;
    const server = spawn(process.execPath, ['-e', HASTY, path, answer]);
    t.after(() => {
        server.kill();
        rmSync(directory, { recursive: true });
    });
    await once(server.stdout, 'data');
    const hf = new Holdfast({ socket: path, token: 'secret', patience: -1 });
    for (let i = 0; i < 20; i++) await fails(hf.save('t1', Buffer.alloc(4 << 20)), 'ELIMIT', 'no (do better)');
});

test('much is sent when it may be, and to whoever does not say so', { timeout: 20_000 }, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'hft-node-'));
    const path = join(directory, 'a1.sock');
    const much = Buffer.alloc(4 << 20, 'x');
    const got = [];
    let says = true;
    const server = net.createServer((socket) => {
        let [head, size] = ['', 0];
        socket.on('error', () => {});
        socket.on('data', (piece) => {
            if (head === '') {
                head = `${piece}`;
                if (says) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
                return;
            }
            size += piece.length;
            if (size < much.length) return;
            got.push(size);
            socket.end('HTTP/1.1 201 x\r\nConnection: close\r\nContent-Length: 11\r\n\r\n{"seq":"9"}');
        });
    });
    await new Promise((resolve) => server.listen(path, resolve));
    t.after(() => {
        server.close();
        rmSync(directory, { recursive: true });
    });
    const hf = new Holdfast({ socket: path, token: 'secret', patience: -1 });
    assert.equal(await hf.save('t1', much), 9);
    says = false;
    assert.equal(await hf.save('t1', much), 9);
    assert.deepEqual(got, [much.length, much.length]);
});

test('a long save that loses its link is repeated', async (t) => {
    const { client, asked, how } = await agentd(t, '', `${OK}{"seq":"9"}`);
    how.takes = 400; // longer than all its patience
    assert.equal(await client({ timeout: 50, patience: 300 }).save('t1', 'state'), 9);
    assert.equal(asked.length, 2);
});

test('events are told and pings answered', async (t) => {
    const { client, asked } = await agentd(
        t,
        `${OK}event: ping\ndata: {"id":"3"}\n\nevent: unheard_of\ndata: -\n\nevent: stop\ndata: {"grace":"5s"}\n\n`,
        'HTTP/1.0 204 x\r\n\r\n',
        `${OK}event: thawed\ndata: {"frozenFor":"1.250s"}\n\n` +
            'event: jeopardy\ndata: {"until":"2026-01-31T08:15:30.250Z"}\n\nevent: task\ndata: {}\n\n',
    );
    const told = [];
    await fails((async () => {
        for await (const event of client().events()) told.push(event);
    })(), 'ECORRUPT', 'the event task');
    assert.deepEqual(told.map(({ kind }) => kind), ['ping', 'stop', 'thawed', 'jeopardy']);
    assert.deepEqual([told[1].ms, told[2].ms, told[3].until.getTime()], [5000, 1250, 1769847330250]);
    assert.match(asked[1], /^POST \/v1\/pong [^]*\{"id":"3"\}$/);
    const denied = await agentd(t, 'HTTP/1.0 401 x\r\n\r\n');
    await fails(denied.client().events().next(), 'EDENIED');
});

test('pings are answered while whoever takes events waits for something else', async (t) => {
    const ping = (id) => `event: ping\ndata: {"id":"${id}"}\n\n`;
    const { client, asked } = await agentd(
        t, `${OK}${ping(1)}event: task\ndata: {"id":"t1"}\n\n${ping(2)}${ping(3)}`, 'HTTP/1.0 204 x\r\n\r\n',
    );
    const told = [];
    const end = Date.now() + 10_000;
    for await (const { kind, id } of client().events()) {
        told.push(`${kind} ${id}`);
        if (kind === 'task') break;
        while (asked.length < 4 && Date.now() < end) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(told, ['ping 1', 'task t1']);
    const pongs = asked.slice(1).map((text) => JSON.parse(text.split('\r\n\r\n')[1]).id);
    assert.deepEqual(pongs.sort(), ['1', '2', '3']);
});

test('who is busy says until when, and is ready then', async (t) => {
    const { client, asked } = await agentd(t, `${OK}{}`);
    const hf = client();
    const said = () => asked.map((text) => JSON.parse(text.split('\r\n\r\n')[1]));
    const before = Date.now();
    assert.equal(await hf.busy(90_000, 'compiles', () => asked.length), 1);
    assert.deepEqual(said().map(({ state, reason }) => [state, reason]), [['busy', 'compiles'], ['ready', '']]);
    const until = Date.parse(said()[0].until);
    assert.ok(until >= before + 90_000 && until < before + 150_000, said()[0].until);
    await assert.rejects(hf.busy(90_000, '', () => JSON.parse('{')), SyntaxError);
    assert.equal(said()[3].state, 'ready');
    await fails(hf.busy(0, '', () => assert.fail('it has no end')), 'EINVAL');
    assert.equal(asked.length, 4);
});

test('whoever listens waits for an agentd that is not there yet', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'hft-node-'));
    const path = join(directory, 'a1.sock');
    const server = net.createServer((socket) => {
        socket.on('error', () => {});
        socket.end(`${OK}event: task\ndata: {"id":"t1"}\n\n`);
    });
    t.after(() => {
        server.close();
        rmSync(directory, { recursive: true });
    });
    const hf = new Holdfast({ socket: path, token: 'secret', patience: -1 });
    await fails(hf.start('t1'), 'EAGAIN', 'ENOENT');
    const event = hf.events().next();
    setTimeout(() => server.listen(path), 300); // after the first attempt
    assert.equal((await event).value.id, 't1');
});

test('a stream that shows no sign of life is begun anew', { timeout: 30_000 }, async (t) => {
    const { client } = await agentd(t, 'HTTP/1.1 200 OK\r\nX-Holdfast-Alive: 50\r\n\r\n: alive\n\n',
        `${OK}event: task\ndata: {"id":"t1"}\n\n`);
    assert.equal((await client().events().next()).value.id, 't1');
});

test('an interruption ends what waits and nothing else', async (t) => {
    const { client, asked } = await agentd(t, null, `${OK}{}`);
    const hf = client({ patience: 60_000 });
    const look = setInterval(() => {
        if (asked.length === 0) return; // the claim has not come yet
        clearInterval(look);
        hf.interrupt();
    }, 10);
    await fails(hf.claim(300_000), 'ECANCELED', 'interrupted');
    for await (const event of hf.events()) assert.fail(event.kind);
    for await (const task of hf.tasks()) assert.fail(task.id);
    await hf.complete('t1');
});
