"""Signature Version 4, written from Amazon's specification alone and not from our C code, which is held
against it. It is held itself against Amazon's published examples (`check_examples`)."""
import hashlib
import hmac
import urllib.parse


def digest(data):
    return hashlib.sha256(data).hexdigest()


def encode(text):
    return urllib.parse.quote(text, safe='-_.~')


def canonical_query(query):
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    return '&'.join('='.join(pair) for pair in sorted((encode(k), encode(v)) for k, v in pairs))


def canonical_path(path):
    return '/'.join(encode(urllib.parse.unquote(part)) for part in path.split('/'))


def signature(secret, method, target, headers, names, payload, scope, stamp):
    path, _, query = target.partition('?')
    lines = ['%s:%s\n' % (name, ' '.join(headers.get(name, '').split())) for name in names]
    request = '\n'.join([method, canonical_path(path), canonical_query(query), ''.join(lines),
                         ';'.join(names), payload])
    text = '\n'.join(['AWS4-HMAC-SHA256', stamp, '/'.join(scope), digest(request.encode())])
    key = ('AWS4' + secret).encode()
    for step in [*scope, text]:
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    return key.hex()


def check_examples():
    """Amazon's, from the API reference of S3."""
    scope = ['20130524', 'us-east-1', 's3', 'aws4_request']
    stamp = '20130524T000000Z'
    empty = digest(b'')
    common = {'host': 'examplebucket.s3.amazonaws.com', 'x-amz-content-sha256': empty,
              'x-amz-date': stamp}
    examples = [
        ('/test.txt', {'range': 'bytes=0-9'},
         'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41'),
        ('/?lifecycle', {},
         'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'),
        ('/?max-keys=2&prefix=J', {},
         '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'),
    ]
    for target, more, want in examples:
        headers = {**common, **more}
        got = signature('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'GET', target, headers,
                        sorted(headers), empty, scope, stamp)
        assert got == want, (target, got, want)
