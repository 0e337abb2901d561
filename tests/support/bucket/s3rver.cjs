// s3rver.cjs DIRECTORY BUCKET - a server of S3 on a free port, which it prints. It goes when its
// standard input is closed: with whoever started it.
const S3rver = require('s3rver');

const [directory, name] = process.argv.slice(2);

process.stdin.on('close', () => process.exit(0)).resume();
new S3rver({ address: '127.0.0.1', port: 0, silent: true, directory, configureBuckets: [{ name }] })
  .run()
  .then(({ port }) => console.log(port));
