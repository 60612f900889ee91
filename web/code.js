// code.js - a program that sends a message like this one, in several languages: to copy.
import { root, session } from './api.js';

const FIELDS = ['key', 'share', 'correlation_id', 'content_type', 'attributes'];

const shell = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;
const string = (text) => JSON.stringify(String(text)); // is also a string of Python
// As the client library and the command line take it.
const place = () => (root.protocol === 'https:' ? root.origin : root.host);

// Bytes as a string of C: every other byte is octal, always three digits, and ? never begins a trigraph.
function cString(data) {
  const named = { 9: '\\t', 10: '\\n', 13: '\\r', 34: '\\"', 63: '\\?', 92: '\\\\' };
  return `"${[...data].map((b) => named[b] || (b > 31 && b < 127 ? String.fromCharCode(b) : `\\${b.toString(8).padStart(3, '0')}`)).join('')}"`;
}
const cText = (text) => cString(new TextEncoder().encode(text));

function curl(m, item) {
  const token = session.token ? ' -H "Authorization: Bearer $TOKEN"' : '';
  return `curl -s ${shell(new URL('enqueue', root))}${token} -d ${shell(JSON.stringify(item))}`;
}

function cli(m, item, text) {
  const flags = [['--key', m.key], ['--share', m.share], ['--correlation-id', m.correlation_id], ['--content-type', m.content_type], ['--attributes', m.attributes && JSON.stringify(m.attributes)]];
  const given = flags.filter(([, value]) => value !== undefined).map(([name, value]) => ` ${name} ${shell(value)}`).join('');
  return `sluice push --server ${place()} --namespace ${m.namespace} ${m.queue} --priority ${m.priority}${given} ${text === null ? '--file BODY' : `-- ${shell(text)}`}`;
}

function python(m, item) {
  const token = session.token ? ', headers={"Authorization": "Bearer " + os.environ["TOKEN"]}' : '';
  return [`import json${token && ', os'}, urllib.request`, `item = json.loads(${string(JSON.stringify(item))})`,
    `request = urllib.request.Request(${string(new URL('enqueue', root))}, json.dumps([item]).encode()${token})`, 'print(urllib.request.urlopen(request).read().decode())'].join('\n');
}

// docs/sqs.md: a key is a group of a FIFO queue, a share that of another one.
function boto3(m, item, text) {
  const fifo = m.queue.endsWith('.fifo'), group = fifo ? m.key : m.share;
  const given = Object.entries(m.attributes || {}).map(([name, value]) => `    ${string(name)}: {"DataType": "String", "StringValue": ${string(typeof value === 'string' ? value : JSON.stringify(value))}},`);
  return ['import boto3', '',
    session.token ? '# The access key is one of the file auth.aws_keys of the server.' : '# Any access key is accepted.',
    `sqs = boto3.client("sqs", endpoint_url=${string(new URL(`sqs/${m.namespace}`, root))}, region_name="us-east-1",`, '                   aws_access_key_id="any", aws_secret_access_key="any")',
    !fifo && m.key !== undefined && '# Without its key: only queues with a name that ends in .fifo have groups that are keys.',
    `url = sqs.get_queue_url(QueueName=${string(m.queue)})["QueueUrl"]`,
    `sent = sqs.send_message(QueueUrl=url, MessageBody=${string(text)}${group === undefined ? '' : `, MessageGroupId=${string(group)}`}, MessageAttributes={`,
    `    "Sluice.Priority": {"DataType": "Number", "StringValue": "${m.priority}"},`, ...given, '})', 'print(sent["MessageId"])'].filter((line) => line !== false).join('\n');
}

function c(m, item, text, data) {
  const given = [['priority', String(m.priority)], ['key', m.key], ['share', m.share], ['correlation_id', m.correlation_id], ['content_type', m.content_type], ['attributes', m.attributes && JSON.stringify(m.attributes)]]
    .filter(([, value]) => value !== undefined).map(([name, value]) => `\n\t\t\t.${name} = ${cText(value)},`).join('');
  return `/* cc send.c -o send $(pkg-config --cflags --libs sluice-client) */
#include <sluice/client.h>

#include <stdio.h>
#include <stdlib.h>

int
main(void)
{
	static const char payload[] = ${cString(data)};
	const struct slu_client_config config = {
		SLU_OPTIONS_INIT(struct slu_client_config), .servers = ${cText(place())}, .space = ${cText(m.namespace)},
		.token = getenv("TOKEN") };
	struct slu_client *c = NULL;
	struct slu_sent sent;
	struct slu_err err;
	int rc = slu_client_new(&c, &config, &err);

	if (!rc)
		rc = slu_client_send(c, ${cText(m.queue)}, &(struct slu_send){
			SLU_OPTIONS_INIT(struct slu_send), .payload = payload, .size = sizeof payload - 1,${given}
		}, &sent, NULL, &err);
	if (rc)
		fprintf(stderr, "%s\\n", err.text);
	else
		puts(sent.id);
	slu_client_free(c);
	return rc != 0;
}
`;
}

// [[name, text]]; data: the bytes of the body; text: the same, or null if they are no text.
export function asCode(m, data, text) {
  const item = { namespace: m.namespace, queue: m.queue, priority: m.priority, payload: m.payload };
  for (const name of FIELDS) if (m[name] !== undefined) item[name] = m[name];
  const all = { curl, CLI: cli, Python: python, boto3: text !== null && boto3, C: c };
  return Object.entries(all).filter(([, write]) => write).map(([name, write]) => [name, write(m, item, text, data)]);
}
