#!/usr/bin/env python3
"""bucket.py NODE_DIR DIRECTORY KEY_ID SECRET [CERTIFICATE KEY] - a bucket for tests, over TLS if it has
a certificate.

s3rver does the work (NODE_DIR has its node_modules). It believes every signature, so this stands
in front of it and does not (sigv4.py, held against Amazon's published examples before the first
request). What s3rver cannot (abort an upload, list uploads) is done here, in its own files.

In DIRECTORY: `port` appears when everything is ready; `log` has one line per request; a file of
these names is a fault, and goes when it has happened as often as it says:

    busy N     status 503, N times          cut N      half an object, N times
    lost N     an upload is joined, and nobody is told, N times
    late N     joining fails with status 200, N times
    parts N    every part from number N on fails with 500 (stays)
    stall N    nobody is answered who sends a part from number N on (stays)
    hang       nobody is answered (stays)   skew       the clock is an hour ahead (stays)
    old        uploads are two days old (stays)
    keep       nobody is answered who removes an object, and the log says so (stays)
    page N     a list has no more than N names (stays)
    token T    the key is only lent, and T goes with it (stays)
    stranger   whoever asks for an object gets a page of somebody in between (stays)
"""
import base64
import hmac
import http.client
import http.server
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

from sigv4 import check_examples, digest, signature

BUCKET = 'checkpoints'
REGION = 'us-east-1'
NODE_DIR, DIRECTORY, KEY_ID, SECRET = sys.argv[1:5]
DATA = os.path.join(DIRECTORY, 'data')
UPLOADS = os.path.join(DATA, BUCKET, '._S3rver_uploads')
lock = threading.Lock()


# The signature.

def refusal(method, target, headers, body):
    """None, or what is wrong with a request, as S3 calls it."""
    match = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/(s3)/'
                         r'(aws4_request), ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})',
                         headers.get('authorization', ''))
    stamp = headers.get('x-amz-date', '')
    if match is None or re.fullmatch(r'\d{8}T\d{6}Z', stamp) is None:
        return 'AccessDenied'
    key_id, *scope, names, given = match.groups()
    names = names.split(';')
    if key_id != KEY_ID:
        return 'InvalidAccessKeyId'
    if scope[1] != REGION:
        return 'AuthorizationHeaderMalformed'
    token = said('token')
    if token is not None and headers.get('x-amz-security-token') != token:
        return 'InvalidToken'
    now = time.time() + (3600 if fault('skew') else 0)
    then = time.mktime(time.strptime(stamp, '%Y%m%dT%H%M%SZ')) - time.timezone
    if abs(now - then) > 900 or scope[0] != stamp[:8]:
        return 'RequestTimeTooSkewed'
    payload = headers.get('x-amz-content-sha256', '')
    if payload != digest(body):
        return 'XAmzContentSHA256Mismatch'
    must = {'host', *(name for name in headers if name.startswith('x-amz-'))}
    if names != sorted(names) or not must <= set(names):
        return 'AccessDenied'
    want = signature(SECRET, method, target, headers, names, payload, scope, stamp)
    return None if hmac.compare_digest(want, given) else 'SignatureDoesNotMatch'


# Faults.

def said(name):
    """What a fault that stays says; None: there is none."""
    try:
        with open(os.path.join(DIRECTORY, name)) as file:
            return file.read()
    except FileNotFoundError:
        return None


def fault(name, number=None):
    """Whether it is to happen, once more; one that stays has no count, or has a number to reach."""
    path = os.path.join(DIRECTORY, name)
    with lock:
        try:
            with open(path) as file:
                text = file.read().strip()
        except FileNotFoundError:
            return False
        if number is not None:
            return number >= int(text)
        if text == '':
            return True
        left = int(text) - 1
        if left > 0:
            with open(path + '.new', 'w') as file:
                file.write(str(left))
            os.rename(path + '.new', path)
        else:
            os.unlink(path)
        return True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def note(self, status):
        with lock, open(os.path.join(DIRECTORY, 'log'), 'a') as log:
            log.write('%s %s %d%s\n' % (self.command, self.path, status, self.why))

    def answer(self, status, body=b'', headers=(), length=None):
        self.note(status)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body) if length is None else length))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def refuse(self, status, code):
        self.why += ' ' + code
        self.answer(status, ('<?xml version="1.0"?><Error><Code>%s</Code>'
                             '<Message>no</Message><Region>%s</Region></Error>'
                             % (code, REGION)).encode())

    def target(self, headers):
        """The path as s3rver knows it: with the bucket, and with no token, which it cannot make."""
        virtual = headers.get('host', '').startswith(BUCKET + '.')
        path, _, query = self.path.partition('?')
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        pairs = [('start-after', base64.b64decode(v).decode()) if k == 'continuation-token'
                 else (k, v) for k, v in pairs]
        return (('/' + BUCKET if virtual else '') + path
                + ('?' + urllib.parse.urlencode(pairs) if pairs else ''))

    def first_page(self, data, most):
        """So many of the names of a list, and where to go on."""
        names = list(re.finditer(rb'<Contents>.*?<Key>(.*?)</Key>.*?</Contents>', data, re.S))
        if len(names) <= most:
            return data
        token = base64.b64encode(names[most - 1].group(1))
        data = data[:names[most].start()] + data[names[-1].end():]
        return data.replace(b'<IsTruncated>false</IsTruncated>',
                            b'<IsTruncated>true</IsTruncated><NextContinuationToken>' + token
                            + b'</NextContinuationToken>')

    def forward(self, headers, body):
        peer = http.client.HTTPConnection('127.0.0.1', PORT)
        skip = {'host', 'connection', 'content-length', 'transfer-encoding'}
        peer.request(self.command, self.target(headers), body or None,
                     {k: v for k, v in headers.items() if k not in skip})
        reply = peer.getresponse()
        data = reply.read()
        length = reply.getheader('Content-Length') if self.command == 'HEAD' else None
        skip |= {'date', 'server'}
        kept = [(k, v) for k, v in reply.getheaders() if k.lower() not in skip]
        peer.close()
        return reply.status, data, kept, length

    def list_uploads(self, prefix):
        begun = time.time() - (172800 if fault('old') else 0)
        text = '<ListMultipartUploadsResult>'
        for upload in os.listdir(UPLOADS) if os.path.isdir(UPLOADS) else []:
            with open(os.path.join(UPLOADS, upload, 'key')) as file:
                key = file.read()
            if key.startswith(prefix):
                text += ('<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated>'
                         '</Upload>' % (key, upload, time.strftime('%Y-%m-%dT%H:%M:%S.000Z',
                                                                   time.gmtime(begun))))
        self.answer(200, (text + '</ListMultipartUploadsResult>').encode())

    def abort(self, upload):
        path = os.path.join(UPLOADS, upload)
        if '/' in upload or not os.path.isdir(path):
            self.refuse(404, 'NoSuchUpload')
            return
        shutil.rmtree(path)
        self.answer(204)

    def serve(self):
        self.why = ''
        headers = {k.lower(): v for k, v in self.headers.items()}
        length = int(headers.get('content-length', 0))
        body = self.rfile.read(length)
        if len(body) < length:  # who sent it was killed meanwhile
            self.close_connection = True
            return
        query = dict(urllib.parse.parse_qsl(self.path.partition('?')[2], keep_blank_values=True))
        while fault('hang') or 'partNumber' in query and fault('stall', int(query['partNumber'])):
            time.sleep(0.05)
        if self.command == 'DELETE' and not query and fault('keep'):
            self.why = ' kept'
            self.note(0)
            while fault('keep'):
                time.sleep(0.05)
            self.why = ''
        wrong = refusal(self.command, self.path, headers, body)
        if wrong is not None:
            self.refuse(400 if wrong.endswith('Mismatch') else 403, wrong)
        elif self.command == 'GET' and not query and fault('stranger'):
            self.answer(200, b'<html>Welcome</html>')
        elif fault('busy'):
            self.refuse(503, 'SlowDown')
        elif 'partNumber' in query and fault('parts', int(query['partNumber'])):
            self.refuse(500, 'InternalError')
        elif self.command == 'DELETE' and 'uploadId' in query:
            self.abort(query['uploadId'])
        elif self.command == 'GET' and 'uploads' in query:
            self.list_uploads(query.get('prefix', ''))
        elif 'uploadId' in query and not os.path.isdir(os.path.join(UPLOADS, query['uploadId'])):
            self.refuse(404, 'NoSuchUpload')
        elif self.command == 'POST' and 'uploadId' in query and fault('late'):
            self.refuse(200, 'InternalError')
        else:
            self.pass_on(query, headers, body)

    def pass_on(self, query, headers, body):
        status, data, kept, length = self.forward(headers, body)
        joins = self.command == 'POST' and 'uploadId' in query
        if 'list-type' in query and said('page') is not None:
            data = self.first_page(data, int(said('page')))
        if joins and fault('lost'):
            self.close_connection = True
        elif self.command == 'GET' and not query and status == 200 and fault('cut'):
            self.why = ' cut'
            self.answer(status, data[:len(data) // 2], kept, len(data))
            self.close_connection = True
        else:
            self.answer(status, data, kept, length)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Who is killed says no goodbye, and who does not believe us says so.
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


check_examples()
os.makedirs(DATA, exist_ok=True)
here = os.path.dirname(os.path.abspath(__file__))
node = subprocess.Popen(['node', os.path.join(here, 's3rver.cjs'), DATA, BUCKET],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        env={**os.environ, 'NODE_PATH': os.path.join(NODE_DIR, 'node_modules')})
PORT = int(node.stdout.readline())
server = Server(('127.0.0.1', 0), Handler)
if len(sys.argv) > 5:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[5:7])
    # The handshake belongs into the thread of its connection: a client that makes none is not waited for.
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
with open(os.path.join(DIRECTORY, 'port.new'), 'w') as file:
    file.write('%d\n' % server.server_address[1])
os.rename(os.path.join(DIRECTORY, 'port.new'), os.path.join(DIRECTORY, 'port'))
server.serve_forever()
