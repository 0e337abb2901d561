#!/usr/bin/env python3
"""sign.py SIGV4_DIR PEER SEED - holds the signatures of sign_peer.c against those of sigv4.py, over
requests that nobody thought of: names of any letters, parameters with and without values, keys of any
kind, headers that come and go. A failure prints the request and what each side made of it."""
import random
import subprocess
import sys
import urllib.parse

sys.path.insert(0, sys.argv[1])
from sigv4 import check_examples, digest, signature  # noqa: E402 (found by the line before)

REQUESTS = 3000
LETTERS = 'abcXYZ019-._~ /+%&=?#$!*\'(),:;@[]{}|\\^`"<>\t\u00e4\u00df\u20ac\U0001f600'
ORDINARY = 'abcdefghijklmnopqrstuvwxyzABCXYZ0123456789'
QUERY_NAMES = ['uploads', 'uploadId', 'partNumber', 'prefix', 'list-type', 'max-keys', 'a', 'A',
               'continuation-token', 'x y', 'e\u00e4', 'a-b', 'a.b', 'a+b']


def text(rng, letters, least, most):
    return ''.join(rng.choice(letters) for _ in range(rng.randint(least, most)))


def make(rng):
    stamp = '20%02d%02d%02dT%02d%02d%02dZ' % (rng.randint(10, 60), rng.randint(1, 12),
                                              rng.randint(1, 28), rng.randint(0, 23),
                                              rng.randint(0, 59), rng.randint(0, 59))
    payload = digest(rng.randbytes(rng.choice([0, 1, 1000])))
    headers = {'host': text(rng, ORDINARY, 1, 30) + rng.choice(['', ':9000']),
               'x-amz-content-sha256': payload, 'x-amz-date': stamp}
    if rng.random() < 0.5:
        headers['x-amz-security-token'] = text(rng, ORDINARY + '+/=', 1, 900)
    if rng.random() < 0.3:
        headers['range'] = 'bytes=%d-' % rng.randint(0, 10**12)
    names = rng.sample(QUERY_NAMES, rng.randint(0, 4))
    return {'method': rng.choice(['GET', 'PUT', 'POST', 'DELETE', 'HEAD']),
            'name': '/' + text(rng, LETTERS, 0, 60), 'payload': payload, 'stamp': stamp,
            'region': text(rng, ORDINARY + '-', 1, 20), 'key_id': text(rng, ORDINARY, 1, 30),
            'secret': text(rng, LETTERS, 1, 60), 'headers': headers,
            'query': {name: rng.choice(['', text(rng, LETTERS, 1, 40)]) for name in names}}


def encode(value):
    return urllib.parse.quote(value, safe='-_.~')


def line_of(request):
    fields = [request[name] for name in ('method', 'name', 'payload', 'stamp', 'region', 'key_id',
                                         'secret')]
    for name in sorted(request['headers']):
        fields += [name, request['headers'][name]]
    after = []
    for name in sorted(request['query']):
        after += [name, request['query'][name]]
    return ' '.join([*(f.encode().hex() for f in fields), '-', *(f.encode().hex() for f in after)])


def expected(request):
    """The target and the header, without a look at what the other side answered."""
    query = '&'.join(encode(k) + '=' + encode(v) for k, v in sorted(request['query'].items()))
    target = '/'.join(encode(part) for part in request['name'].split('/'))
    target += '?' + query if request['query'] else ''
    scope = [request['stamp'][:8], request['region'], 's3', 'aws4_request']
    names = sorted(request['headers'])
    mac = signature(request['secret'], request['method'], target, request['headers'], names,
                    request['payload'], scope, request['stamp'])
    return '%s AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s' % (
        target, request['key_id'], '/'.join(scope), ';'.join(names), mac)


def main():
    rng = random.Random(int(sys.argv[3]))
    check_examples()
    with subprocess.Popen([sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as peer:
        for number in range(REQUESTS):
            request = make(rng)
            print(line_of(request), file=peer.stdin, flush=True)
            ours, theirs = peer.stdout.readline().rstrip('\n'), expected(request)
            if ours != theirs:
                sys.exit('request %d of seed %s: %r\nours    %s\ntheirs  %s'
                         % (number, sys.argv[3], request, ours, theirs))
        peer.stdin.close()
    if peer.returncode != 0:
        sys.exit('the peer ended with %d' % peer.returncode)
    print('%d signatures are the same' % REQUESTS)


main()
