// What an agent says to the agentd beside it, and hears from it. One file; Node.js 18 and nothing else.
//
//     import { Holdfast } from './holdfast.mjs';
//
//     const agentd = new Holdfast();
//     for await (const task of agentd.tasks()) {
//         const done = Number((await agentd.load(task.id))?.data ?? 0); // what the predecessor kept
//         await agentd.save(task.id, String(done + 1));
//         await agentd.complete(task.id, 'done');
//     }
//
// A call is answered when agentd has done it, which for what becomes of a task and for checkpoints
// means: when etcd has it. One that agentd cannot answer now, because it is being replaced or etcd is
// away, is repeated for `patience` milliseconds. Whatever goes wrong is a HoldfastError with one of the
// codes below and a sentence; EFENCED is the one to obey: stop, and touch nothing.
//
//     EFENCED    this process is not that agent any more: stop, touch nothing
//     ECONFLICT  the task is not ours, or not in a state for that: leave it alone
//     EINVAL     the request makes no sense; nothing was sent, or agentd said so
//     ENOENT     there is no such thing
//     EDENIED    another user, or a token of no process that runs
//     ELIMIT     too large, or too much at once for longer than we were patient
//     EAGAIN     agentd or etcd was away for longer than we were patient: nothing was changed, or it is
//                not known; the same may be asked again
//     ECANCELED  interrupt() was called
//     ECORRUPT   agentd's answer, or what it has stored, cannot be understood

import { createHash, randomUUID } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const CODES = {
    401: 'EDENIED', 404: 'ENOENT', 409: 'ECONFLICT', 413: 'ELIMIT', 429: 'ELIMIT', 503: 'EAGAIN',
};
const STATES = ['ready', 'busy', 'waiting', 'parked', 'draining'];
const NAME = /^[a-z0-9][a-z0-9._-]{0,252}$/;
const PAUSE = 200; // before something is asked again
const PAUSE_LONG = 1000; // when that was too often
const ALIVE = 15_000; // between two signs of life of a stream of events, unless agentd says how long
const MISSED = 3; // of them that did not come: it is dead
const EVENT_MAX = 64 << 10;
const TOLD_MAX = 1000; // events that nobody has taken yet
const WAIT_MAX = 300_000;
const MUCH = 1 << 20; // bytes that may be refused before all of them are sent
const GO_ON = 1000; // for how long agentd is waited for to say that they may
// agentd says nothing before all of a checkpoint is stored, or fetched: with a bucket that takes minutes.
const CHECKPOINT = { extra: 900_000 };

/**
 * @typedef {object} Task
 * @property {string} id
 * @property {string} role
 * @property {string} state
 * @property {string} payload
 * @property {string} result
 * @property {string} reason
 * @property {number} attempt
 * @property {number} priority
 * @property {number} checkpoint the number of the newest; 0: there is none
 * @property {object} record the whole of it, for what is not here
 *
 * @typedef {object} Checkpoint
 * @property {Buffer} data
 * @property {number} seq
 * @property {string} sha256
 *
 * @typedef {object} Event
 * @property {'ping'|'task'|'jeopardy'|'thawed'|'nudge'|'stop'} kind a ping is already answered
 * @property {string} id of a ping, task or nudge
 * @property {string} text of a nudge
 * @property {number} ms thawed: it stood still for so long; stop: end within that time
 * @property {Date|null} until jeopardy: from then on this process stands still
 *
 * @typedef {object} Waiting
 * @property {number} interval milliseconds until the next heartbeat is due
 * @property {number} nudges
 * @property {number} tasks
 * @property {boolean} stop
 */

/** `code` is the word of Holdfast's vocabulary, `next` what can be done about it. */
export class HoldfastError extends Error {
    constructor(code, message, next = '') {
        super(next ? `${message} (${next})` : message);
        this.name = 'HoldfastError';
        this.code = code;
        this.next = next;
    }
}

/** Server-sent events, out of text that comes in any pieces. */
export class EventStream {
    #rest = '';
    #name = '';
    #data = [];
    #size = 0;
    #isFirst = true;

    /** @returns {{name: string, data: string}[]} those that are complete now */
    feed(text) {
        const events = [];
        this.#rest += text;
        for (;;) {
            // A carriage return at the very end may be half of an end of a line.
            const end = /\r\n|\n|\r(?!$)/.exec(this.#rest);
            if (end === null) break;
            this.#take(this.#rest.slice(0, end.index), events);
            this.#rest = this.#rest.slice(end.index + end[0].length);
        }
        if (this.#rest.length > EVENT_MAX) throw corrupt('an event is too long');
        return events;
    }

    #take(line, events) {
        if (this.#isFirst && line.startsWith('\ufeff')) line = line.slice(1);
        this.#isFirst = false;
        if (line === '') {
            if (this.#data.length > 0) events.push({ name: this.#name, data: this.#data.join('\n') });
            this.#name = '';
            this.#data = [];
            this.#size = 0;
            return;
        }
        this.#size += line.length;
        if (this.#size > EVENT_MAX) throw corrupt('an event is too long');
        const [, name, value] = /^([^:]*)(?:: ?)?([^]*)$/.exec(line);
        if (name === 'event') this.#name = value;
        else if (name === 'data') this.#data.push(value);
    }
}

/** What was heard and not taken yet. */
class Queue {
    #items = [];
    #wake = () => {};

    get size() {
        return this.#items.length;
    }

    put(item) {
        this.#items.push(item);
        this.#wake();
    }

    async take() {
        while (this.#items.length === 0) {
            await new Promise((resolve) => {
                this.#wake = resolve;
            });
        }
        return this.#items.shift();
    }
}

export class Holdfast {
    #socket;
    #token;
    #timeout;
    #patience;
    #checkpointMax;
    #pongsByHand;
    #interrupted = new AbortController();

    /**
     * @param {object} [how] `socket` and `token` are what agentd has put into the environment, unless
     *     given; `timeout` and `patience` are milliseconds, for one answer and for how long a call is
     *     repeated.
     */
    constructor({
        socket = environment('HOLDFAST_SOCKET'),
        token = environment('HOLDFAST_TOKEN'),
        timeout = 30_000,
        patience = 60_000,
        checkpointMax = 64 << 20,
        pongsByHand = false,
    } = {}) {
        if (!/^[!-~]{1,256}$/.test(token)) {
            throw new HoldfastError('EINVAL', 'HOLDFAST_TOKEN: 1 to 256 visible ASCII characters');
        }
        this.#socket = socket;
        this.#token = token;
        this.#timeout = timeout;
        this.#patience = patience;
        this.#checkpointMax = checkpointMax;
        this.#pongsByHand = pongsByHand;
    }

    /**
     * Ends every wait, now and from now on: a claim fails with ECANCELED, tasks() and events() end, and
     * calls are not repeated any more. What is under way is still waited for.
     */
    interrupt() {
        this.#interrupted.abort();
    }

    // How the agent is.

    /**
     * Who this is. The fencing token grows from life to life; in jeopardy nothing new may begin.
     * @returns {Promise<{agent: string, role: string, task: string, fencingToken: bigint, ttl: number,
     *     jeopardy: boolean}>}
     */
    async self() {
        const got = await this.#json('GET', '/v1/self');
        return {
            agent: text(got, 'agent'),
            role: text(got, 'role'),
            task: text(got, 'task'),
            fencingToken: BigInt(integer(got, 'fencingToken')),
            ttl: duration(got, 'ttl'),
            jeopardy: got.jeopardy === true,
        };
    }

    /**
     * Says that the agent lives; from where it would notice that it hangs. Any of status (healthy, busy,
     * degraded), phase, lastTool, task, tokens, errors, sequence and progress (percent) may be said.
     * @returns {Promise<Waiting>}
     */
    heartbeat(report = {}) {
        return this.#beat('/v1/heartbeat', report);
    }

    /** The same, saying that it does something, even when that reads as before. */
    activity(report = {}) {
        return this.#beat('/v1/activity', report);
    }

    /**
     * For something long that does not let Node.js go on with anything else: for so many milliseconds no
     * ping has to be answered. It is ready again at the end.
     *
     *     const digest = await agentd.busy(120_000, 'hashes', () => hashSync(everything));
     *
     * @template T
     * @param {number} ms
     * @param {string} reason
     * @param {() => T|Promise<T>} work
     * @returns {Promise<T>} what the work has come to
     */
    async busy(ms, reason, work) {
        if (!(ms > 0)) throw invalid('for how long it is busy has to be said');
        await this.state('busy', ms, reason);
        let result;
        try {
            result = await work();
        } catch (error) {
            await this.state('ready').catch(() => {}); // what went wrong in there is what counts
            throw error;
        }
        await this.state('ready');
        return result;
    }

    /**
     * Announces ready, busy, waiting (for a person), parked (on a rate limit) or draining, for so many
     * milliseconds; 0: its end is not known, and agentd sets one.
     */
    async state(state, ms = 0, reason = '') {
        if (!STATES.includes(state)) throw invalid(`state: one of ${STATES.join(', ')}`);
        if (!(ms >= 0 && ms <= 10 * 365 * 86_400_000)) throw invalid('a state may last for 0 to ten years');
        const until = ms > 0 ? new Date(Date.now() + ms).toISOString() : undefined;
        await this.#json('POST', '/v1/state', { state, until, reason });
    }

    /**
     * Says that this agent has read a nudge, by the id of its event. That is no answer: progress, a
     * state or an activity is.
     */
    async readNudge(id) {
        await this.#json('POST', `/v1/nudges/${named(id)}/read`);
    }

    /** Says goodbye, so that the end of this process is no crash; it has 30 s to go. */
    async leave(reason = '') {
        await this.#json('POST', '/v1/leave', { reason });
    }

    // Tasks.

    /**
     * Every task that this agent gets, started, until it is interrupted.
     * @returns {AsyncGenerator<Task>}
     */
    async *tasks(wait = 30_000) {
        while (!this.#interrupted.signal.aborted) {
            const task = await unless('ECANCELED', this.claim(wait));
            if (task === null) continue;
            // One that was taken away in this very moment is left alone.
            const started = await unless('ECONFLICT', this.start(task.id));
            // A payload that is too long for the record is shown by the claim alone.
            if (started !== null) yield { ...started, payload: task.payload };
        }
    }

    /**
     * Takes a task: the one that this agent already has, the one that it was started to resume, or one of
     * its role, for which it waits so many milliseconds. null: there is none.
     * @returns {Promise<Task|null>}
     */
    async claim(wait = 30_000) {
        if (!(wait >= 0)) throw invalid('wait: not below 0');
        const ms = Math.min(wait, WAIT_MAX);
        const body = { wait: `${(ms / 1000).toFixed(3)}s` };
        const got = await this.#json('POST', '/v1/tasks/claim', body, { extra: ms, waits: true });
        return got === null ? null : taskOf(got);
    }

    /**
     * A new task, or the one that has this id already. The id is made up here, unless given, so that what
     * has to be asked twice is still one task.
     * @returns {Promise<Task>}
     */
    async submit(role, payload = '', { id = randomUUID(), priority = 0, labels = {} } = {}) {
        const body = { id: named(id), role: named(role), payload, priority, labels };
        return taskOf(await this.#json('POST', '/v1/tasks', body));
    }

    /** @returns {Promise<Task>} */
    async task(id) {
        return taskOf(await this.#json('GET', `/v1/tasks/${named(id)}`));
    }

    /** @returns {Promise<Task>} */
    async start(id) {
        return taskOf(await this.#json('POST', `/v1/tasks/${named(id)}/start`));
    }

    async progress(id, percent, note = '') {
        if (!(percent >= 0 && percent <= 100)) throw invalid('percent: 0 to 100');
        await this.#json('POST', `/v1/tasks/${named(id)}/progress`, { percent, note });
    }

    async complete(id, result = '') {
        await this.#json('POST', `/v1/tasks/${named(id)}/complete`, { result });
    }

    async fail(id, reason = '') {
        await this.#json('POST', `/v1/tasks/${named(id)}/fail`, { reason });
    }

    /** Back to whoever wants it. */
    async release(id, reason = '') {
        await this.#json('POST', `/v1/tasks/${named(id)}/release`, { reason });
    }

    // Checkpoints.

    /**
     * Keeps what the work has come to.
     * @param {string|ArrayBufferView} data
     * @returns {Promise<number>} its number
     */
    async save(id, data) {
        const path = `/v1/tasks/${named(id)}/checkpoint`;
        const got = await this.#json('PUT', path, bytesOf(data), CHECKPOINT);
        return Number(integer(got, 'seq'));
    }

    /** The same from a file that agentd reads itself: an absolute path without symbolic links. */
    async saveFile(id, path) {
        if (!path.startsWith('/')) throw invalid('path: from the root on, since agentd is elsewhere');
        const got = await this.#json('PUT', `/v1/tasks/${named(id)}/checkpoint`, { path }, CHECKPOINT);
        return Number(integer(got, 'seq'));
    }

    /**
     * The newest that is whole (agentd has compared it with its SHA-256, and so do we) and has killed no
     * successor. null: begin at the beginning.
     * @returns {Promise<Checkpoint|null>}
     */
    async load(id) {
        const path = `/v1/tasks/${named(id)}/checkpoint`;
        const how = { ...CHECKPOINT, limit: this.#checkpointMax };
        const answer = await unless('ENOENT', this.#ask('GET', path, undefined, how));
        if (answer === null) return null;
        const { headers, body: data } = answer;
        const [seq, sha256] = [headers['x-holdfast-seq'], headers['x-holdfast-sha256']];
        if (!/^\d+$/.test(seq ?? '') || sha256 === undefined) {
            throw corrupt('a checkpoint without number or digest');
        }
        if (createHash('sha256').update(data).digest('hex') !== sha256) {
            throw corrupt('the checkpoint is not the one that was kept: its digest is another one');
        }
        return { data, seq: Number(seq), sha256 };
    }

    // What the agent is told.

    /**
     * Every event, until it is interrupted. Whoever has begun to take them is pinged from then on, every
     * few seconds. As long as Node.js goes round that is answered, also while the body of `for await` waits
     * for something; before something long that does not let it, see busy. A connection that is lost is
     * made anew.
     * @returns {AsyncGenerator<Event>}
     */
    async *events() {
        const { signal } = this.#interrupted;
        while (!signal.aborted) {
            try {
                yield* this.#listen();
            } catch (error) {
                if (signal.aborted) return;
                if (error.code !== 'EAGAIN' && error.code !== 'ELIMIT') throw error;
            }
            await this.#pause(PAUSE);
        }
    }

    async *#listen() {
        const response = await this.#open('GET', '/v1/events', undefined, this.#timeout, true);
        const told = new Queue();
        try {
            if (response.statusCode !== 200) {
                throw refusal(response.statusCode, await whole(response, EVENT_MAX));
            }
            const alive = /^[1-9]\d{0,6}$/.exec(response.headers['x-holdfast-alive'] ?? '');
            response.socket.setTimeout(MISSED * Number(alive?.[0] ?? ALIVE),
                () => response.destroy(unavailable('no sign of life')));
            this.#hear(response, told);
            for (;;) {
                const { event, error } = await told.take();
                if (error !== undefined) throw error;
                if (event === undefined) return;
                yield event;
            }
        } catch (error) {
            throw translate(error);
        } finally {
            response.destroy();
        }
    }

    /** Reads ahead of whoever takes events, so that pings are answered meanwhile. Never fails. */
    async #hear(response, told) {
        const stream = new EventStream();
        const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
        try {
            for await (const piece of response) {
                for (const { name, data } of stream.feed(decode(decoder, piece))) {
                    const event = eventOf(name, data);
                    const isAnswered = event?.kind === 'ping' && !this.#pongsByHand;
                    if (isAnswered) this.pong(event.id).catch(() => {}); // a lost one is asked for anew
                    // Old pings are no news.
                    if (event !== null && !(isAnswered && told.size > 0)) told.put({ event });
                }
                if (told.size > TOLD_MAX) throw new HoldfastError('ELIMIT', 'nobody takes the events');
            }
            told.put({});
        } catch (error) {
            told.put({ error: translate(error) });
        }
    }

    /** Answers a ping by hand. */
    async pong(id) {
        // One that comes too late is none: nobody tries for long.
        const extra = Math.min(0, 2000 - this.#timeout);
        await this.#json('POST', '/v1/pong', { id }, { once: true, extra });
    }

    // Requests.

    async #beat(path, report) {
        const got = await this.#json('POST', path, report);
        const waiting = got.waiting ?? {};
        return {
            interval: duration(got, 'interval'),
            nudges: Number(integer(waiting, 'nudges')),
            tasks: Number(integer(waiting, 'tasks')),
            stop: waiting.stop === true,
        };
    }

    /** True when it is time to ask again; false when it was interrupted. */
    async #pause(ms) {
        try {
            await sleep(ms, undefined, { signal: this.#interrupted.signal });
            return true;
        } catch {
            return false;
        }
    }

    async #json(method, path, body, how) {
        const { status, body: data } = await this.#ask(method, path, body, how);
        if (status === 204) return null;
        try {
            const got = JSON.parse(data);
            if (typeof got === 'object' && got !== null && !Array.isArray(got)) return got;
        } catch (error) {
            throw corrupt(error.message);
        }
        throw corrupt('no object');
    }

    /** Asks until there is an answer or patience ends. */
    async #ask(method, path, body, { extra = 0, waits = false, once = false, limit = 8 << 20 } = {}) {
        const most = this.#timeout + extra;
        for (let spent = 0; ; ) {
            const began = performance.now();
            let pause = PAUSE;
            let failure;
            try {
                const response = await this.#open(method, path, body, most, waits);
                const { statusCode: status, headers } = response;
                const data = await whole(response, limit);
                if (status >= 200 && status < 300) return { status, headers, body: data };
                failure = refusal(status, data);
                if (status === 429) pause = PAUSE_LONG;
                else if (status !== 503) throw failure;
            } catch (error) {
                failure = translate(error);
                if (failure.code !== 'EAGAIN') throw failure;
            }
            // What a freeze of this process has added is not charged, nor what this may take beyond the
            // ordinary: whoever thaws, or loses the link in the middle of a long one, is patient still.
            spent += Math.min(performance.now() - began, this.#timeout) + pause;
            if (once || spent > this.#patience || !(await this.#pause(pause))) throw failure;
        }
    }

    /** One request over the Unix socket that agentd has made for this agent, up to the head of its answer. */
    #open(method, path, body, ms, waits) {
        const isBytes = Buffer.isBuffer(body);
        const data = body === undefined || isBytes ? body : Buffer.from(JSON.stringify(body));
        const headers = { Authorization: `Bearer ${this.#token}`, Connection: 'close' };
        const type = isBytes ? 'application/octet-stream' : 'application/json';
        if (data !== undefined) headers['Content-Type'] = type;
        if (method !== 'GET') headers['Content-Length'] = data?.length ?? 0;
        // Of what is refused while it is sent Node.js hears no answer, but that the connection is lost.
        if (data?.length >= MUCH) headers.Expect = '100-continue';
        const signal = waits ? this.#interrupted.signal : undefined;
        return new Promise((resolve, reject) => {
            const where = { socketPath: this.#socket, method, path, headers, agent: false };
            const request = http.request({ ...where, timeout: ms, signal }, resolve);
            request.on('timeout', () => request.destroy(unavailable('agentd did not answer in time')));
            request.on('error', (error) => reject(translate(error)));
            const send = () => request.end(data);
            if (headers.Expect === undefined) {
                send();
            } else {
                const timer = setTimeout(send, GO_ON);
                request.once('continue', send);
                for (const end of ['continue', 'response', 'close']) request.once(end, () => clearTimeout(timer));
            }
        });
    }
}

const invalid = (message) => new HoldfastError('EINVAL', message);
const unavailable = (message) => new HoldfastError('EAGAIN', message);
const corrupt = (message) => new HoldfastError('ECORRUPT', `agentd's answer: ${message}`);

function environment(name) {
    const value = process.env[name];
    if (value) return value;
    throw new HoldfastError('ENOENT', `${name} is not set: agentd sets it for the agents that it starts`);
}

function named(name) {
    if (typeof name === 'string' && NAME.test(name)) return name;
    throw invalid(`${JSON.stringify(name)} is no name: a-z, 0-9, '.', '_' and '-', at most 253 characters`);
}

/** As they lie in memory, whatever elements they make. */
function bytesOf(data) {
    if (typeof data === 'string') return Buffer.from(data);
    if (ArrayBuffer.isView(data)) { // a copy: who saves may go on changing it
        return Buffer.from(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    }
    throw invalid('data: a text, or a view of bytes');
}

/** The value of the promise; null when it failed with that code. */
async function unless(code, promise) {
    try {
        return await promise;
    } catch (error) {
        if (error.code === code && error instanceof HoldfastError) return null;
        throw error;
    }
}

/** The body of an answer. */
async function whole(response, limit) {
    const parts = [];
    let size = 0;
    for await (const part of response) {
        parts.push(part);
        size += part.length;
        if (size > limit) {
            throw new HoldfastError('ELIMIT', "agentd's answer is longer than what was allowed for");
        }
    }
    if (!response.complete) throw unavailable('agentd closed the connection in the middle of its answer');
    return Buffer.concat(parts);
}

/** What went wrong with a connection, in our own words. */
function translate(error) {
    if (error instanceof HoldfastError) return error;
    if (error.name === 'AbortError') return new HoldfastError('ECANCELED', 'interrupted');
    if (error.code === 'EACCES') return new HoldfastError('EDENIED', error.message);
    if (/^HPE_/.test(error.code ?? '')) return corrupt(error.message);
    if (error.syscall !== undefined || ['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'].includes(error.code)) {
        return unavailable(error.message); // agentd is being replaced
    }
    return error; // none of ours
}

/** What an answer that is not 2xx means. */
function refusal(status, body) {
    const code = CODES[status] ?? (status >= 400 && status < 500 ? 'EINVAL' : 'ECORRUPT');
    try {
        const { code: word, message, next = '' } = JSON.parse(body).error;
        const isFenced = status === 409 && word === 'fenced';
        return new HoldfastError(isFenced ? 'EFENCED' : code, `${message}`, `${next}`);
    } catch {
        return new HoldfastError(code, `agentd answered ${status}`);
    }
}

function decode(decoder, piece) {
    try {
        return decoder.decode(piece, { stream: true });
    } catch {
        throw corrupt('an event is not UTF-8');
    }
}

function text(record, name) {
    const value = record[name] ?? '';
    if (typeof value !== 'string') throw corrupt(`${name} is no text`);
    return value;
}

/** 64-bit integers are strings in JSON. */
function integer(record, name) {
    const value = `${record[name] ?? 0}`;
    if (!/^-?\d+$/.test(value)) throw corrupt(`${name} is no integer`);
    return value;
}

function duration(record, name) {
    const value = text(record, name);
    if (value === '') return 0;
    if (!/^-?\d+(\.\d+)?s$/.test(value)) throw corrupt(`${name} is no duration`);
    return Math.round(Number(value.slice(0, -1)) * 1000);
}

function taskOf(record) {
    if (!NAME.test(text(record, 'id'))) throw corrupt('a task without its id');
    return {
        id: record.id,
        role: text(record, 'role'),
        state: text(record, 'state'),
        payload: text(record, 'payload'),
        result: text(record, 'result'),
        reason: text(record, 'reason'),
        attempt: Number(integer(record, 'attempt')),
        priority: Number(integer(record, 'priority')),
        checkpoint: Number(integer(record.checkpoint ?? {}, 'seq')),
        record,
    };
}

/** null: one that this version does not know. */
function eventOf(kind, data) {
    if (!['ping', 'task', 'jeopardy', 'thawed', 'nudge', 'stop'].includes(kind)) return null;
    let got;
    try {
        got = JSON.parse(data);
    } catch {
        throw corrupt(`the event ${kind} makes no sense`);
    }
    const until = got?.until === undefined ? null : new Date(got.until);
    const hasId = typeof got?.id === 'string' && got.id !== '';
    if (typeof got !== 'object' || got === null || (until !== null && Number.isNaN(until.getTime())) ||
        (['ping', 'task', 'nudge'].includes(kind) && !hasId)) {
        throw corrupt(`the event ${kind} makes no sense`);
    }
    const ms = duration(got, kind === 'stop' ? 'grace' : 'frozenFor');
    return { kind, id: text(got, 'id'), text: text(got, 'text'), ms, until };
}
